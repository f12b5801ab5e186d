// What a user's turn holds, as blocks of the Messages protocol. Blank text is refused by the API and left out; media
// that it would refuse becomes a line that says so.

import type { ToolCallOutputPayload } from "../../protocol/payloads.js";
import { readDataUrl, utf8Text } from "./attachments.js";
import { isBlank, type JsonRecord } from "./json.js";
import type { UserPayload } from "./outgoing.js";

const IMAGE_TYPES = new Set(["image/jpeg", "image/png", "image/gif", "image/webp"]);

/** @param vision the model takes images and documents. */
export function userBlock(payload: UserPayload, vision: boolean): JsonRecord | undefined {
  if (payload.type === "text") return isBlank(payload.text) ? undefined : textBlock(payload.text);
  if (payload.type === "image_url") return imageBlock(payload.image_url, vision);
  const { data, mime_type, file_name = "file" } = payload;
  if (mime_type.startsWith("image/")) return imageBlock(`data:${mime_type};base64,${data}`, vision);
  if (mime_type === "application/pdf" && vision && data !== "") {
    return { type: "document", source: { type: "base64", media_type: mime_type, data }, title: file_name };
  }
  const text = utf8Text(data);
  if (text === undefined) return textBlock(`[${file_name} (${mime_type}) left out: this model cannot read it]`);
  return textBlock(`[file ${file_name}]\n${text}\n[end of ${file_name}]`);
}

/**
 * One result and what must follow the results: the API takes no image in a result that reports an error.
 * @param name of the tool
 */
export function resultBlocks(
  output: ToolCallOutputPayload,
  call: { id: string; name: string },
  vision: boolean,
): { result: JsonRecord; after: JsonRecord[] } {
  const images = (output.images ?? []).map((url) => imageBlock(url, vision));
  const isError = output.stop_reason !== undefined && output.stop_reason !== "completed";
  const text = isBlank(output.output) ? "[no output]" : output.output;
  const result: JsonRecord = { type: "tool_result", tool_use_id: call.id, content: text };
  if (isError) {
    result.is_error = true;
    return { result, after: images.length === 0 ? [] : [textBlock(`[images from ${call.name}]`), ...images] };
  }
  if (images.length > 0) result.content = isBlank(output.output) ? images : [textBlock(text), ...images];
  return { result, after: [] };
}

export const textBlock = (text: string): JsonRecord => ({ type: "text", text });

function imageBlock(url: string, vision: boolean): JsonRecord {
  if (!vision) return textBlock("[an image left out: this model takes none]");
  if (/^https?:/i.test(url)) return { type: "image", source: { type: "url", url } };
  const inline = readDataUrl(url);
  if (inline === undefined || inline.data === "") return textBlock("[an image left out: it cannot be read]");
  const media_type = inline.mimeType === "image/jpg" ? "image/jpeg" : inline.mimeType;
  if (!IMAGE_TYPES.has(media_type)) return textBlock(`[an image left out: this model takes no ${media_type}]`);
  return { type: "image", source: { type: "base64", media_type, data: inline.data } };
}
