// What a person types at a question. A text of several lines that is pasted is one answer, sent by the Enter behind it:
// the terminal is asked to mark what is pasted (bracketed paste), for as long as the question is open. Where it does not,
// the first line is the answer, and what came with it is told to whoever asked: it is no answer to anything else.
//
// https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h2-Bracketed-Paste-Mode

import { createInterface, type Interface, type Key } from "node:readline";

export type Typed =
  | { kind: "line"; text: string; dropped: string[] }
  /** Ctrl-D, Ctrl-C, or the signal. */
  | { kind: "ended" | "interrupted" | "taken_back" };

export interface Keyboard {
  stdin: NodeJS.ReadStream;
  stderr: NodeJS.WriteStream;
}

const MARK_PASTES = "\u001b[?2004h";
const MARK_NO_PASTES = "\u001b[?2004l";

/** Never rejects. */
export async function readTyped(keyboard: Keyboard, question: string, signal?: AbortSignal): Promise<Typed> {
  const { stdin, stderr } = keyboard;
  const isTerminal = stderr.isTTY === true;
  // A pasted line end of two characters is one, however far apart they come.
  const lines = createInterface({
    input: stdin,
    output: stderr,
    terminal: isTerminal,
    historySize: 0,
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  const canMark = isTerminal && stdin.isTTY === true && process.env.TERM !== "dumb";
  const pastes = canMark ? markPastes(keyboard, lines) : undefined;
  try {
    return await typedAt(lines, question, {
      signal,
      isPasting: () => pastes?.isPasting() === true,
      onRest: () => void stderr.write("\n"),
    });
  } finally {
    lines.close();
    pastes?.end();
  }
}

interface Typing {
  signal: AbortSignal | undefined;
  isPasting: () => boolean;
  /** A line was begun behind the answer. */
  onRest: () => void;
}

async function typedAt(lines: Interface, question: string, { signal, isPasting, onRest }: Typing): Promise<Typed> {
  const pasted: string[] = [];
  const dropped: string[] = [];
  let takeBack = () => {};
  const typed = await new Promise<Typed>((resolve) => {
    let isAnswered = false;
    takeBack = () => resolve({ kind: "taken_back" });
    lines.on("SIGINT", () => resolve({ kind: "interrupted" }));
    lines.on("close", () => resolve({ kind: "ended" }));
    lines.on("line", (line) => {
      if (isAnswered) dropped.push(line);
      else if (isPasting()) {
        pasted.push(line);
        lines.setPrompt(" ".repeat(question.length));
        lines.prompt();
      } else {
        isAnswered = true;
        const text = [...pasted, line].join("\n").replace(/\n+$/, "");
        resolve({ kind: "line", text, dropped });
      }
    });
    signal?.addEventListener("abort", takeBack, { once: true });
    if (signal?.aborted) takeBack();
    lines.setPrompt(question);
    lines.prompt();
  });
  signal?.removeEventListener("abort", takeBack);
  // What came in one go with the answer has been read as well, its last line without an end.
  if (typed.kind === "line" && lines.line !== "") {
    dropped.push(lines.line);
    onRest();
  }
  return typed;
}

/** Has the terminal mark what is pasted, also when it is back from the background, until the end. */
function markPastes({ stdin, stderr }: Keyboard, lines: Interface): { isPasting(): boolean; end(): void } {
  let isPasting = false;
  const mark = () => void stderr.write(MARK_PASTES);
  const unmark = () => void stderr.write(MARK_NO_PASTES);
  const look = (_: string | undefined, { name, ctrl }: Key) => {
    if (name === "paste-start") isPasting = true;
    if (name === "paste-end") isPasting = false;
    if (name === "z" && ctrl === true) unmark();
  };
  // Before readline, for which a line end is an answer.
  stdin.prependListener("keypress", look);
  lines.on("SIGCONT", mark);
  process.once("exit", unmark);
  mark();
  return {
    isPasting: () => isPasting,
    end: () => {
      stdin.off("keypress", look);
      process.off("exit", unmark);
      unmark();
    },
  };
}
