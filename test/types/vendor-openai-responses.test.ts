// The Responses protocol against the types of `openai`. A new event, item, part, status or reason fails the type check
// until somebody says here what becomes of it.

import type {
  Response,
  ResponseContentPartDoneEvent,
  ResponseCreateParamsStreaming,
  ResponseOutputItem,
  ResponseStatus,
  ResponseStreamEvent,
} from "openai/resources/responses/responses";
import { expect, test } from "vitest";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import { complete, essence } from "../llm/support.js";
import { bodyOf, type Event, IMAGE, read, SCHEMA, type Some } from "./canonical.js";

const PNG = { type: "input_image", image_url: IMAGE, detail: "auto" } as const;

/** The SDK wants an id and a status on what an assistant said; the API takes it without. */
type Item<T> = T extends { type?: "message"; role: "assistant" } ? Some<T> : T;
type Body = Omit<ResponseCreateParamsStreaming, "input"> & {
  input: Item<Exclude<ResponseCreateParamsStreaming["input"], string | undefined>[number]>[];
};

const BODY = {
  model: "gpt-5",
  stream: true,
  store: false,
  stream_options: { include_obfuscation: false },
  include: ["reasoning.encrypted_content"],
  reasoning: { effort: "high", summary: "auto" },
  max_output_tokens: 32_000,
  prompt_cache_key: "session-1",
  instructions: "be brief",
  tools: [{ type: "function", name: "read_file", description: "Reads a file.", parameters: SCHEMA, strict: false }],
  input: [
    {
      type: "message",
      role: "user",
      content: [
        { type: "input_text", text: "What is in a.txt and in this?" },
        PNG,
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0xLjQ=" },
      ],
    },
    {
      type: "reasoning",
      id: "rs_1",
      summary: [{ type: "summary_text", text: "Let me see." }],
      encrypted_content: "ZW5j",
    },
    {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "Looking.", annotations: [] }],
      phase: "commentary",
    },
    { type: "function_call", call_id: "call_a", name: "read_file", arguments: '{"path":"a.txt"}' },
    { type: "function_call", call_id: "call_b", name: "read_file", arguments: '{"path":"b.png"}' },
    { type: "function_call_output", call_id: "call_a", output: "no such file" },
    { type: "function_call_output", call_id: "call_b", output: [{ type: "input_text", text: "an image" }, PNG] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "Go on." }] },
  ],
} satisfies Body;

const RETOLD = { type: "summary_text", text: "Let me see." } as const;
const SUMMARY = [RETOLD];

test("what we send is a request of the vendor's, to the last member", () => {
  const spec = { provider: "openai", modelId: "gpt-5", protocol: "openai-responses" } as const;
  const thought = { id: "rs_1", summary: SUMMARY, encrypted_content: "ZW5j" };
  expect(bodyOf(openaiResponses, spec, { thought, text: { phase: "commentary" } })).toEqual(BODY);
});

type Read = Event<ResponseStreamEvent>;

const USAGE = {
  input_tokens: 12,
  input_tokens_details: { cached_tokens: 8 },
  output_tokens: 5,
  output_tokens_details: { reasoning_tokens: 3 },
  total_tokens: 17,
} satisfies Some<Response["usage"]>;

const at = (output_index: number) => ({ output_index, item_id: `item_${output_index}` });
const THOUGHT = { type: "reasoning", id: "rs_1", summary: SUMMARY, encrypted_content: "ZW5j" } as const;
const CALL = { type: "function_call", call_id: "a", name: "read_file", arguments: '{"path":"x"}' } as const;

