// read_file: a window of lines. Memory is bounded by the limit on the output, whatever the file.

import type { FileHandle } from "node:fs/promises";
import { z } from "zod";
import { defineTool, type Tool, type ToolContext, ToolFailure, type ToolOutput } from "./tool.js";
import { isHigh } from "./truncate.js";
import type { Workspace } from "./workspace.js";

const CHUNK_BYTES = 65_536;
const NEWLINE = 10;
/** Of the output limit, for the line that says how to go on. */
const NOTE_CHARS = 160;

const parameters = z.strictObject({
  file_path: z.string().min(1).describe("The file, relative to the Workspace or absolute."),
  offset: z.int().min(1).optional().describe("First line to read, counted from 1. Left out: 1."),
  limit: z.int().min(1).optional().describe("Most lines to read. Left out: as many as the output holds."),
});

type ReadArgs = z.output<typeof parameters>;

export function readFileTool(workspace: Workspace): Tool<ReadArgs> {
  return defineTool({
    name: "read_file",
    description:
      "Reads a text file, or some lines of it. A last line in brackets says where to go on when there is more.",
    parameters,
    mayWrite: false,
    async *run(args, context) {
      const { handle, stats, shown } = await workspace.openFile(args.file_path);
      try {
        const window = new LineWindow(args.offset ?? 1, args.limit, context.maxOutputChars - NOTE_CHARS);
        await fill(window, handle, context, () => {
          throw new ToolFailure(
            `${shown} is a binary file (${stats.size} bytes). read_image reads images; exec_command can inspect others.`,
          );
        });
        if (window.text !== "") yield window.text;
        return window.end(shown);
      } finally {
        await handle.close();
      }
    },
  });
}

async function fill(window: LineWindow, handle: FileHandle, { signal }: ToolContext, onBinary: () => never) {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let first = true; !window.full && !signal.aborted; first = false) {
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, null);
    if (bytesRead === 0) return window.finish();
    const chunk = buffer.subarray(0, bytesRead);
    // Text has no NUL byte; binary files nearly always have one near their start.
    if (first && chunk.includes(0)) onBinary();
    window.push(chunk);
  }
}

/** Takes a file in chunks and keeps the lines asked for, as far as they fit into `maxChars`. */
class LineWindow {
  text = "";
  /** True once nothing more is wanted; there is more in the file. */
  full = false;
  readonly #offset: number;
  readonly #lastLine: number;
  readonly #maxChars: number;
  readonly #decoder = new TextDecoder();
  /** The line that the next byte belongs to. */
  #line = 1;
  /** The last byte that came in, undefined when none did. */
  #lastByte: number | undefined;

  constructor(offset: number, limit: number | undefined, maxChars: number) {
    this.#offset = offset;
    this.#lastLine = limit === undefined ? Number.POSITIVE_INFINITY : offset + limit - 1;
    this.#maxChars = maxChars;
  }

  push(chunk: Buffer): void {
    this.#lastByte = chunk.at(-1);
    let start = 0;
    while (this.#line < this.#offset) {
      const newline = chunk.indexOf(NEWLINE, start);
      if (newline < 0) return;
      this.#line += 1;
      start = newline + 1;
    }
    let end = start;
    while (end < chunk.length && this.#line <= this.#lastLine) {
      const newline = chunk.indexOf(NEWLINE, end);
      end = newline < 0 ? chunk.length : newline + 1;
      if (newline >= 0) this.#line += 1;
    }
    this.full = end < chunk.length;
    this.#keep(this.#decoder.decode(chunk.subarray(start, end), { stream: true }));
  }

  /** The file is at its end. */
  finish(): void {
    this.#keep(this.#decoder.decode());
  }

  end(shown: string): ToolOutput {
    if (this.full) return { note: this.#more() };
    if (this.#lastByte === undefined) return { note: `[${shown} is empty]` };
    if (this.text !== "") return {};
    const lines = this.#lastByte === NEWLINE ? this.#line - 1 : this.#line;
    return { stop: "failed", note: `${shown} has ${lines} lines; line ${this.#offset} is past its end.` };
  }

  #keep(text: string): void {
    const all = this.text + text;
    if (all.length <= this.#maxChars) {
      this.text = all;
      return;
    }
    this.full = true;
    const lineEnd = all.lastIndexOf("\n", this.#maxChars - 1);
    // Whole lines where there is one; a line longer than the limit is cut.
    const cut = this.#maxChars - (isHigh(all.charCodeAt(this.#maxChars - 1)) ? 1 : 0);
    this.text = all.slice(0, lineEnd < 0 ? cut : lineEnd + 1);
  }

  #more(): string {
    const whole = this.text.split("\n").length - 1;
    const first = this.#offset;
    if (whole === 0) {
      return `[the first ${this.text.length} characters of line ${first}; go on at offset ${first + 1}, or cut the line with exec_command]`;
    }
    return `[lines ${first} to ${first + whole - 1}; there is more: go on at offset ${first + whole}]`;
  }
}
