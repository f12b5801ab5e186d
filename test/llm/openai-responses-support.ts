// The decoder of the Responses protocol under test, and events as short as a test wants them.

import type { ModelSpec } from "../../src/llm/model-spec.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import { type Answer, type DecodeOptions, decodeChunks, decodeText, modelSpec, sse } from "./support.js";

export const spec = (changes: Partial<ModelSpec> = {}): ModelSpec =>
  modelSpec({ protocol: "openai-responses", ...changes });

export const decodeResponses = (chunks: Iterable<Uint8Array>, options: DecodeOptions = {}): Answer =>
  decodeChunks(chunks, { ...options, wire: openaiResponses });

export const decodeBytes = (text: string, options: DecodeOptions = {}): Answer =>
  decodeText(text, { ...options, wire: openaiResponses });

export const decodeEvents = (...events: (object | string)[]): Answer => decodeBytes(sse(...events));

/** True when the response says in these bytes how it ended: in a whole event, or in a body that came in place of events. */
export function hasEnding(bytes: string): boolean {
  const text = bytes.replace(/\r\n?/g, "\n");
  return /"type": ?"response\.(completed|incomplete|failed)".*\n\n/.test(text) || /^\{.*\}\s*$/s.test(text);
}

export const added = (place: number, item: object) => ({
  type: "response.output_item.added",
  output_index: place,
  item,
});
export const done = (place: number, item: object) => ({ type: "response.output_item.done", output_index: place, item });

export const textDelta = (place: number, delta: string, part = 0) => ({
  type: "response.output_text.delta",
  ...{ output_index: place, content_index: part, delta },
});
export const rawDelta = (place: number, delta: string) => ({
  type: "response.reasoning_text.delta",
  ...{ output_index: place, content_index: 0, delta },
});
export const summaryDelta = (place: number, part: number, delta: string) => ({
  type: "response.reasoning_summary_text.delta",
  ...{ output_index: place, summary_index: part, delta },
});
export const argumentsDelta = (place: number, delta: string) => ({
  type: "response.function_call_arguments.delta",
  ...{ output_index: place, delta },
});

export const message = (text: string, more: object = {}) => ({
  type: "message",
  role: "assistant",
  content: text === "" ? [] : [{ type: "output_text", text, annotations: [] }],
  ...more,
});
export const call = (id: string, args = "", more: object = {}) => ({
  type: "function_call",
  ...{ call_id: id, name: "f", arguments: args },
  ...more,
});
export const reasoning = (more: object = {}) => ({ type: "reasoning", id: "rs_1", summary: [], ...more });

export const completed = (output: object[] = [], more: object = {}) => ({
  type: "response.completed",
  response: { status: "completed", error: null, output, ...more },
});
export const incomplete = (reason: string, output: object[] = []) => ({
  type: "response.incomplete",
  response: { status: "incomplete", error: null, incomplete_details: { reason }, output },
});
