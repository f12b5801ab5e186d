// Pairing: each complete call without a stop_reason gets exactly one complete output of its id. A call that an output
// limit cut off (`malformed` in a Request that completed) gets one too, a failed one; a call cut off by an interruption
// or a failed try gets none. Ids are unique within the Session and of a form that every provider takes.

import { isPayload } from "../guards.js";
import type { ToolCallOutputPayload, ToolCallPayload } from "../payloads.js";
import { type Look, quote, type Rule } from "./rule.js";

const ID_FORM = /^[A-Za-z0-9_.:-]{1,64}$/;

export function pairing(): Rule {
  return {
    name: "pairing",
    push(message, look) {
      if (isPayload(message, "tool_call")) judgeCall(message.payload, look);
      else if (isPayload(message, "tool_call_output")) judgeOutput(message.payload, look);
      else if (isPayload(message, "request_end") && message.payload.status !== "completed") {
        for (const call of look.facts.malformed) {
          if (call.outputs > 0) look.report(answeredThoughCut(call.id), { toolCallId: call.id });
        }
      }
    },
    end({ facts, report }) {
      for (const call of facts.unanswered.values()) {
        report(`call ${quote(call.id)} never got its output`, { toolCallId: call.id });
      }
    },
  };
}

function judgeCall({ tool_call_id: toolCallId }: ToolCallPayload, { facts, report }: Look): void {
  if (facts.compactionOpen) return;
  if (!ID_FORM.test(toolCallId)) report(`tool_call_id ${quote(toolCallId)} is not of the allowed form`, { toolCallId });
  if (facts.calls.has(toolCallId)) report(`tool_call_id ${quote(toolCallId)} is used twice`, { toolCallId });
}

function judgeOutput(payload: ToolCallOutputPayload, { facts, report }: Look): void {
  const { tool_call_id: toolCallId, stop_reason: stop } = payload;
  const at = { toolCallId };
  const call = facts.calls.get(toolCallId);
  if (call === undefined) {
    if (!facts.prelude) report(`an output for ${quote(toolCallId)}, which no complete call bears`, at);
    return;
  }
  if (call.outputs > 0) {
    report(`call ${quote(toolCallId)} has two outputs`, at);
    return;
  }
  if (call.kind === "cut") {
    report(answeredThoughCut(toolCallId), at);
    return;
  }
  // An interrupt may come between the limit and the output that tells of it.
  if (call.kind !== "due" && stop !== "failed" && stop !== "aborted") {
    report(`call ${quote(toolCallId)} was cut off by a limit and its output is ${quote(stop ?? "completed")}`, at);
  }
}

const answeredThoughCut = (id: string): string => `an output for ${quote(id)}, which was cut off`;
