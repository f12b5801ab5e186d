// The origin chain: a child's messages are never in its parent's Trace, which keeps one `subagent` pointer for each
// direct child; on the stream the pointer comes before the child's first message, and nothing of a child comes after
// its parent's abort. This rule alone sees all chains at once.

import { isPayload, isSessionMeta } from "../guards.js";
import { type Mode, quote, type Rule } from "./rule.js";

/** The chain as a key; the main chain is the empty string. */
export const chainKey = (origin: readonly string[] | undefined): string => (origin ?? []).join("\n");

export function origin(mode: Mode, joined: boolean): Rule {
  const pointers = new Set<string>();
  const seen = new Set<string>();
  const aborted = new Set<string>();
  return {
    name: "origin",
    push(message, { report }) {
      const chain = message.origin ?? [];
      const key = chainKey(chain);
      if (chain.length > 0) {
        if (mode === "trace") {
          report(`a message of child ${quote(chain)} in its parent's Trace`);
          return;
        }
        if (!seen.has(key) && !pointers.has(key) && !joined) report(`child ${quote(chain)} speaks before its pointer`);
        seen.add(key);
        if (isSessionMeta(message) && message.payload.session_id !== chain.at(-1)) {
          report(`session_meta of ${quote(message.payload.session_id)} under the origin ${quote(chain)}`);
        }
        const parent = chain.findIndex((_, depth) => aborted.has(chainKey(chain.slice(0, depth))));
        if (parent >= 0) report(`a message of child ${quote(chain)} after its parent's abort`);
      }
      if (isPayload(message, "abort")) aborted.add(key);
      else aborted.delete(key);
      if (!isPayload(message, "subagent")) return;
      const child = chainKey([...chain, message.payload.session_id]);
      if (pointers.has(child)) report(`a second pointer to child ${quote(message.payload.session_id)}`);
      else if (seen.has(child)) report(`the pointer to ${quote(message.payload.session_id)} after its first message`);
      pointers.add(child);
    },
  };
}
