// Chat Completions against the types of `openai`. A new finish reason or member of a delta fails the type check until
// somebody says here what becomes of it.

import type { ChatCompletionChunk, ChatCompletionCreateParamsStreaming } from "openai/resources/chat/completions";
import { expect, test } from "vitest";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { complete } from "../llm/support.js";
import { bodyOf, IMAGE, read, SCHEMA, type Some } from "./canonical.js";

const PNG = { type: "image_url", image_url: { url: IMAGE } } as const;
const call = (id: string, path: string) =>
  ({ id, type: "function", function: { name: "read_file", arguments: `{"path":"${path}"}` } }) as const;

const BODY = {
  model: "gpt-5",
  stream: true,
  stream_options: { include_usage: true },
  max_completion_tokens: 32_000,
  reasoning_effort: "high",
  prompt_cache_key: "session-1",
  tools: [{ type: "function", function: { name: "read_file", description: "Reads a file.", parameters: SCHEMA } }],
  messages: [
    { role: "system", content: "be brief" },
    {
      role: "user",
      content: [
        { type: "text", text: "What is in a.txt and in this?" },
        PNG,
        { type: "text", text: "[file a.pdf]\n%PDF-1.4\n[end of a.pdf]" },
      ],
    },
    { role: "assistant", content: "Looking.", tool_calls: [call("call_a", "a.txt"), call("call_b", "b.png")] },
    { role: "tool", tool_call_id: "call_a", content: "no such file" },
    { role: "tool", tool_call_id: "call_b", content: "an image" },
    { role: "user", content: [{ type: "text", text: "[image from read_file]" }, PNG] },
    { role: "user", content: "Go on." },
  ],
} satisfies ChatCompletionCreateParamsStreaming;

test("what we send is a request of the vendor's, to the last member", () => {
  // The vendor's own models give no reasoning to send back; the fields of others are not in its types.
  expect(bodyOf(openaiChat, { provider: "openai", modelId: "gpt-5" }, { thought: {} })).toEqual(BODY);
});

const chunk = (delta: ChatCompletionChunk.Choice.Delta, finish_reason: ChatCompletionChunk.Choice["finish_reason"]) =>
  ({ choices: [{ index: 0, delta, finish_reason }] }) satisfies Some<ChatCompletionChunk>;

const USAGE = {
  choices: [],
  usage: {
    prompt_tokens: 12,
    completion_tokens: 5,
    total_tokens: 17,
    prompt_tokens_details: { cached_tokens: 8 },
    completion_tokens_details: { reasoning_tokens: 3 },
  },
} satisfies Some<ChatCompletionChunk>;

test("what the vendor sends is read", () => {
  const { messages, outcome } = read(openaiChat, [
    chunk({ role: "assistant", content: "" }, null),
    chunk({ content: "ok" }, null),
    chunk(
      { tool_calls: [{ index: 0, id: "a", type: "function", function: { name: "read_file", arguments: "" } }] },
      null,
    ),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '{"path":"x"}' } }] }, null),
    chunk({}, "tool_calls"),
    USAGE,
  ]);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "text", text: "ok" },
    { type: "tool_call", name: "read_file", arguments: '{"path":"x"}', tool_call_id: "a" },
  ]);
  expect(outcome.usage).toEqual({ cache_read: 8, cache_write: 4, output: 5, total: 17 });
});

/** What a member of a delta makes of an answer that is nothing else. */
const DELTAS: {
  [K in keyof Required<ChatCompletionChunk.Choice.Delta>]: {
    value: NonNullable<ChatCompletionChunk.Choice.Delta[K]>;
    made: string[];
    refused?: true;
  };
} = {
  content: { value: "ok", made: ["text"] },
  role: { value: "assistant", made: [] },
  function_call: { value: { name: "read_file", arguments: "{}" }, made: ["tool_call"] },
  tool_calls: { value: [{ index: 0, id: "a", function: { name: "read_file", arguments: "{}" } }], made: ["tool_call"] },
  // In place of an answer it is an error with the refusal's words.
  refusal: { value: "no", made: [], refused: true },
};

test.each(Object.entries(DELTAS))(
  "the member %s of a delta is read for what it is",
  (member, { value, made, refused }) => {
    const { messages, outcome } = read(openaiChat, [chunk({ [member]: value }, "stop")]);
    expect(complete(messages).map(({ payload }) => payload.type)).toEqual(made);
    expect(outcome.error?.kind).toBe(refused ? "content_filter" : undefined);
  },
);

const ENDS: Record<
  NonNullable<ChatCompletionChunk.Choice["finish_reason"]>,
  { status: string; truncated?: true; kind?: string }
> = {
  stop: { status: "completed" },
  tool_calls: { status: "completed" },
  function_call: { status: "completed" },
  length: { status: "completed", truncated: true },
  // Nothing was said before it.
  content_filter: { status: "failed", kind: "content_filter" },
};

test.each(Object.entries(ENDS))(
  "an answer that ended with %s ends as it should",
  (reason, { status, truncated, kind }) => {
    const { outcome } = read(openaiChat, [{ choices: [{ index: 0, delta: {}, finish_reason: reason }] }]);
    expect([outcome.status, outcome.truncated, outcome.error?.kind]).toEqual([status, truncated, kind]);
  },
);
