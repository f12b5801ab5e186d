// Every payload of the OmniMessage protocol as a zod schema: the one source of the types, the validator and the
// OpenAPI components. Objects are loose: a field we do not know passes through untouched.

import { z } from "zod";

export const stopReasonSchema = z.enum(["completed", "failed", "aborted", "timeout", "malformed"]);
/** How a message, a Request or a Task ended. Absent on a message means `completed`. */
export type StopReason = z.infer<typeof stopReasonSchema>;

export const streamEventTypeSchema = z.enum(["start", "delta", "stop"]);
export type StreamEventType = z.infer<typeof streamEventTypeSchema>;

/** What a provider needs back byte for byte; opaque to everyone but the wire that made it. */
export const fidelitySchema = z.record(z.string(), z.unknown());
export type Fidelity = z.infer<typeof fidelitySchema>;

export const toolDefinitionSchema = z.looseObject({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});
/** A tool as the model sees it; `parameters` is JSON Schema. */
export type ToolDefinition = z.infer<typeof toolDefinitionSchema>;

export const sessionMetaPayloadSchema = z.looseObject({
  session_id: z.string(),
  provider: z.string(),
  model_id: z.string(),
  model_context_window: z.union([z.number(), z.string()]),
  system_prompt: z.string(),
  tools: z.array(toolDefinitionSchema),
  thinking_level: z.string(),
  agent_state: z.string(),
  workspace: z.string(),
});
export type SessionMetaPayload = z.infer<typeof sessionMetaPayloadSchema>;

// --- complete payloads -------------------------------------------------------------------------------------------

export const textPayloadSchema = z.looseObject({
  type: z.literal("text"),
  role: z.enum(["user", "assistant"]),
  text: z.string(),
  fidelity: fidelitySchema.optional(),
  stop_reason: stopReasonSchema.optional(),
  steer_id: z.string().optional(),
});
export type TextPayload = z.infer<typeof textPayloadSchema>;

export const thinkingPayloadSchema = z.looseObject({
  type: z.literal("thinking"),
  role: z.literal("assistant"),
  thinking: z.string(),
  fidelity: fidelitySchema.optional(),
  stop_reason: stopReasonSchema.optional(),
});
export type ThinkingPayload = z.infer<typeof thinkingPayloadSchema>;

export const inlineThinkingPayloadSchema = z.looseObject({
  type: z.literal("inline_thinking"),
  role: z.literal("assistant"),
  data: z.string(),
  mime_type: z.string(),
  fidelity: fidelitySchema.optional(),
  stop_reason: stopReasonSchema.optional(),
});
export type InlineThinkingPayload = z.infer<typeof inlineThinkingPayloadSchema>;

export const toolCallPayloadSchema = z.looseObject({
  type: z.literal("tool_call"),
  role: z.literal("assistant"),
  name: z.string(),
  arguments: z.string(),
  tool_call_id: z.string(),
  fidelity: fidelitySchema.optional(),
  stop_reason: stopReasonSchema.optional(),
});
export type ToolCallPayload = z.infer<typeof toolCallPayloadSchema>;

export const toolCallOutputPayloadSchema = z.looseObject({
  type: z.literal("tool_call_output"),
  role: z.literal("user"),
  output: z.string(),
  images: z.array(z.string()).optional(),
  tool_call_id: z.string(),
  exit_code: z.number().int().optional(),
  stop_reason: stopReasonSchema.optional(),
});
export type ToolCallOutputPayload = z.infer<typeof toolCallOutputPayloadSchema>;

export const imageUrlPayloadSchema = z.looseObject({
  type: z.literal("image_url"),
  role: z.literal("user"),
  image_url: z.string(),
  stop_reason: stopReasonSchema.optional(),
});
export type ImageUrlPayload = z.infer<typeof imageUrlPayloadSchema>;

export const inlineDataPayloadSchema = z.looseObject({
  type: z.literal("inline_data"),
  role: z.enum(["user", "assistant"]),
  data: z.string(),
  mime_type: z.string(),
  file_name: z.string().optional(),
  fidelity: fidelitySchema.optional(),
  stop_reason: stopReasonSchema.optional(),
});
export type InlineDataPayload = z.infer<typeof inlineDataPayloadSchema>;

// --- partial payloads --------------------------------------------------------------------------------------------

export const partialTextPayloadSchema = z.looseObject({
  type: z.literal("partial_text"),
  role: z.literal("assistant"),
  event_type: streamEventTypeSchema,
  text: z.string(),
  stop_reason: stopReasonSchema.optional(),
});
export type PartialTextPayload = z.infer<typeof partialTextPayloadSchema>;

export const partialThinkingPayloadSchema = z.looseObject({
  type: z.literal("partial_thinking"),
  role: z.literal("assistant"),
  event_type: streamEventTypeSchema,
  thinking: z.string(),
  stop_reason: stopReasonSchema.optional(),
});
export type PartialThinkingPayload = z.infer<typeof partialThinkingPayloadSchema>;

export const partialToolCallPayloadSchema = z.looseObject({
  type: z.literal("partial_tool_call"),
  role: z.literal("assistant"),
  event_type: streamEventTypeSchema,
  name: z.string(),
  arguments: z.string(),
  tool_call_id: z.string(),
  stop_reason: stopReasonSchema.optional(),
});
export type PartialToolCallPayload = z.infer<typeof partialToolCallPayloadSchema>;

export const partialToolCallOutputPayloadSchema = z.looseObject({
  type: z.literal("partial_tool_call_output"),
  role: z.literal("user"),
  event_type: streamEventTypeSchema,
  output: z.string(),
  images: z.array(z.string()).optional(),
  tool_call_id: z.string(),
  stop_reason: stopReasonSchema.optional(),
});
export type PartialToolCallOutputPayload = z.infer<typeof partialToolCallOutputPayloadSchema>;

