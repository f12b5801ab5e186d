// One builder for each kind of message. `at` is the timestamp, ISO 8601 UTC with milliseconds. Optional fields that
// are undefined are left out of the object, so that they never reach the wire as null.

import type { OmniMessage } from "./message.js";
import type {
  AbortPayload,
  ApprovalDecisionPayload,
  CompactionBeginPayload,
  CompactionEndPayload,
  Fidelity,
  ImageUrlPayload,
  InlineDataPayload,
  InlineThinkingPayload,
  PartialTextPayload,
  PartialThinkingPayload,
  PartialToolCallOutputPayload,
  PartialToolCallPayload,
  RequestBeginPayload,
  RequestEndPayload,
  SessionMetaPayload,
  StopReason,
  StreamEventType,
  SubagentPayload,
  TextPayload,
  ThinkingPayload,
  TokenCounts,
  TokenUsagePayload,
  ToolCallOutputPayload,
  ToolCallPayload,
} from "./payloads.js";

type Ending = { fidelity?: Fidelity; stop_reason?: StopReason };

/** `completed` is the absence of a stop_reason; undefined fields are dropped. */
function trim<T extends object>(payload: T): T {
  for (const key of Object.keys(payload) as (keyof T)[]) {
    if (payload[key] === undefined || (key === "stop_reason" && payload[key] === "completed")) delete payload[key];
  }
  return payload;
}

export const sessionMeta = (at: string, payload: SessionMetaPayload): OmniMessage<SessionMetaPayload> => ({
  timestamp: at,
  type: "session_meta",
  payload,
});

export const userText = (at: string, text: string): OmniMessage<TextPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: { type: "text", role: "user", text },
});

/** A user's message, whatever it holds, as one of steering. */
export const asSteering = <T extends OmniMessage>(message: T, steerId: string): T => ({
  ...message,
  payload: { ...message.payload, steer_id: steerId },
});

export const assistantText = (at: string, text: string, end: Ending = {}): OmniMessage<TextPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "text", role: "assistant", text, ...end }),
});

export const thinking = (at: string, text: string, end: Ending = {}): OmniMessage<ThinkingPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "thinking", role: "assistant", thinking: text, ...end }),
});

export const inlineThinking = (
  at: string,
  media: { data: string; mime_type: string } & Ending,
): OmniMessage<InlineThinkingPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "inline_thinking", role: "assistant", ...media }),
});

export const toolCall = (
  at: string,
  call: { name: string; arguments: string; tool_call_id: string } & Ending,
): OmniMessage<ToolCallPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "tool_call", role: "assistant", ...call }),
});

export const toolCallOutput = (
  at: string,
  output: { output: string; tool_call_id: string; images?: string[]; exit_code?: number; stop_reason?: StopReason },
): OmniMessage<ToolCallOutputPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "tool_call_output", role: "user", ...output }),
});

export const imageUrl = (at: string, url: string): OmniMessage<ImageUrlPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: { type: "image_url", role: "user", image_url: url },
});

export const inlineData = (
  at: string,
  media: { role: "user" | "assistant"; data: string; mime_type: string; file_name?: string } & Ending,
): OmniMessage<InlineDataPayload> => ({
  timestamp: at,
  type: "model_msg",
  payload: trim({ type: "inline_data", ...media }),
});

export const partialText = (
  at: string,
  event: StreamEventType,
  text = "",
  stop?: StopReason,
): OmniMessage<PartialTextPayload> => {
  const payload: PartialTextPayload = { type: "partial_text", role: "assistant", event_type: event, text };
  if (stop !== undefined && stop !== "completed") payload.stop_reason = stop;
  return { timestamp: at, type: "model_msg", payload };
};

export const partialThinking = (
  at: string,
  event: StreamEventType,
  text = "",
  stop?: StopReason,
): OmniMessage<PartialThinkingPayload> => {
  const payload: PartialThinkingPayload = {
    type: "partial_thinking",
    role: "assistant",
    event_type: event,
    thinking: text,
  };
  if (stop !== undefined && stop !== "completed") payload.stop_reason = stop;
  return { timestamp: at, type: "model_msg", payload };
};

