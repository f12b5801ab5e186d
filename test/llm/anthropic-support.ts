// Contexts and what the encoder of the Messages protocol makes of them; every body is held against the protocol's rules.

import { expect } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import { type ModelSpec, originMark } from "../../src/llm/model-spec.js";
import { encodeAnthropic } from "../../src/llm/wire/anthropic-messages-encode.js";
import { thinking, toolCall, toolCallOutput, userText } from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { type Body, brokenRules } from "./anthropic-rules.js";
import { AT, llmRequest, modelSpec } from "./support.js";

export type Json = Record<string, unknown>;

export const spec = (changes: Partial<ModelSpec>): ModelSpec =>
  modelSpec({ protocol: "anthropic-messages", modelId: "claude-sonnet-4-5", ...changes });
export const CLAUDE = originMark(spec({}));

export function bodyOf(
  messages: CompleteMessage[],
  model: Partial<ModelSpec> = {},
  request: Partial<LLMRequest> = {},
): Body {
  const json = encodeAnthropic(llmRequest({ messages, ...request }), spec(model)).body;
  const body = JSON.parse(json) as Body;
  expect(brokenRules(body, json)).toEqual([]);
  return body;
}

/** The messages without their cache marks. */
export const encode = (messages: CompleteMessage[], model: Partial<ModelSpec> = {}): Json[] =>
  bodyOf(messages, model).messages.map(({ role, content }) => ({
    role,
    content: content.map(({ cache_control: _mark, ...block }) => block),
  }));

export const call = (id: string, args = "{}", fidelity?: Json) =>
  toolCall(AT, { name: "f", arguments: args, tool_call_id: id, ...(fidelity === undefined ? {} : { fidelity }) });
export const output = (
  id: string,
  text = "out",
  more: { images?: string[]; stop_reason?: "failed" | "aborted" } = {},
) => toolCallOutput(AT, { output: text, tool_call_id: id, ...more });
export const signed = (text: string, signature: string) =>
  thinking(AT, text, { fidelity: { signature, from: CLAUDE } });
export const hidden = (data: string) => thinking(AT, "", { fidelity: { redacted_thinking: data, from: CLAUDE } });
export const PNG = "data:image/png;base64,AAAA";
export const PNG_BLOCK = { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } };
export const text = (words: string) => ({ type: "text", text: words });
export const use = (id: string, input: object = {}) => ({ type: "tool_use", id, name: "f", input });
export const result = (id: string, content: unknown = "out") => ({ type: "tool_result", tool_use_id: id, content });
export const go = userText(AT, "go");
export const GO = { role: "user", content: [text("go")] };
