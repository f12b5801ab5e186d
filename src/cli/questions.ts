// Asks the person at the terminal. Nothing is read from standard input between two questions, so that Ctrl-C is a signal
// then; while one is open it is what `onInterrupt` makes of it.

import { printable } from "./printable.js";
import { shortened } from "./transcript-text.js";
import { readTyped } from "./typed.js";

/** What came of a question: an answer, Ctrl-D, Ctrl-C, or that nobody needs to know any more. */
export type Answer = { kind: "answer"; text: string } | { kind: "ended" | "interrupted" | "taken_back" };

export interface Questions {
  ask(question: string, signal?: AbortSignal): Promise<Answer>;
  /**
   * Drops what was typed so far: it is no answer to a question that was not there yet.
   * @returns false when Ctrl-C was among it
   */
  forget(): Promise<boolean>;
}

export function askAt(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WriteStream },
  onInterrupt: () => void,
): Questions {
  return {
    forget: async () => {
      const isInterrupted = await dropTyped(stdin);
      if (isInterrupted) onInterrupt();
      return !isInterrupted;
    },
    ask: async (question, signal) => {
      const typed = await readTyped({ stdin, stderr }, question, signal);
      if (typed.kind !== "line") {
        stderr.write("\n");
        if (typed.kind === "interrupted") onInterrupt();
        return { kind: typed.kind };
      }
      const [first, ...others] = typed.dropped.filter((line) => line.trim() !== "");
      if (first !== undefined) stderr.write(`${droppedText(first, others.length)}\n`);
      return { kind: "answer", text: typed.text };
    },
  };
}

function droppedText(first: string, others: number): string {
  const more = others === 0 ? "" : ` and ${others} more ${others === 1 ? "line" : "lines"}`;
  return `! came with that line and was dropped: ${printable(shortened(first, MAX_DROPPED))}${more}`;
}

const MAX_DROPPED = 60;
const CTRL_C = "\u0003";
/** Turns of the event loop in which a terminal hands over what it holds: one is enough, the others are for good measure. */
const TURNS = 3;

/** @returns true when Ctrl-C was among it */
async function dropTyped(stdin: NodeJS.ReadStream): Promise<boolean> {
  if (stdin.isTTY !== true) return false;
  let isInterrupted = false;
  const drop = (typed: Buffer | string) => {
    isInterrupted ||= typed.toString().includes(CTRL_C);
  };
  const wasRaw = stdin.isRaw;
  // A line that has no end yet is held back otherwise.
  stdin.setRawMode(true);
  stdin.on("data", drop);
  for (let turn = 0; turn < TURNS; turn += 1) await new Promise(setImmediate);
  stdin.off("data", drop);
  stdin.pause();
  stdin.setRawMode(wasRaw);
  return isInterrupted;
}

/** What an answer to "Allow?" decides; undefined where it says nothing. */
export function decisionOf(answer: string): { decision: "allow" | "deny"; reason?: string } | undefined {
  const text = answer.trim();
  if (text === "") return undefined;
  if (/^y(es)?$/i.test(text)) return { decision: "allow" };
  if (/^no?$/i.test(text)) return { decision: "deny" };
  return { decision: "deny", reason: text };
}
