// @ts-check
// Open fragments: one for each segment that has started and whose complete message has not come.

/** @import { Fragment, Message } from "./types.d.ts" */

/** @param {Message} message */
export const isPartial = (message) => (message.payload.type ?? "").startsWith("partial_");

/**
 * Names a segment among those that can be open at a time. Text and thinking have no id: a chain has one of each.
 * @param {{ origin?: string[] | undefined, type: string, toolCallId: string }} of
 */
export const slotOf = ({ origin, type, toolCallId }) => JSON.stringify([origin ?? [], type, toolCallId]);

/** @param {Message} message @param {string} type the fragment's type */
const slotFor = (message, type) =>
  slotOf({ origin: message.origin, type, toolCallId: message.payload.tool_call_id ?? "" });

/** A fragment as its `start` opens it. @param {Message} message @param {string} key @returns {Fragment} */
export function fragmentOf(message, key) {
  const { payload, timestamp, origin } = message;
  const type = payload.type ?? "";
  return {
    key,
    slot: slotFor(message, type),
    timestamp,
    type,
    name: payload.name ?? "",
    toolCallId: payload.tool_call_id ?? "",
    content: contentOf(message),
    ...(origin === undefined ? {} : { origin }),
    ...(payload.images === undefined ? {} : { images: payload.images }),
  };
}

/**
 * Takes a partial message. A `stop` changes nothing: the fragment is shown until the complete message replaces it.
 * @param {Fragment[]} fragments @param {Message} message @param {string} key @returns {Fragment[]}
 */
export function addFragment(fragments, message, key) {
  const { payload } = message;
  const slot = slotFor(message, payload.type ?? "");
  if (payload.event_type === "start") {
    return [...fragments.filter((each) => each.slot !== slot), fragmentOf(message, key)];
  }
  return fragments.map((each) =>
    each.slot === slot
      ? {
          ...each,
          content: each.content + contentOf(message),
          ...(payload.images === undefined ? {} : { images: payload.images }),
        }
      : each,
  );
}

/**
 * Takes out the fragment that a complete message replaces.
 * @param {Fragment[]} fragments @param {Message} message @returns {{ closed: Fragment | undefined, fragments: Fragment[] }}
 */
export function close(fragments, message) {
  const slot = slotFor(message, `partial_${message.payload.type}`);
  const closed = fragments.find((each) => each.slot === slot);
  return { closed, fragments: closed === undefined ? fragments : fragments.filter((each) => each !== closed) };
}

/** @param {Message} message */
function contentOf({ payload }) {
  switch (payload.type) {
    case "partial_text":
      return payload.text ?? "";
    case "partial_thinking":
      return payload.thinking ?? "";
    case "partial_tool_call":
      return payload.arguments ?? "";
    default:
      return payload.output ?? "";
  }
}
