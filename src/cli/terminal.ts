// Where a command writes: what was asked for on standard output, all about it on standard error, so that a pipe gets the
// one without the other. Colours and a line that changes in place are for terminals alone.

import type { Writable } from "node:stream";
import { printable, printableText } from "./printable.js";

export type Style = "plain" | "dim" | "bold" | "red" | "green" | "yellow" | "cyan";

export interface TerminalStreams {
  stdout: Writable & { isTTY?: boolean };
  stderr: Writable & { isTTY?: boolean; columns?: number };
  env: NodeJS.ProcessEnv;
}

const CODES: Record<Style, string> = {
  plain: "",
  dim: "\u001b[2m",
  bold: "\u001b[1m",
  red: "\u001b[31m",
  green: "\u001b[32m",
  yellow: "\u001b[33m",
  cyan: "\u001b[36m",
};
const RESET = "\u001b[0m";
const CLEAR_LINE = "\r\u001b[2K";

export class Terminal {
  /** A person sees standard error. */
  readonly isSeen: boolean;
  readonly #streams: TerminalStreams;
  readonly #isColoured: { stdout: boolean; stderr: boolean };
  #status = "";
  /** Both streams go to one screen. */
  readonly #isShared: boolean;
  /** What was written last did not end its line. */
  readonly #isInLine = { stdout: false, stderr: false };

  constructor(streams: TerminalStreams) {
    this.#streams = streams;
    const { stdout, stderr, env } = streams;
    // https://no-color.org: any value that is not empty.
    const may = (env.NO_COLOR ?? "") === "" && env.TERM !== "dumb";
    this.isSeen = stderr.isTTY === true;
    this.#isShared = this.isSeen && stdout.isTTY === true;
    this.#isColoured = { stdout: may && stdout.isTTY === true, stderr: may && stderr.isTTY === true };
  }

  /** What was asked for, on standard output. In a pipe it goes out as it is; a terminal is not to be steered by it. */
  answer(text: string): void {
    this.#clear();
    const isTty = this.#streams.stdout.isTTY === true;
    this.#streams.stdout.write(isTty ? printableText(text) : text);
    this.#wrote("stdout", text);
  }

  /** Something about it, on standard error. */
  note(text: string, style: Style = "plain"): void {
    this.#clear();
    const safe = printableText(text);
    const isPlain = style === "plain" || !this.#isColoured.stderr;
    this.#streams.stderr.write(isPlain ? safe : `${CODES[style]}${safe}${RESET}`);
    this.#wrote("stderr", text);
  }

  /** A line of its own. */
  line(text: string, style: Style = "plain"): void {
    this.endLine();
    this.note(text, style);
    this.note("\n");
  }

  /** Ends a line that was begun where this is going to be written. */
  endLine(): void {
    if (this.#isInLine.stderr) this.note("\n");
    if (this.#isInLine.stdout && this.#isShared) this.answer("\n");
  }

  /** What is going on, in a line that is overwritten; nothing where nobody sees it or a line is begun. */
  status(text: string): void {
    const isBusy = this.#isInLine.stderr || (this.#isShared && this.#isInLine.stdout);
    if (!this.isSeen || isBusy || text === this.#status) return;
    this.#clear();
    if (text === "") return;
    const width = Math.max(20, (this.#streams.stderr.columns || 80) - 1);
    const line = [...printable(text)].slice(0, width).join("");
    this.#streams.stderr.write(this.#isColoured.stderr ? `${CODES.dim}${line}${RESET}` : line);
    this.#status = text;
  }

  #clear(): void {
    if (this.#status === "") return;
    this.#status = "";
    this.#streams.stderr.write(CLEAR_LINE);
  }

  #wrote(where: "stdout" | "stderr", text: string): void {
    if (text !== "") this.#isInLine[where] = !text.endsWith("\n");
  }
}
