// Interrupt: abort is a Task's last message. Before it everything is closed, in this order: model segments, undecided
// calls (denied by `abort`), outputs, then token_usage and request_end(aborted) where a Request is open.

import { append } from "../../append.js";
import { isPartial, isPayload, isSessionMeta } from "../guards.js";
import type { OmniMessage } from "../message.js";
import { isUserInput } from "./facts.js";
import { isOfRecovery, type Look, type Mode, quote, type Rule } from "./rule.js";

const REASONS: ReadonlySet<unknown> = new Set([
  "user",
  "server_restarted",
  "shutdown",
  "session_deleted",
  null,
  undefined,
]);

export function abortIsLast(mode: Mode): Rule {
  let isOver = false;
  /** An aborted end that the next message, an abort, must follow. */
  let owed: { place: number; what: string } | undefined;
  /** Faults of an aborted Request that stand unless recovery closed it. */
  let held: { place: number; message: string; toolCallId?: string }[] = [];
  const flush = ({ report }: Look): void => {
    for (const { message, ...at } of held) report(message, at);
    held = [];
  };
  const missing = ({ facts, place }: Look, where: string): typeof held =>
    [...facts.unanswered.keys()]
      .filter((id) => !held.some(({ toolCallId }) => toolCallId === id))
      .map((id) => ({ place, message: `${where} before the output of call ${quote(id)}`, toolCallId: id }));
  return {
    name: "abort",
    push(message, look) {
      const { facts, report, place } = look;
      if (isPayload(message, "abort")) {
        append(held, missing(look, "abort"));
        // A crash between token_usage and request_end leaves recovery to put the end before denials and outputs.
        if (isOfRecovery(message.payload.reason)) held = held.filter((fault) => fault.place === place);
        flush(look);
        if (facts.requestOpen) report("abort inside a Request");
        if (facts.compactionOpen) report("abort inside a compaction");
        if (mode === "stream" && !REASONS.has(message.payload.reason)) {
          report(`abort with reason ${quote(message.payload.reason)}`);
        }
        owed = undefined;
        isOver = true;
        return;
      }
      if (owed !== undefined) held.push({ place: owed.place, message: `${owed.what} is not followed by abort` });
      owed = undefined;
      if (opensTask(message)) flush(look);
      else if (isOver) report(`${String((message.payload as { type?: unknown }).type)} after the Task's abort`);
      isOver = false;
      if (isPayload(message, "approval_decision") && message.payload.decided_by === "abort" && facts.modelSegmentOpen) {
        report("a call is denied by abort while a model segment is open", { toolCallId: message.payload.tool_call_id });
      } else if (isPayload(message, "request_end") && message.payload.status === "aborted") {
        append(held, missing(look, "request_end(aborted)"));
        owed = { place, what: "request_end(aborted)" };
      } else if (isPayload(message, "compaction_end") && message.payload.status === "aborted") {
        owed = { place, what: "compaction_end(aborted)" };
      }
    },
    end(look) {
      flush(look);
      if (owed !== undefined) look.report(`${owed.what} is not followed by abort`, { place: owed.place });
    },
  };
}

/** True for what may come next after an abort. The notice of max_turns is an assistant text outside any Request. */
function opensTask(message: OmniMessage): boolean {
  if (isSessionMeta(message) || isUserInput(message)) return true;
  if (isPartial(message)) return message.payload.type === "partial_text";
  return isPayload(message, "request_begin") || isPayload(message, "compaction_begin") || isPayload(message, "text");
}
