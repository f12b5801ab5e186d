// One conversation with everything a request may hold, and the bridge from typed events to our decoders. What the
// encoders make of it is written down once per protocol, in the vendor's own types: a change on their side fails the
// type check, a change on ours the test.

import type { LLMRequest } from "../../src/engine/ports.js";
import { type ModelSpec, originMark } from "../../src/llm/model-spec.js";
import type { Wire } from "../../src/llm/wire/wire.js";
import {
  assistantText,
  imageUrl,
  inlineData,
  thinking,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import type { Fidelity } from "../../src/protocol/payloads.js";
import { type Answer, AT, decodeChunks, llmRequest, modelSpec, protocolOf } from "../llm/support.js";

export const IMAGE = "data:image/png;base64,iVBORw0KGgo=";
const PDF = { mime_type: "application/pdf", data: "JVBERi0xLjQ=", file_name: "a.pdf" };
/** What `TOOL` takes. */
export const SCHEMA = {
  type: "object" as const,
  properties: { path: { type: "string" } },
  required: ["path"],
  additionalProperties: false,
};
const TOOL = { name: "read_file", description: "Reads a file.", parameters: SCHEMA };

/** What the assistant's messages carry of the provider's. */
export interface Carried {
  thought: Fidelity;
  hidden?: Fidelity;
  call?: Fidelity;
  text?: Fidelity;
}

/** The body that a wire sends for the conversation. */
export function bodyOf(wire: Wire, changes: Partial<ModelSpec>, carried: Carried): unknown {
  const model = modelSpec({ protocol: protocolOf(wire), maxOutputTokens: 32_000, ...changes });
  const own = (fidelity: Fidelity) => ({ fidelity: { ...fidelity, from: originMark(model) } });
  const messages: CompleteMessage[] = [
    userText(AT, "What is in a.txt and in this?"),
    imageUrl(AT, IMAGE),
    inlineData(AT, { role: "user", ...PDF }),
    thinking(AT, "Let me see.", own(carried.thought)),
    ...(carried.hidden === undefined ? [] : [thinking(AT, "", own(carried.hidden))]),
    assistantText(AT, "Looking.", carried.text === undefined ? {} : own(carried.text)),
    toolCall(AT, {
      name: "read_file",
      arguments: '{"path":"a.txt"}',
      tool_call_id: "call_a",
      ...(carried.call === undefined ? {} : own(carried.call)),
    }),
    toolCall(AT, { name: "read_file", arguments: '{"path":"b.png"}', tool_call_id: "call_b" }),
    toolCallOutput(AT, { output: "no such file", tool_call_id: "call_a", stop_reason: "failed" }),
    toolCallOutput(AT, { output: "an image", images: [IMAGE], tool_call_id: "call_b" }),
    userText(AT, "Go on."),
  ];
  const request: LLMRequest = llmRequest({ messages, tools: [TOOL], thinkingLevel: "high" });
  return JSON.parse(wire.encode(request, model).body);
}

/** Typed events through a decoder, as the provider's server would frame them. */
export function read(wire: Wire, events: readonly object[]): Answer {
  const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  return decodeChunks([Buffer.from(frames)], { wire, toolNames: ["read_file"] });
}

/** A vendor's type with everything optional: servers leave out, and so do these tests, what no decoder of ours reads. */
export type Some<T> = T extends readonly (infer E)[]
  ? Some<E>[]
  : T extends object
    ? { [K in keyof T]?: Some<T[K]> }
    : T;

/** One event of a union, its discriminant given. */
export type Event<T extends { type: unknown }> = T extends unknown
  ? { type: T["type"] } & Some<Omit<T, "type">>
  : never;

/** A vendor's type as it is in JSON: members of enumerations are strings. */
export type Json<T> = T extends string
  ? `${T}`
  : T extends readonly (infer E)[]
    ? Json<E>[]
    : T extends object
      ? { [K in keyof T]: Json<T[K]> }
      : T;
