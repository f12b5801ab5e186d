// Compaction: begin and end pair, outside any Request and with none inside; its own output is in the Trace only. In a
// Trace each context begins with a session_meta: the first, and one right after each compaction that completed.

import { isPayload, isSessionMeta } from "../guards.js";
import type { OmniMessage } from "../message.js";
import type { CompactionBeginPayload, CompactionEndPayload } from "../payloads.js";
import { isModelContent, isUserInput } from "./facts.js";
import { type Look, type Mode, quote, type Rule } from "./rule.js";

export function compaction(mode: Mode, joined: boolean): Rule {
  let begun: CompactionBeginPayload | undefined;
  let context: "first" | "same" | "next" = joined ? "same" : "first";
  return {
    name: "compaction",
    push(message, look) {
      const { facts, report } = look;
      if (mode === "trace" && !isPayload(message, "abort")) {
        if (isSessionMeta(message) && context === "same") report("session_meta inside a context");
        if (!isSessionMeta(message) && context === "next") report("a new context does not begin with session_meta");
        context = "same";
      }
      if (isPayload(message, "compaction_begin")) {
        if (facts.compactionOpen) report("compaction_begin inside a compaction");
        if (facts.requestOpen) report("compaction_begin inside a Request");
        begun = message.payload;
      } else if (isPayload(message, "compaction_end")) {
        judgeEnd(message.payload, begun, look);
        begun = undefined;
        if (message.payload.status === "completed") context = "next";
      } else if (facts.compactionOpen && !mayStandInside(message, mode)) {
        report(`${quote((message.payload as { type?: unknown }).type ?? message.type)} inside a compaction`);
      }
    },
    end({ facts, report }) {
      if (facts.compactionOpen) report("the compaction is open at the end of the stream");
    },
  };
}

/** `abort` has a rule of its own. A reader of the stream may see the usage of the tries, and nothing else of them. */
function mayStandInside(message: OmniMessage, mode: Mode): boolean {
  if (isPayload(message, "token_usage") || isPayload(message, "abort")) return true;
  return mode === "trace" && (isModelContent(message) || isUserInput(message));
}

function judgeEnd(end: CompactionEndPayload, begun: CompactionBeginPayload | undefined, { facts, report }: Look): void {
  if (begun === undefined) {
    if (!facts.prelude) report("compaction_end without compaction_begin");
  } else if (begun.reason !== end.reason || begun.mode !== end.mode) {
    report(`compaction_end (${end.reason}, ${end.mode}) closes another (${begun.reason}, ${begun.mode})`);
  }
}
