// Asks the person at the terminal. Nothing is read from standard input between two questions, so that Ctrl-C is a signal
// then; while one is open it is what `onInterrupt` makes of it.

import { createInterface } from "node:readline/promises";

/** What came of a question: an answer, Ctrl-D, Ctrl-C, or that nobody needs to know any more. */
export type Answer = { kind: "answer"; text: string } | { kind: "ended" | "interrupted" | "taken_back" };

export interface Questions {
  ask(question: string, signal?: AbortSignal): Promise<Answer>;
}

export function askAt(
  { stdin, stderr }: { stdin: NodeJS.ReadStream; stderr: NodeJS.WriteStream },
  onInterrupt: () => void,
): Questions {
  return {
    ask: async (question, signal) => {
      const lines = createInterface({ input: stdin, output: stderr, terminal: stderr.isTTY === true });
      const end = new AbortController();
      let why = "ended" as Exclude<Answer["kind"], "answer">;
      const takeBack = () => {
        why = "taken_back";
        end.abort();
      };
      lines.on("SIGINT", () => {
        why = "interrupted";
        end.abort();
      });
      lines.on("close", () => end.abort());
      signal?.addEventListener("abort", takeBack, { once: true });
      if (signal?.aborted) takeBack();
      try {
        return { kind: "answer", text: await lines.question(question, { signal: end.signal }) };
      } catch {
        stderr.write("\n");
        if (why === "interrupted") onInterrupt();
        return { kind: why };
      } finally {
        signal?.removeEventListener("abort", takeBack);
        lines.close();
      }
    },
  };
}

/** What an answer to "Allow?" decides; undefined where it says nothing. */
export function decisionOf(answer: string): { decision: "allow" | "deny"; reason?: string } | undefined {
  const text = answer.trim();
  if (text === "") return undefined;
  if (/^y(es)?$/i.test(text)) return { decision: "allow" };
  if (/^no?$/i.test(text)) return { decision: "deny" };
  return { decision: "deny", reason: text };
}