export const partialToolCall = (
  at: string,
  event: StreamEventType,
  call: { name: string; tool_call_id: string; arguments?: string },
  stop?: StopReason,
): OmniMessage<PartialToolCallPayload> => {
  const payload: PartialToolCallPayload = {
    type: "partial_tool_call",
    role: "assistant",
    event_type: event,
    name: call.name,
    arguments: call.arguments ?? "",
    tool_call_id: call.tool_call_id,
  };
  if (stop !== undefined && stop !== "completed") payload.stop_reason = stop;
  return { timestamp: at, type: "model_msg", payload };
};

export const partialToolCallOutput = (
  at: string,
  event: StreamEventType,
  part: { tool_call_id: string; output?: string; images?: string[] },
  stop?: StopReason,
): OmniMessage<PartialToolCallOutputPayload> => {
  const payload: PartialToolCallOutputPayload = {
    type: "partial_tool_call_output",
    role: "user",
    event_type: event,
    output: part.output ?? "",
    tool_call_id: part.tool_call_id,
  };
  if (part.images !== undefined) payload.images = part.images;
  if (stop !== undefined && stop !== "completed") payload.stop_reason = stop;
  return { timestamp: at, type: "model_msg", payload };
};

export const requestBegin = (at: string): OmniMessage<RequestBeginPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "request_begin" },
});

export const requestEnd = (
  at: string,
  end: Omit<RequestEndPayload, "type"> & { status: StopReason },
): OmniMessage<RequestEndPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: trim<RequestEndPayload>({ type: "request_end", ...end }),
});

export const approvalDecision = (
  at: string,
  decision: {
    decision: "allow" | "deny";
    tool_call_id: string;
    decided_by?: ApprovalDecisionPayload["decided_by"];
    reason?: string;
  },
): OmniMessage<ApprovalDecisionPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: trim({ type: "approval_decision", ...decision }),
});

export const tokenUsage = (at: string, session: TokenCounts, request: TokenCounts): OmniMessage<TokenUsagePayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "token_usage", session, request },
});

export const compactionBegin = (
  at: string,
  begin: Pick<CompactionBeginPayload, "reason" | "mode" | "context" | "turns">,
): OmniMessage<CompactionBeginPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "compaction_begin", ...begin },
});

export const compactionEnd = (
  at: string,
  end: Pick<CompactionEndPayload, "reason" | "mode" | "status">,
): OmniMessage<CompactionEndPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "compaction_end", ...end },
});

export const abort = (at: string, reason: string | null): OmniMessage<AbortPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "abort", reason },
});

export const subagent = (at: string, sessionId: string): OmniMessage<SubagentPayload> => ({
  timestamp: at,
  type: "event_msg",
  payload: { type: "subagent", session_id: sessionId },
});

/** The message as the parent forwards it: one hop put in front of its chain. */
export const withOrigin = <M extends OmniMessage>(message: M, childSessionId: string): M => ({
  ...message,
  origin: [childSessionId, ...(message.origin ?? [])],
});

export const emptyTokenCounts = (): TokenCounts => ({ cache_read: 0, cache_write: 0, output: 0, total: 0 });

export const addTokenCounts = (a: TokenCounts, b: TokenCounts): TokenCounts => {
  // Saturates: a sum that is not a safe integer would not be a count any more.
  const add = (x: number, y: number) => Math.min(x + y, Number.MAX_SAFE_INTEGER);
  const sum: TokenCounts = {
    cache_read: add(a.cache_read, b.cache_read),
    cache_write: add(a.cache_write, b.cache_write),
    output: add(a.output, b.output),
    total: add(a.total, b.total),
  };
  const creation = add(a.cache_creation ?? 0, b.cache_creation ?? 0);
  if (creation > 0) sum.cache_creation = creation;
  return sum;
};
