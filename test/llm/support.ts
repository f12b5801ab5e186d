// Feeding recorded or written bytes through reader and decoder, and holding the discipline over what comes out.

import { expect } from "vitest";
import type { LLMOutcome, LLMRequest } from "../../src/engine/ports.js";
import { EventReader } from "../../src/llm/http-sse.js";
import { type ModelSpec, originMark, type Protocol } from "../../src/llm/model-spec.js";
import type { Failure } from "../../src/llm/outcome.js";
import { ToolCallIds } from "../../src/llm/tool-call-ids.js";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { gemini } from "../../src/llm/wire/gemini.js";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import type { Wire } from "../../src/llm/wire/wire.js";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { userText } from "../../src/protocol/builders.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { SegmentWriter } from "../../src/protocol/segment.js";
import { validateStream } from "../../src/protocol/validate.js";

export const AT = "2026-07-18T03:10:22.000Z";

const PROTOCOL_OF = new Map<Wire, Protocol>([
  [anthropicMessages, "anthropic-messages"],
  [openaiChat, "openai-chat"],
  [openaiResponses, "openai-responses"],
  [gemini, "gemini"],
]);

export const protocolOf = (wire: Wire): Protocol => PROTOCOL_OF.get(wire) as Protocol;

/** What `fidelity.from` says of an answer that `decodeChunks` read by this protocol. */
export const fromOf = (protocol: Protocol): string => originMark(modelSpec({ protocol }));

export function modelSpec(changes: Partial<ModelSpec> = {}): ModelSpec {
  return {
    provider: "acme",
    modelId: "one",
    protocol: "openai-chat",
    baseUrl: "http://127.0.0.1:9/v1",
    contextWindow: 100_000,
    vision: true,
    thinking: true,
    ...changes,
  };
}

export function llmRequest(changes: Partial<LLMRequest> = {}): LLMRequest {
  return {
    sessionId: "session-1",
    systemPrompt: "be brief",
    tools: [],
    messages: [userText(AT, "hello")],
    thinkingLevel: "default",
    isCallIdTaken: () => false,
    signal: new AbortController().signal,
    ...changes,
  };
}

export interface Answer {
  messages: OmniMessage[];
  outcome: LLMOutcome;
}

let counter = 0;
const newId = (): string => `fresh${++counter}`;

export interface DecodeOptions {
  isTaken?: (id: string) => boolean;
  lost?: Failure;
  /** Default: the chat protocol. */
  wire?: Wire;
  toolNames?: string[];
}

/** Bytes, cut into chunks, through reader and decoder to messages and outcome; without any I/O. */
export function decodeChunks(chunks: Iterable<Uint8Array>, options: DecodeOptions = {}): Answer {
  const reader = new EventReader();
  const writer = new SegmentWriter(() => AT);
  const ids = new ToolCallIds(options.isTaken ?? (() => false), newId);
  const { wire = openaiChat, toolNames = [] } = options;
  const decoder = wire.decoder({ writer, ids, from: fromOf(protocolOf(wire)), toolNames });
  const messages: OmniMessage[] = [];
  const feed = (events: ReturnType<EventReader["end"]>) => {
    for (const event of events) decoder.push(event);
    messages.push(...writer.take());
  };
  for (const chunk of chunks) {
    feed(reader.push(Buffer.from(chunk)));
    if (decoder.done) break;
  }
  if (!decoder.done) feed(reader.end());
  const outcome = decoder.end(options.lost);
  messages.push(...writer.take());
  expectDiscipline(messages);
  return { messages, outcome };
}

export const decodeText = (text: string, options?: DecodeOptions): Answer => decodeChunks([Buffer.from(text)], options);

/** One chunk object for each argument, framed; strings stay as they are. */
export const sse = (...chunks: (object | string)[]): string =>
  chunks.map((chunk) => `data: ${typeof chunk === "string" ? chunk : JSON.stringify(chunk)}\n\n`).join("");

/** A chunk with this delta of choice 0. */
export const delta = (content: object, finish: string | null = null): object => ({
  choices: [{ index: 0, delta: content, finish_reason: finish }],
});

/** The segments as the provider's recorder describes them. */
export function segmentsOf(messages: readonly OmniMessage[]): Record<string, string>[] {
  const segments: Record<string, string>[] = [];
  for (const message of messages) {
    if (isPayload(message, "text")) segments.push({ type: "text", text: message.payload.text });
    else if (isPayload(message, "thinking")) segments.push({ type: "thinking", thinking: message.payload.thinking });
    else if (isPayload(message, "tool_call")) {
      const { tool_call_id: id, name, arguments: args } = message.payload;
      segments.push({ type: "tool_call", id, name, arguments: args });
    }
  }
  return segments;
}

export const complete = (messages: readonly OmniMessage[]): OmniMessage[] =>
  messages.filter((message) => !isPartial(message));

/** Every segment by the streaming discipline, and nothing left open. */
export function expectDiscipline(messages: readonly OmniMessage[]): void {
  const open = new PartialAggregator();
  for (const message of messages) open.push(message);
  expect(open.isEmpty).toBe(true);
  expect(validateStream(messages, { mode: "stream", joined: true, running: true })).toEqual([]);
}

/** The same text in pieces of `size` bytes. */
export function* pieces(bytes: Uint8Array, size: number): Generator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** What must not depend on where the bytes were cut. */
export const essence = ({ messages, outcome }: Answer): object => ({ complete: complete(messages), outcome });
