// What a committed context loses when the provider refuses it again and again, though it took every part of it before:
// a URL has expired, a type of file is not taken any more, a fork goes to another model. First images and files, then
// what only the provider can read. No Session is refused for ever.

import { userText } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import type { CompleteMessage } from "../protocol/message.js";
import { MEDIA_WITHHELD } from "./engine-notes.js";

/** Refusals in a row from which images and files of earlier turns go. The input has lost its own by then. */
const MEDIA_FROM = 2;
/** Refusals in a row from which provider data (`fidelity`) goes too. */
const FIDELITY_FROM = 3;

/** @param refusals in a row, without a committed Request between them */
export function doubted(committed: readonly CompleteMessage[], refusals: number): CompleteMessage[] {
  let kept = [...committed];
  if (refusals >= MEDIA_FROM) kept = kept.flatMap(withoutMedia);
  if (refusals >= FIDELITY_FROM) kept = kept.map(withoutFidelity);
  return kept;
}

/** A note stands where it was, so that no turn becomes empty. */
function withoutMedia(message: CompleteMessage): CompleteMessage[] {
  if (isPayload(message, "image_url")) return [userText(message.timestamp, MEDIA_WITHHELD)];
  if (isPayload(message, "inline_data")) {
    return message.payload.role === "user" ? [userText(message.timestamp, MEDIA_WITHHELD)] : [];
  }
  if (!isPayload(message, "tool_call_output") || message.payload.images === undefined) return [message];
  const { images: _images, ...payload } = message.payload;
  return [{ ...message, payload }];
}

function withoutFidelity(message: CompleteMessage): CompleteMessage {
  if (!("fidelity" in message.payload)) return message;
  const { fidelity: _fidelity, ...payload } = message.payload;
  return { ...message, payload } as CompleteMessage;
}
