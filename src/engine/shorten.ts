// A context made shorter from its oldest end, for a summary's Request that would not fit. Cut are whole turns: what the
// model said goes together with the outputs of its calls.

import { userText } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import type { CompleteMessage } from "../protocol/message.js";
import { TURNS_CUT } from "./engine-notes.js";
import { isSummaryText } from "./opening.js";

/** What an image counts for, in characters: what it costs a model does not follow from its bytes. */
const IMAGE_SIZE = 6_000;

/** Characters of a message as they weigh in a Request; an estimate. */
export function sizeOf({ payload }: CompleteMessage): number {
  if (payload.type === "image_url") return Math.min(payload.image_url.length, IMAGE_SIZE);
  if (payload.type !== "tool_call_output" || payload.images === undefined) return JSON.stringify(payload).length;
  const { images, ...rest } = payload;
  return JSON.stringify(rest).length + images.reduce((sum, url) => sum + Math.min(url.length, IMAGE_SIZE), 0);
}

export const sizeOfAll = (messages: readonly CompleteMessage[]): number =>
  messages.reduce((sum, message) => sum + sizeOf(message), 0);

/**
 * Leaves out the oldest turns until the rest is at most `maxSize` or one turn is left, and says so in one user text. A
 * summary in front stays: it stands for everything before it.
 * @returns undefined when nothing could be left out.
 */
export function withoutOldest(
  messages: readonly CompleteMessage[],
  maxSize: number,
  at: string,
): CompleteMessage[] | undefined {
  const [first] = messages;
  const head = first !== undefined && isSummaryText(first) ? [first] : [];
  const turns = turnsOf(messages.slice(head.length));
  let size = sizeOfAll(messages);
  let cut = 0;
  while (cut < turns.length - 1 && size > maxSize) {
    size -= sizeOfAll(turns[cut] as CompleteMessage[]);
    cut += 1;
  }
  return cut === 0 ? undefined : [...head, userText(at, TURNS_CUT), ...turns.slice(cut).flat()];
}

/** Parts that may stand without each other: what somebody said to the model, or what it said with what came back. */
function turnsOf(messages: readonly CompleteMessage[]): CompleteMessage[][] {
  const turns: CompleteMessage[][] = [];
  let before: "user" | "assistant" | "output" | undefined;
  for (const message of messages) {
    const kind = isPayload(message, "tool_call_output") ? "output" : message.payload.role;
    const joins = kind === before || (kind === "output" && before === "assistant");
    if (joins) turns.at(-1)?.push(message);
    else turns.push([message]);
    before = kind;
  }
  return turns;
}
