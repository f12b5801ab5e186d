// Approval position: each complete call without a stop_reason is decided exactly once, after the call and before any
// output of it, in call order. A call that was cut off is never decided. A denied call was not run.

import { isPayload } from "../guards.js";
import type { ApprovalDecisionPayload, ToolCallOutputPayload } from "../payloads.js";
import { type Look, quote, type Rule } from "./rule.js";

export function approvals(): Rule {
  /** Calls whose missing decision was reported. */
  const reported = new Set<string>();
  const expectDecision = (look: Look, id: string, where: string): void => {
    if (reported.has(id)) return;
    reported.add(id);
    look.report(`call ${quote(id)} is not decided ${where}`, { toolCallId: id });
  };
  return {
    name: "approvals",
    push(message, look) {
      const { facts } = look;
      if (isPayload(message, "approval_decision")) judge(message.payload, look);
      else if (isPayload(message, "partial_tool_call_output") || isPayload(message, "tool_call_output")) {
        const id = message.payload.tool_call_id;
        if (facts.undecided.has(id)) expectDecision(look, id, "before its output");
        if (isPayload(message, "tool_call_output")) judgeDenied(message.payload, look);
      } else if (isPayload(message, "request_begin") || isPayload(message, "abort")) {
        for (const id of facts.undecided.keys()) expectDecision(look, id, `before ${message.payload.type}`);
      }
    },
    end(look) {
      for (const id of look.facts.undecided.keys()) expectDecision(look, id, "at the end of the stream");
    },
  };
}

function judge(payload: ApprovalDecisionPayload, { facts, report }: Look): void {
  const { tool_call_id: toolCallId, decided_by: by } = payload;
  const at = { toolCallId };
  const id = quote(toolCallId);
  if (payload.decision === "allow" && (by === "abort" || by === "timeout")) report(`${id} is allowed by ${by}`, at);
  const call = facts.calls.get(toolCallId);
  if (call === undefined) {
    if (!facts.prelude) report(`a decision for ${id}, which no complete call bears`, at);
    return;
  }
  if (call.kind !== "due") {
    report(`a decision for ${id}, which was cut off`, at);
    return;
  }
  if (call.decision !== undefined) {
    report(`${id} is decided twice`, at);
    return;
  }
  const [next] = facts.undecided.keys();
  if (next !== undefined && next !== toolCallId) report(`${id} is decided before ${quote(next)}, called earlier`, at);
}

function judgeDenied(payload: ToolCallOutputPayload, { facts, report }: Look): void {
  if (facts.calls.get(payload.tool_call_id)?.decision !== "deny") return;
  const at = { toolCallId: payload.tool_call_id };
  const id = quote(payload.tool_call_id);
  if (payload.stop_reason !== "aborted" && payload.stop_reason !== "failed") {
    report(`${id} was denied and its output is ${quote(payload.stop_reason ?? "completed")}`, at);
  }
  if (payload.exit_code !== undefined || payload.images !== undefined) report(`${id} was denied and run`, at);
}