// --- events ------------------------------------------------------------------------------------------------------

export const tokenCountsSchema = z.looseObject({
  cache_read: z.number().int().nonnegative(),
  cache_write: z.number().int().nonnegative(),
  output: z.number().int().nonnegative(),
  total: z.number().int().nonnegative(),
  cache_creation: z.number().int().nonnegative().optional(),
});
/**
 * Tokens. `cache_read`: input served from the provider's cache; `cache_write`: all other input; `output`: visible plus
 * reasoning; `total`: the sum of the three. `cache_creation`: the part of `cache_write` that the provider cached.
 */
export type TokenCounts = z.infer<typeof tokenCountsSchema>;

export const errorKindSchema = z.enum([
  "auth",
  "invalid_request",
  "context_overflow",
  "content_filter",
  "rate_limit",
  "overloaded",
  "network",
  "timeout",
  "malformed",
  "storage",
  "unknown",
]);
export type ErrorKind = z.infer<typeof errorKindSchema>;

export const requestErrorSchema = z.looseObject({
  kind: errorKindSchema,
  message: z.string(),
  http_status: z.number().int().optional(),
  unsent: z.literal(true).optional(),
});
/** Why a Request failed. `message` is for a person and never holds a key. `unsent`: no provider was asked. */
export type RequestError = z.infer<typeof requestErrorSchema>;

export const requestBeginPayloadSchema = z.looseObject({ type: z.literal("request_begin") });
export type RequestBeginPayload = z.infer<typeof requestBeginPayloadSchema>;

export const requestEndPayloadSchema = z.looseObject({
  type: z.literal("request_end"),
  status: stopReasonSchema,
  error: requestErrorSchema.optional(),
  attempt: z.number().int().positive().optional(),
  retry_in_ms: z.number().nonnegative().optional(),
  finish_reason: z.string().optional(),
  truncated: z.literal(true).optional(),
});
export type RequestEndPayload = z.infer<typeof requestEndPayloadSchema>;

export const decisionSchema = z.enum(["allow", "deny"]);
export const decidedBySchema = z.enum(["user", "policy", "timeout", "abort"]);

export const approvalDecisionPayloadSchema = z.looseObject({
  type: z.literal("approval_decision"),
  decision: decisionSchema,
  tool_call_id: z.string(),
  decided_by: decidedBySchema.optional(),
  reason: z.string().optional(),
});
export type ApprovalDecisionPayload = z.infer<typeof approvalDecisionPayloadSchema>;

export const tokenUsagePayloadSchema = z.looseObject({
  type: z.literal("token_usage"),
  session: tokenCountsSchema,
  request: tokenCountsSchema,
});
export type TokenUsagePayload = z.infer<typeof tokenUsagePayloadSchema>;

export const compactionReasonSchema = z.enum(["context", "turns", "manual"]);
export const compactionModeSchema = z.enum(["summarize", "discard"]);
export type CompactionReason = z.infer<typeof compactionReasonSchema>;
export type CompactionMode = z.infer<typeof compactionModeSchema>;

export const compactionBeginPayloadSchema = z.looseObject({
  type: z.literal("compaction_begin"),
  reason: compactionReasonSchema,
  mode: compactionModeSchema,
  context: z.number().int().nonnegative(),
  turns: z.number().int().nonnegative(),
});
export type CompactionBeginPayload = z.infer<typeof compactionBeginPayloadSchema>;

export const compactionEndPayloadSchema = z.looseObject({
  type: z.literal("compaction_end"),
  reason: compactionReasonSchema,
  mode: compactionModeSchema,
  status: stopReasonSchema,
});
export type CompactionEndPayload = z.infer<typeof compactionEndPayloadSchema>;

export const abortPayloadSchema = z.looseObject({
  type: z.literal("abort"),
  reason: z.string().nullable().optional(),
});
export type AbortPayload = z.infer<typeof abortPayloadSchema>;

export const subagentPayloadSchema = z.looseObject({ type: z.literal("subagent"), session_id: z.string() });
export type SubagentPayload = z.infer<typeof subagentPayloadSchema>;

// --- unions ------------------------------------------------------------------------------------------------------

export const completePayloadSchema = z.discriminatedUnion("type", [
  textPayloadSchema,
  thinkingPayloadSchema,
  inlineThinkingPayloadSchema,
  toolCallPayloadSchema,
  toolCallOutputPayloadSchema,
  imageUrlPayloadSchema,
  inlineDataPayloadSchema,
]);
export type CompletePayload = z.infer<typeof completePayloadSchema>;

export const partialPayloadSchema = z.discriminatedUnion("type", [
  partialTextPayloadSchema,
  partialThinkingPayloadSchema,
  partialToolCallPayloadSchema,
  partialToolCallOutputPayloadSchema,
]);
export type PartialPayload = z.infer<typeof partialPayloadSchema>;

export const modelPayloadSchema = z.discriminatedUnion("type", [
  ...completePayloadSchema.options,
  ...partialPayloadSchema.options,
]);
export type ModelPayload = CompletePayload | PartialPayload;

export const eventPayloadSchema = z.discriminatedUnion("type", [
  requestBeginPayloadSchema,
  requestEndPayloadSchema,
  approvalDecisionPayloadSchema,
  tokenUsagePayloadSchema,
  compactionBeginPayloadSchema,
  compactionEndPayloadSchema,
  abortPayloadSchema,
  subagentPayloadSchema,
]);
export type EventPayload = z.infer<typeof eventPayloadSchema>;

export type OmniPayload = SessionMetaPayload | ModelPayload | EventPayload;
