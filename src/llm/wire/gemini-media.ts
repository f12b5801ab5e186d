// Images and files as parts of a Gemini content. What the model does not take is named in a text instead: one part of a
// kind that it refuses would cost the whole Request, and every one after it.

import { readDataUrl, utf8Text } from "./attachments.js";
import type { JsonRecord } from "./json.js";

const IMAGES = new Set(["image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"]);

/** By the ending of a URL's path: a URL does not say what is behind it, and the provider asks. */
const BY_ENDING: Record<string, string> = {
  png: "image/png",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  pdf: "application/pdf",
};

/** An image of the user's or of a tool's: a data URL, or a URL that the provider fetches. */
export function imagePart(url: string, vision: boolean): JsonRecord {
  if (!vision) return { text: "[an image left out: this model takes none]" };
  const media = readDataUrl(url);
  if (media !== undefined) return mediaPart(media.mimeType, media.data, "image", vision);
  if (!/^(?:https?|gs):\/\//i.test(url)) return { text: "[an image left out: its address cannot be sent]" };
  const path = URL.canParse(url) ? new URL(url).pathname : "";
  const ending = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "";
  return { fileData: { mimeType: BY_ENDING[ending] ?? "image/jpeg", fileUri: url } };
}

/** A file: inline where the model takes its kind, as text where it is text. */
export function mediaPart(mimeType: string, data: string, name: string, vision: boolean): JsonRecord {
  const type = plainType(mimeType);
  const isMedia = takes(type);
  if (isMedia && vision && data !== "") return { inlineData: { mimeType: type, data } };
  const isPicture = type.startsWith("image/") && !type.endsWith("xml");
  const text = isMedia || isPicture ? undefined : utf8Text(data);
  if (text === undefined) return { text: `[${name} (${type}) left out: this model does not take it]` };
  return { text: `[file ${name}]\n${text}\n[end of ${name}]` };
}

const takes = (type: string): boolean =>
  IMAGES.has(type) || type === "application/pdf" || type.startsWith("audio/") || type.startsWith("video/");

function plainType(mimeType: string): string {
  const type = (mimeType.split(";")[0] ?? "").trim().toLowerCase();
  return type === "image/jpg" ? "image/jpeg" : type;
}
