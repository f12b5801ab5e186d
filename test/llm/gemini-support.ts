// Gemini streams through the decoder, and back into a request.

import { gemini } from "../../src/llm/wire/gemini.js";
import { encodeGemini } from "../../src/llm/wire/gemini-encode.js";
import { isCompleteModelMessage, isPayload } from "../../src/protocol/guards.js";
import { type CompleteMessage, type OmniMessage, parseMessage, toLine } from "../../src/protocol/message.js";
import { type Answer, type DecodeOptions, decodeChunks, decodeText, llmRequest, modelSpec } from "./support.js";

export type Json = Record<string, unknown>;

export interface Content {
  role: string;
  parts: Json[];
}

export const readGemini = (chunks: Iterable<Uint8Array>, options: DecodeOptions = {}): Answer =>
  decodeChunks(chunks, { wire: gemini, ...options });

export const readGeminiText = (text: string, options: DecodeOptions = {}): Answer =>
  decodeText(text, { wire: gemini, ...options });

/** A chunk with these parts of candidate 0. */
export const chunk = (parts: object[], more: object = {}): object => ({
  candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
});

/** The messages after a stay in a Trace. */
export function fromTrace(messages: readonly OmniMessage[]): CompleteMessage[] {
  return messages.filter(isCompleteModelMessage).map((message) => {
    const parsed = parseMessage(JSON.parse(toLine(message)));
    if (!("message" in parsed)) throw new Error(parsed.problems.join("\n"));
    return parsed.message as CompleteMessage;
  });
}

export const contentsOf = (
  messages: readonly CompleteMessage[],
  model: Parameters<typeof modelSpec>[0] = {},
): Content[] =>
  (JSON.parse(encodeGemini(llmRequest({ messages }), modelSpec({ protocol: "gemini", ...model })).body) as Json)
    .contents as Content[];

/** What was said, in order; hidden reasoning by the kind of part that it carries. */
export function segments(messages: readonly OmniMessage[]): object[] {
  return messages.filter(isCompleteModelMessage).map((message) => {
    if (isPayload(message, "text")) return { type: "text", text: message.payload.text };
    if (isPayload(message, "thinking")) {
      const { thinking, fidelity } = message.payload;
      if (fidelity?.part === undefined) return { type: "thinking", thinking };
      return { type: "opaque", part: Object.keys(fidelity.part as Json)[0] };
    }
    if (isPayload(message, "tool_call")) {
      return { type: "tool_call", name: message.payload.name, arguments: message.payload.arguments };
    }
    const { type, mime_type, data } = message.payload as { type: string; mime_type: string; data: string };
    return { type, mime_type, data };
  });
}