const STREAM = [
  { type: "response.output_item.added", output_index: 0, item: { type: "reasoning", id: "rs_1", summary: [] } },
  { type: "response.reasoning_summary_text.delta", ...at(0), summary_index: 0, delta: "Let me" },
  { type: "response.reasoning_summary_text.done", ...at(0), summary_index: 0, text: "Let me see." },
  { type: "response.reasoning_summary_part.done", ...at(0), summary_index: 0, part: RETOLD },
  { type: "response.output_item.done", output_index: 0, item: THOUGHT },
  { type: "response.reasoning_text.delta", ...at(1), content_index: 0, delta: "h" },
  { type: "response.reasoning_text.done", ...at(1), content_index: 0, text: "hm" },
  { type: "response.output_text.delta", ...at(2), content_index: 0, delta: "o" },
  { type: "response.output_text.done", ...at(2), content_index: 0, text: "ok" },
  { type: "response.content_part.done", ...at(2), content_index: 0, part: { type: "output_text", text: "ok" } },
  { type: "response.refusal.delta", ...at(3), content_index: 0, delta: " b" },
  { type: "response.refusal.done", ...at(3), content_index: 0, refusal: " but" },
  { type: "response.function_call_arguments.delta", ...at(4), delta: '{"path"' },
  { type: "response.function_call_arguments.done", ...at(4), arguments: '{"path":"x"}' },
  { type: "response.output_item.done", output_index: 4, item: CALL },
] satisfies Read[];
const COMPLETED = { type: "response.completed", response: { status: "completed", usage: USAGE } } satisfies Read;

test("what the vendor sends is read", () => {
  const { messages, outcome } = read(openaiResponses, [...STREAM, COMPLETED]);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "thinking", thinking: "Let me see.", fidelity: { encrypted_content: "ZW5j" } },
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "ok" },
    { type: "tool_call", name: "read_file", arguments: '{"path":"x"}', tool_call_id: "a" },
    { type: "text", text: " but" },
  ]);
  expect(outcome.usage).toEqual({ cache_read: 8, cache_write: 4, output: 5, total: 17 });
});

type Kind = ResponseStreamEvent["type"];

/** What is read in the middle of a stream, what ends it, and what tells us nothing that we show or keep. */
const KINDS: Record<Kind, "read" | "ends" | "ignored"> = {
  "response.output_item.added": "read",
  "response.output_item.done": "read",
  "response.content_part.done": "read",
  "response.output_text.delta": "read",
  "response.output_text.done": "read",
  "response.refusal.delta": "read",
  "response.refusal.done": "read",
  "response.reasoning_summary_part.done": "read",
  "response.reasoning_summary_text.delta": "read",
  "response.reasoning_summary_text.done": "read",
  "response.reasoning_text.delta": "read",
  "response.reasoning_text.done": "read",
  "response.function_call_arguments.delta": "read",
  "response.function_call_arguments.done": "read",
  "response.completed": "ends",
  "response.incomplete": "ends",
  "response.failed": "ends",
  error: "ends",
  "response.created": "ignored",
  "response.queued": "ignored",
  "response.in_progress": "ignored",
  "response.content_part.added": "ignored",
  "response.reasoning_summary_part.added": "ignored",
  "response.output_text.annotation.added": "ignored",
  "response.audio.delta": "ignored",
  "response.audio.done": "ignored",
  "response.audio.transcript.delta": "ignored",
  "response.audio.transcript.done": "ignored",
  "response.code_interpreter_call_code.delta": "ignored",
  "response.code_interpreter_call_code.done": "ignored",
  "response.code_interpreter_call.completed": "ignored",
  "response.code_interpreter_call.in_progress": "ignored",
  "response.code_interpreter_call.interpreting": "ignored",
  "response.file_search_call.completed": "ignored",
  "response.file_search_call.in_progress": "ignored",
  "response.file_search_call.searching": "ignored",
  "response.web_search_call.completed": "ignored",
  "response.web_search_call.in_progress": "ignored",
  "response.web_search_call.searching": "ignored",
  "response.image_generation_call.completed": "ignored",
  "response.image_generation_call.generating": "ignored",
  "response.image_generation_call.in_progress": "ignored",
  "response.image_generation_call.partial_image": "ignored",
  "response.mcp_call_arguments.delta": "ignored",
  "response.mcp_call_arguments.done": "ignored",
  "response.mcp_call.completed": "ignored",
  "response.mcp_call.failed": "ignored",
  "response.mcp_call.in_progress": "ignored",
  "response.mcp_list_tools.completed": "ignored",
  "response.mcp_list_tools.failed": "ignored",
  "response.mcp_list_tools.in_progress": "ignored",
  "response.custom_tool_call_input.delta": "ignored",
  "response.custom_tool_call_input.done": "ignored",
};
const kindsOf = (what: string): string[] => Object.keys(KINDS).filter((kind) => KINDS[kind as Kind] === what);

