// Open fragments: one for each segment that has started and whose complete message has not come.

import { isPartial, isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import { contentOf } from "../protocol/partial-content.js";
import type { PartialPayload } from "../protocol/payloads.js";
import type { Fragment } from "./view-types.js";

/** Names a segment among those that can be open at a time. Text and thinking have no id: a chain has one of each. */
export function slotOf(of: { origin?: readonly string[] | undefined; type: string; toolCallId: string }): string {
  return JSON.stringify([of.origin ?? [], of.type, of.toolCallId]);
}

const callIdOf = (message: OmniMessage): string =>
  "tool_call_id" in message.payload ? String(message.payload.tool_call_id) : "";

function slotFor(message: OmniMessage, type: string): string {
  return slotOf({ origin: message.origin, type, toolCallId: callIdOf(message) });
}

/** A fragment as its `start` opens it. */
export function fragmentOf(message: OmniMessage<PartialPayload>, key: string): Fragment {
  const { payload } = message;
  return {
    key,
    slot: slotFor(message, payload.type),
    origin: message.origin ?? [],
    timestamp: message.timestamp,
    type: payload.type,
    name: payload.type === "partial_tool_call" ? payload.name : "",
    toolCallId: callIdOf(message),
    content: contentOf(payload),
    images: imagesOf(message) ?? [],
  };
}

/** Those of a history. What was open before and still is keeps its key. */
export function liveFragments(
  messages: readonly OmniMessage[],
  before: readonly Fragment[],
  cursor: string,
): readonly Fragment[] {
  return messages.filter(isPartial).map((message, index) => {
    const open = fragmentOf(message, `f${cursor}.${index}`);
    return { ...open, key: before.find(({ slot }) => slot === open.slot)?.key ?? open.key };
  });
}

/** Takes a partial message. A `stop` changes nothing: the fragment is shown until the complete message replaces it. */
export function addFragment(
  fragments: readonly Fragment[],
  message: OmniMessage<PartialPayload>,
  key: string,
): readonly Fragment[] {
  const { payload } = message;
  const slot = slotFor(message, payload.type);
  if (payload.event_type === "start") {
    return [...fragments.filter((each) => each.slot !== slot), fragmentOf(message, key)];
  }
  const content = contentOf(payload);
  const images = imagesOf(message);
  if (content === "" && images === undefined) return fragments;
  return fragments.map((each) =>
    each.slot === slot ? { ...each, content: each.content + content, images: images ?? each.images } : each,
  );
}

/** Takes out the fragment that a complete message replaces. */
export function closeFragment(
  fragments: readonly Fragment[],
  message: OmniMessage,
): { closed: Fragment | undefined; fragments: readonly Fragment[] } {
  if (message.type !== "model_msg" || fragments.length === 0) return { closed: undefined, fragments };
  const slot = slotFor(message, `partial_${String((message.payload as { type?: unknown }).type)}`);
  const closed = fragments.find((each) => each.slot === slot);
  return { closed, fragments: closed === undefined ? fragments : fragments.filter((each) => each !== closed) };
}

function imagesOf(message: OmniMessage): readonly string[] | undefined {
  return isPayload(message, "partial_tool_call_output") ? message.payload.images : undefined;
}
