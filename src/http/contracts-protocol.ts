// The protocol's schemas under the names that the OpenAPI document gives them.

import { z } from "zod";
import { omniMessageSchema } from "../protocol/message.js";
import * as payloads from "../protocol/payloads.js";

const NAMED = {
  StopReason: payloads.stopReasonSchema,
  RequestError: payloads.requestErrorSchema,
  ToolDefinition: payloads.toolDefinitionSchema,
  SessionMetaPayload: payloads.sessionMetaPayloadSchema,
  TextPayload: payloads.textPayloadSchema,
  ThinkingPayload: payloads.thinkingPayloadSchema,
  InlineThinkingPayload: payloads.inlineThinkingPayloadSchema,
  ToolCallPayload: payloads.toolCallPayloadSchema,
  ToolCallOutputPayload: payloads.toolCallOutputPayloadSchema,
  ImageUrlPayload: payloads.imageUrlPayloadSchema,
  InlineDataPayload: payloads.inlineDataPayloadSchema,
  PartialTextPayload: payloads.partialTextPayloadSchema,
  PartialThinkingPayload: payloads.partialThinkingPayloadSchema,
  PartialToolCallPayload: payloads.partialToolCallPayloadSchema,
  PartialToolCallOutputPayload: payloads.partialToolCallOutputPayloadSchema,
  RequestBeginPayload: payloads.requestBeginPayloadSchema,
  RequestEndPayload: payloads.requestEndPayloadSchema,
  ApprovalDecisionPayload: payloads.approvalDecisionPayloadSchema,
  TokenUsagePayload: payloads.tokenUsagePayloadSchema,
  CompactionBeginPayload: payloads.compactionBeginPayloadSchema,
  CompactionEndPayload: payloads.compactionEndPayloadSchema,
  AbortPayload: payloads.abortPayloadSchema,
  SubagentPayload: payloads.subagentPayloadSchema,
  TokenCounts: payloads.tokenCountsSchema,
  OmniMessage: omniMessageSchema,
};
for (const [id, schema] of Object.entries(NAMED)) z.globalRegistry.add(schema, { id });

export const omniMessage = omniMessageSchema;
export const tokenCounts = payloads.tokenCountsSchema;
export const toolCallMessage = z.looseObject({
  timestamp: z.iso.datetime({ offset: true }),
  type: z.literal("model_msg"),
  payload: payloads.toolCallPayloadSchema,
  origin: z.array(z.string()).optional(),
});
