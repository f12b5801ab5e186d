// A client's input as the messages of a Prompt. What the Session's model cannot take is refused here, before anything
// is recorded.

import { imageUrl, inlineData, userText } from "../protocol/builders.js";
import type { OmniMessage } from "../protocol/message.js";
import { ok, type Result, refuse } from "../result.js";
import type { Input, InputPart } from "./types.js";

export interface InputLimits {
  /** The model takes images. */
  vision: boolean;
}

/** @returns the Prompt's messages in order, one for each part. */
export function promptMessages(
  input: Input,
  at: string,
  limits: InputLimits,
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
  limits: InputLimits,
): Result<OmniMessage, "images_not_supported" | "file_not_supported"> {
  switch (part.type) {
    case "text":
      return ok(userText(at, part.text));
    case "image_url":
      return image(part.imageUrl, at, limits);
    case "file": {
      const file = parseDataUrl(part.dataUrl);
      if (file === undefined) return refuse("file_not_supported", `${part.fileName}: not a data URL`);
      if (file.mimeType.startsWith("image/")) return image(part.dataUrl, at, limits);
      if (!isUtf8Text(file.bytes)) {
        return refuse(
          "file_not_supported",
          `${part.fileName} (${file.mimeType}) is not text, and this model takes no documents`,
        );
      }
      return ok(
        inlineData(at, {
          role: "user",
          data: file.bytes.toString("base64"),
          mime_type: file.mimeType,
          file_name: part.fileName,
        }),
      );
    }
  }
}

function image(url: string, at: string, limits: InputLimits): Result<OmniMessage, "images_not_supported"> {
  return limits.vision ? ok(imageUrl(at, url)) : refuse("images_not_supported", "this Session's model takes no images");
}

function parseDataUrl(url: string): { mimeType: string; bytes: Buffer } | undefined {
  const match = /^data:([^;,]*)((?:;[^;,]*)*),/i.exec(url);
  if (match === null) return undefined;
  const body = url.slice(match[0].length);
  const mimeType = (match[1] ?? "").toLowerCase() || "text/plain";
  if (/;base64$/i.test(match[2] ?? "")) return { mimeType, bytes: Buffer.from(body, "base64") };
  try {
    return { mimeType, bytes: Buffer.from(decodeURIComponent(body), "utf8") };
  } catch {
    // A stray % sign: not a data URL.
    return undefined;
  }
}

function isUtf8Text(bytes: Buffer): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    // The decoder's only way to say "no".
    return false;
  }
}
