// What a user says, as a request brings it: a text, or a list of parts.

import { z } from "zod";

const notBlank = z.string().refine((text) => text.trim() !== "", "must not be blank");
const BASE64_URL = /^data:[a-zA-Z0-9!#$&^_.+-]+\/[a-zA-Z0-9!#$&^_.+-]+(;[a-zA-Z0-9-]+=[^;,]*)*;base64,/;

/** A data URL with a media type and base64 that decodes to at least one byte. */
function isDataUrl(text: string): boolean {
  const head = BASE64_URL.exec(text.slice(0, 1000))?.[0].length;
  if (head === undefined || head === text.length) return false;
  const length = text.length - head;
  const padding = text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0;
  const unpadded = length - padding;
  if (unpadded % 4 === 1 || unpadded === 0 || (padding > 0 && length % 4 !== 0)) return false;
  return /^[A-Za-z0-9+/]*$/.test(text.slice(head, text.length - padding));
}

function isImageUrl(text: string): boolean {
  if (/^data:/i.test(text)) return text.startsWith("data:image/") && isDataUrl(text);
  return /^https?:\/\//i.test(text) && URL.canParse(text);
}

function isPlainName(name: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
  return name.trim() !== "" && name !== "." && name !== ".." && !/[/\\\u0000-\u001f\u007f]/.test(name);
}

const textPart = z.strictObject({ type: z.literal("text"), text: notBlank });
const imagePart = z.strictObject({
  type: z.literal("image_url"),
  imageUrl: z.string().refine(isImageUrl, "must be an http(s) URL or data:image/…;base64,…"),
});
const filePart = z.strictObject({
  type: z.literal("file"),
  fileName: z.string().max(255).refine(isPlainName, "must be a plain file name without separators"),
  dataUrl: z.string().refine(isDataUrl, "must be data:<type>;base64,… and not empty"),
});

export const inputSchema = z
  .union([
    notBlank,
    z
      .array(z.discriminatedUnion("type", [textPart, imagePart, filePart]))
      .min(1, "must not be empty")
      .max(1000),
  ])
  .meta({ id: "Prompt", description: "What the user says: a text that is not blank, or a list of parts." });
