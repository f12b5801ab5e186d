// One answer in each protocol, as its provider frames it: thinking, then text, then a tool call whose arguments stream.

export type Spoken = "openai-chat" | "openai-responses" | "anthropic-messages" | "gemini";

/** Deltas of one answer; the few events around them are not counted. */
export const DELTAS = 2_000;
/** Events of one read of the network. */
const PER_READ = 16;

const THINKING = 600;
const TEXT = 1_000;
const ARGUMENTS = DELTAS - THINKING - TEXT;
const WORDS = [" the", " quick", " brown", " föx", ",", " jumps", " over", "\n\n", " lazy", " dog", " — ", "."];

const word = (n: number): string => WORDS[n % WORDS.length] as string;
const words = (count: number): string[] => Array.from({ length: count }, (_, n) => word(n));
/** Pieces that are one JSON object together. */
const pieces = (): string[] => ['{"path":"a.txt","content":"', ...words(ARGUMENTS - 2).map(escaped), '"}'];
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

/** The answer as reads of the network. */
export function readsOf(protocol: Spoken): Buffer[] {
  const frames = FRAMES[protocol]();
  return Array.from({ length: Math.ceil(frames.length / PER_READ) }, (_, n) =>
    Buffer.from(frames.slice(n * PER_READ, (n + 1) * PER_READ).join("")),
  );
}

const FRAMES: Record<Spoken, () => string[]> = {
  "openai-chat": chatFrames,
  "openai-responses": responsesFrames,
  "anthropic-messages": anthropicFrames,
  gemini: geminiFrames,
};

const unnamed = (event: object): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: { type: string } & Record<string, unknown>): string =>
  `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;

function chatFrames(): string[] {
  const envelope = { id: "chatcmpl-9f2c", object: "chat.completion.chunk", created: 1_767_225_600, model: "model-1" };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    unnamed({ ...envelope, choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  const call = { index: 0, id: "call_1", type: "function", function: { name: "write_file", arguments: "" } };
  return [
    ...words(THINKING).map((reasoning_content) => chunk({ reasoning_content })),
    ...words(TEXT).map((content) => chunk({ content })),
    chunk({ tool_calls: [call] }),
    ...pieces().map((args) => chunk({ tool_calls: [{ index: 0, function: { arguments: args } }] })),
    chunk({}, "tool_calls"),
    unnamed({ ...envelope, choices: [], usage: { prompt_tokens: 9, completion_tokens: 9, total_tokens: 18 } }),
    "data: [DONE]\n\n",
  ];
}

function responsesFrames(): string[] {
  let sequence_number = 0;
  const event = (type: string, more: object) => named({ type, sequence_number: sequence_number++, ...more });
  const within = (output_index: number) => ({ item_id: `item_0123456789abcdef_${output_index}`, output_index });
  const item = (output_index: number, type: string, more: object = {}) => ({
    output_index,
    item: { id: within(output_index).item_id, type, ...more },
  });
  const thought = words(THINKING).join("");
  const said = words(TEXT).join("");
  const call = { call_id: "call_1", name: "write_file" };
  return [
    event("response.output_item.added", item(0, "reasoning", { summary: [] })),
    ...words(THINKING).map((delta) =>
      event("response.reasoning_summary_text.delta", { ...within(0), summary_index: 0, delta }),
    ),
    event("response.output_item.done", item(0, "reasoning", { summary: [{ type: "summary_text", text: thought }] })),
    event("response.output_item.added", item(1, "message", { role: "assistant", content: [] })),
    ...words(TEXT).map((delta) =>
      event("response.output_text.delta", { ...within(1), content_index: 0, delta, logprobs: [] }),
    ),
    event("response.output_item.done", item(1, "message", { content: [{ type: "output_text", text: said }] })),
    event("response.output_item.added", item(2, "function_call", { ...call, arguments: "" })),
    ...pieces().map((delta) => event("response.function_call_arguments.delta", { ...within(2), delta })),
    event("response.output_item.done", item(2, "function_call", { ...call, arguments: pieces().join("") })),
    event("response.completed", { response: { status: "completed", output: [] } }),
  ];
}

function anthropicFrames(): string[] {
  const block = (index: number, content_block: object, deltas: object[]) => [
    named({ type: "content_block_start", index, content_block }),
    ...deltas.map((delta) => named({ type: "content_block_delta", index, delta })),
    named({ type: "content_block_stop", index }),
  ];
  const call = { type: "tool_use", id: "toolu_1", name: "write_file", input: {} };
  return [
    named({ type: "message_start", message: { content: [], usage: { input_tokens: 9, output_tokens: 1 } } }),
    ...block(
      0,
      { type: "thinking", thinking: "", signature: "" },
      words(THINKING).map((thinking) => ({ type: "thinking_delta", thinking })),
    ),
    ...block(
      1,
      { type: "text", text: "" },
      words(TEXT).map((text) => ({ type: "text_delta", text })),
    ),
    ...block(
      2,
      call,
      pieces().map((partial_json) => ({ type: "input_json_delta", partial_json })),
    ),
    named({ type: "message_delta", delta: { stop_reason: "tool_use" }, usage: { output_tokens: 9 } }),
    named({ type: "message_stop" }),
  ];
}

/** Calls come whole here, so that text takes their place. */
function geminiFrames(): string[] {
  const tail = { modelVersion: "gemini-2.5-flash", responseId: "Zm9vYmFyYmF6" };
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 9, totalTokenCount: 18 };
  const chunk = (part: object, more: object = {}) =>
    `data: ${JSON.stringify({
      candidates: [{ content: { parts: [part], role: "model" }, index: 0, ...more }],
      usageMetadata,
      ...tail,
    })}\r\n\r\n`;
  return [
    ...words(THINKING).map((text) => chunk({ text, thought: true })),
    ...words(TEXT + ARGUMENTS).map((text) => chunk({ text })),
    chunk({ functionCall: { name: "write_file", args: { path: "a.txt" } } }, { finishReason: "STOP" }),
  ];
}