test("every kind of event that is read is in the stream that these tests read", () => {
  expect(new Set(STREAM.map(({ type }) => type))).toEqual(new Set(kindsOf("read")));
});

test.each(kindsOf("ignored"))("%s in the middle of a stream changes nothing", (type) => {
  const odd = { type, ...at(2), delta: "x", text: "x", code: "x", part: { type: "output_text", text: "" } };
  const [head, tail] = [STREAM.slice(0, 8), [...STREAM.slice(8), COMPLETED]];
  const plain = read(openaiResponses, [...head, ...tail]);
  expect(essence(read(openaiResponses, [...head, odd, ...tail]))).toEqual(essence(plain));
});

const ITEMS: Record<ResponseOutputItem["type"], "shown" | "kept"> = {
  message: "shown",
  reasoning: "shown",
  function_call: "shown",
  additional_tools: "kept",
  apply_patch_call: "kept",
  apply_patch_call_output: "kept",
  code_interpreter_call: "kept",
  compaction: "kept",
  computer_call: "kept",
  computer_call_output: "kept",
  custom_tool_call: "kept",
  custom_tool_call_output: "kept",
  file_search_call: "kept",
  function_call_output: "kept",
  image_generation_call: "kept",
  local_shell_call: "kept",
  local_shell_call_output: "kept",
  mcp_approval_request: "kept",
  mcp_approval_response: "kept",
  mcp_call: "kept",
  mcp_list_tools: "kept",
  program: "kept",
  program_output: "kept",
  shell_call: "kept",
  shell_call_output: "kept",
  tool_search_call: "kept",
  tool_search_output: "kept",
  web_search_call: "kept",
};
const kept = Object.keys(ITEMS).filter((type) => ITEMS[type as ResponseOutputItem["type"]] === "kept");

test.each(kept)("an item of type %s is kept whole, to go back in front of what came behind it", (type) => {
  const item = { type, id: "x_1", status: "completed", action: { query: "q" } };
  const { messages } = read(openaiResponses, [
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.output_text.delta", ...at(1), delta: "ok" },
    COMPLETED,
  ]);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "text", text: "ok", fidelity: { before: [item] } },
  ]);
});

const PARTS: Record<ResponseContentPartDoneEvent["part"]["type"], { field: string; kind: string }> = {
  output_text: { field: "text", kind: "text" },
  reasoning_text: { field: "text", kind: "thinking" },
  // In place of an answer it is an error with the refusal's words.
  refusal: { field: "refusal", kind: "content_filter" },
};

test.each(Object.entries(PARTS))("a part of type %s that was not streamed is read whole", (type, { field, kind }) => {
  const { messages, outcome } = read(openaiResponses, [
    { type: "response.content_part.done", ...at(0), content_index: 0, part: { type, [field]: "so" } },
    COMPLETED,
  ]);
  const made = complete(messages).map(({ payload }) => payload.type);
  expect(made).toEqual(kind === "content_filter" ? [] : [kind]);
  expect(outcome.error?.kind).toBe(kind === "content_filter" ? kind : undefined);
});

const ENDS: Record<ResponseStatus, string> = {
  completed: "completed",
  incomplete: "completed",
  failed: "failed",
  cancelled: "failed",
  // Not an end, whatever the event is called that says so; the event's own name counts.
  in_progress: "completed",
  queued: "completed",
};

test.each(Object.entries(ENDS))("a response whose status is %s ends as it should", (status, ended) => {
  const { outcome } = read(openaiResponses, [...STREAM, { type: "response.completed", response: { status } }]);
  expect(outcome.status).toBe(ended);
});

const REASONS: Record<NonNullable<Response.IncompleteDetails["reason"]>, { truncated?: true }> = {
  max_output_tokens: { truncated: true },
  content_filter: {},
};

test.each(Object.entries(REASONS))("an answer that was cut for %s says so", (reason, { truncated }) => {
  const response = { status: "incomplete", incomplete_details: { reason } };
  const { outcome } = read(openaiResponses, [...STREAM, { type: "response.incomplete", response }]);
  expect(outcome).toMatchObject({ status: "completed", finishReason: reason });
  expect(outcome.truncated).toBe(truncated);
});
