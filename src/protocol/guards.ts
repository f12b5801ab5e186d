// Runtime guards by the message's own discriminators. They trust the shape behind a type: validate at the edge.

import type { CompleteMessage, EventMessage, ModelMessage, OmniMessage } from "./message.js";
import type { CompletePayload, EventPayload, PartialPayload, SessionMetaPayload } from "./payloads.js";

const COMPLETE: ReadonlySet<string> = new Set<CompletePayload["type"]>([
  "text",
  "thinking",
  "inline_thinking",
  "tool_call",
  "tool_call_output",
  "image_url",
  "inline_data",
]);

const PARTIAL: ReadonlySet<string> = new Set<PartialPayload["type"]>([
  "partial_text",
  "partial_thinking",
  "partial_tool_call",
  "partial_tool_call_output",
]);

const payloadType = (message: OmniMessage): string => String((message.payload as { type?: unknown }).type);

export const isSessionMeta = (message: OmniMessage): message is OmniMessage<SessionMetaPayload> =>
  message.type === "session_meta";

export const isModelMessage = (message: OmniMessage): message is ModelMessage => message.type === "model_msg";

export const isEventMessage = (message: OmniMessage): message is EventMessage => message.type === "event_msg";

export const isCompleteModelMessage = (message: OmniMessage): message is CompleteMessage =>
  isModelMessage(message) && COMPLETE.has(payloadType(message));

export const isPartial = (message: OmniMessage): message is OmniMessage<PartialPayload> =>
  isModelMessage(message) && PARTIAL.has(payloadType(message));

/** True for one payload type of the protocol, for example `isPayload(message, "tool_call")`. */
export function isPayload<T extends (CompletePayload | PartialPayload | EventPayload)["type"]>(
  message: OmniMessage,
  type: T,
): message is OmniMessage<Extract<CompletePayload | PartialPayload | EventPayload, { type: T }>> {
  return message.type !== "session_meta" && payloadType(message) === type;
}
