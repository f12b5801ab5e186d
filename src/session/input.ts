// A client's input as the messages of a Prompt. What the Session's model cannot take is refused here, before anything
// is recorded.

import { readDataUrl, utf8Text } from "../llm/wire/attachments.js";
import { asSteering, imageUrl, inlineData, userText } from "../protocol/builders.js";
import type { OmniMessage } from "../protocol/message.js";
import { ok, type Result, refuse, unreachable } from "../result.js";
import type { Input, InputPart } from "./types.js";

export interface InputLimits {
  /** The model takes images. */
  vision: boolean;
  /** Media types of the documents that the model's protocol takes as they are; text goes as text to every model. */
  documents: readonly string[];
}

/**
 * @param limits left out for an input that was checked when it was accepted
 * @returns the Prompt's messages in order, one for each part.
 */
export function promptMessages(
  input: Input,
  at: string,
  limits?: InputLimits,
): Result<OmniMessage[], "images_not_supported" | "file_not_supported"> {
  if (typeof input === "string") return ok([userText(at, input)]);
  const messages: OmniMessage[] = [];
  for (const part of input) {
    const message = partMessage(part, at, limits);
    if (!message.ok) return message;
    messages.push(message.value);
  }
  return ok(messages);
}

function partMessage(
  part: InputPart,
  at: string,
  limits: InputLimits | undefined,
): Result<OmniMessage, "images_not_supported" | "file_not_supported"> {
  switch (part.type) {
    case "text":
      return ok(userText(at, part.text));
    case "image_url":
      return image(part.imageUrl, at, limits);
    case "file": {
      const file = readDataUrl(part.dataUrl);
      if (file === undefined) return refuse("file_not_supported", `${part.fileName}: not a data URL`);
      if (file.mimeType.startsWith("image/")) return image(part.dataUrl, at, limits);
      if (limits?.documents.includes(file.mimeType) === false && utf8Text(file.data) === undefined) {
        const what = `${part.fileName} (${file.mimeType})`;
        return refuse("file_not_supported", `${what} is not text, and this Session's model takes no such documents`);
      }
      return ok(
        inlineData(at, {
          role: "user",
          data: file.data,
          mime_type: file.mimeType,
          file_name: part.fileName,
        }),
      );
    }
    default:
      return unreachable(part);
  }
}

function image(url: string, at: string, limits: InputLimits | undefined): Result<OmniMessage, "images_not_supported"> {
  return limits?.vision === false
    ? refuse("images_not_supported", "this Session's model takes no images")
    : ok(imageUrl(at, url));
}

/** The messages of an input that was accepted before; `steer_id` stands in those of steering. */
export function acceptedMessages(input: Input, at: string, steerId?: string): OmniMessage[] {
  const messages = promptMessages(input, at);
  if (!messages.ok) throw new Error(`an accepted input is refused: ${messages.message}`);
  return steerId === undefined ? messages.value : messages.value.map((message) => asSteering(message, steerId));
}
