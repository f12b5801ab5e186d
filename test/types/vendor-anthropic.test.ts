// Anthropic Messages against the types of `@anthropic-ai/sdk`. A new event, block, delta or stop reason fails the type
// check until somebody says here what becomes of it.

import type {
  ContentBlock,
  MessageCreateParamsStreaming,
  RawContentBlockDelta,
  RawMessageStreamEvent,
  StopReason,
} from "@anthropic-ai/sdk/resources/messages/messages";
import { expect, test } from "vitest";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { complete } from "../llm/support.js";
import { bodyOf, type Event, read, SCHEMA } from "./canonical.js";

const MARK = { cache_control: { type: "ephemeral" } } as const;
const PNG = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } } as const;

const BODY = {
  model: "claude-opus-4-7",
  max_tokens: 32_000,
  stream: true,
  system: [{ type: "text", text: "be brief", ...MARK }],
  tools: [{ name: "read_file", description: "Reads a file.", input_schema: SCHEMA, ...MARK }],
  tool_choice: { type: "auto" },
  messages: [
    {
      role: "user",
      content: [
        { type: "text", text: "What is in a.txt and in this?" },
        PNG,
        {
          type: "document",
          source: { type: "base64", media_type: "application/pdf", data: "JVBERi0xLjQ=" },
          title: "a.pdf",
          ...MARK,
        },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Let me see.", signature: "U2ln" },
        { type: "redacted_thinking", data: "UmVk" },
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "call_a", name: "read_file", input: { path: "a.txt" } },
        { type: "tool_use", id: "call_b", name: "read_file", input: { path: "b.png" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "call_a", content: "no such file", is_error: true },
        { type: "tool_result", tool_use_id: "call_b", content: [{ type: "text", text: "an image" }, PNG] },
        { type: "text", text: "Go on.", ...MARK },
      ],
    },
  ],
  thinking: { type: "adaptive", display: "summarized" },
  output_config: { effort: "high" },
} satisfies MessageCreateParamsStreaming;

/** For models that think within a budget. */
const BUDGET = { type: "enabled", budget_tokens: 16_384 } satisfies MessageCreateParamsStreaming["thinking"];

const CARRIED = { thought: { signature: "U2ln" }, hidden: { redacted_thinking: "UmVk" } };
const CLAUDE = { provider: "anthropic", protocol: "anthropic-messages" } as const;

test("what we send is a request of the vendor's, to the last member", () => {
  expect(bodyOf(anthropicMessages, { ...CLAUDE, modelId: "claude-opus-4-7" }, CARRIED)).toEqual(BODY);
  const { output_config: _, ...older } = { ...BODY, model: "claude-sonnet-4-5", thinking: BUDGET };
  expect(bodyOf(anthropicMessages, { ...CLAUDE, modelId: "claude-sonnet-4-5" }, CARRIED)).toEqual(older);
});

type Read = Event<RawMessageStreamEvent>;

const EVENTS = [
  { type: "message_start", message: { role: "assistant", content: [], usage: { input_tokens: 7, output_tokens: 1 } } },
  { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
  { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
  { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "U2ln" } },
  { type: "content_block_stop", index: 0 },
  { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "UmVk" } },
  { type: "content_block_stop", index: 1 },
  { type: "content_block_start", index: 2, content_block: { type: "text", text: "", citations: [] } },
  { type: "content_block_delta", index: 2, delta: { type: "citations_delta", citation: { cited_text: "so" } } },
  { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "ok" } },
  { type: "content_block_stop", index: 2 },
  { type: "content_block_start", index: 3, content_block: { type: "tool_use", id: "a", name: "read_file", input: {} } },
  { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '{"path":"x"}' } },
  { type: "content_block_stop", index: 3 },
  {
    type: "message_delta",
    delta: { stop_reason: "tool_use" },
    usage: { cache_read_input_tokens: 5, cache_creation_input_tokens: 2, output_tokens: 9 },
  },
  { type: "message_stop" },
] satisfies Read[];

test("what the vendor sends is read, to the last kind of event", () => {
  const kinds: Record<RawMessageStreamEvent["type"], true> = {
    message_start: true,
    message_delta: true,
    message_stop: true,
    content_block_start: true,
    content_block_delta: true,
    content_block_stop: true,
  };
  const deltas: Record<RawContentBlockDelta["type"], true> = {
    text_delta: true,
    input_json_delta: true,
    citations_delta: true,
    thinking_delta: true,
    signature_delta: true,
  };
  expect(new Set(EVENTS.map(({ type }) => type))).toEqual(new Set(Object.keys(kinds)));
  const seen = EVENTS.flatMap((event) => (event.type === "content_block_delta" ? [event.delta.type] : []));
  expect(new Set(seen)).toEqual(new Set(Object.keys(deltas)));

  const { messages, outcome } = read(anthropicMessages, EVENTS);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "thinking", thinking: "hm", fidelity: { signature: "U2ln" } },
    { type: "thinking", thinking: "", fidelity: { redacted_thinking: "UmVk" } },
    { type: "text", text: "ok", fidelity: { citations: [{ cited_text: "so" }] } },
    { type: "tool_call", name: "read_file", arguments: '{"path":"x"}', tool_call_id: "a" },
  ]);
  expect(outcome.usage).toMatchObject({ cache_read: 5, cache_write: 9, output: 9 });
});

const BLOCKS: Record<ContentBlock["type"], "shown" | "kept"> = {
  text: "shown",
  thinking: "shown",
  redacted_thinking: "shown",
  tool_use: "shown",
  server_tool_use: "kept",
  web_search_tool_result: "kept",
  web_fetch_tool_result: "kept",
  code_execution_tool_result: "kept",
  bash_code_execution_tool_result: "kept",
  text_editor_code_execution_tool_result: "kept",
  tool_search_tool_result: "kept",
  container_upload: "kept",
};
const kept = Object.keys(BLOCKS).filter((type) => BLOCKS[type as ContentBlock["type"]] === "kept");

test.each(kept)("a block of type %s is kept whole, to go back in front of what came behind it", (type) => {
  const block = { type, id: "srv_1", content: { data: "AA==" } };
  const { messages } = read(anthropicMessages, [
    { type: "content_block_start", index: 0, content_block: block },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "ok" } },
    { type: "content_block_stop", index: 1 },
    { type: "message_stop" },
  ]);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "text", text: "ok", fidelity: { blocks_before: [block] } },
  ]);
});

const ENDS: Record<StopReason, { status: string; truncated?: true; pause?: true }> = {
  end_turn: { status: "completed" },
  tool_use: { status: "completed" },
  stop_sequence: { status: "completed" },
  max_tokens: { status: "completed", truncated: true },
  model_context_window_exceeded: { status: "completed", truncated: true },
  pause_turn: { status: "completed", pause: true },
  // Nothing was said.
  refusal: { status: "failed" },
};

test.each(Object.entries(ENDS))("an answer that ended with %s ends as it should", (stop_reason, end) => {
  const { outcome } = read(anthropicMessages, [
    { type: "message_start", message: { content: [] } },
    { type: "message_delta", delta: { stop_reason } },
    { type: "message_stop" },
  ]);
  const { status, truncated, pause } = outcome;
  expect({ status, truncated, pause }).toEqual({ truncated: undefined, pause: undefined, ...end });
});
