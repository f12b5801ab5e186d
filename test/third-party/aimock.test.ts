// Agent runs against a mock of the providers that others wrote: what it makes of our requests, and what we make of its
// answers, on all four protocols. The server is the real one, and every stream and Trace is held against the validator.

import { type ChatCompletionRequest, LLMock } from "@copilotkit/aimock";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import type { Protocol } from "../../src/llm/model-spec.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { at, expectLawful, makeSession, payloads } from "../e2e/api.js";
import { type RealServer, startRealServer } from "../support/real-server.js";
import { openSse } from "../support/sse-client.js";

vi.setConfig({ testTimeout: 60_000 });

const KEY = "sk-right-0123456789";
const WRONG_KEY = "sk-wrong-9876543210";

const PROTOCOLS: { protocol: Exclude<Protocol, "demo">; path: string }[] = [
  { protocol: "openai-chat", path: "/v1" },
  { protocol: "openai-responses", path: "/v1" },
  { protocol: "anthropic-messages", path: "" },
  { protocol: "gemini", path: "" },
];
const MODEL_IDS: Record<string, string> = { "anthropic-messages": "claude-sonnet-4-5", gemini: "gemini-2.5-flash" };
const modelIdOf = (protocol: string): string => MODEL_IDS[protocol] ?? "gpt-4.1";

let mock: LLMock;
let server: RealServer;

beforeEach(async () => {
  mock = new LLMock({ port: 0, strict: true, chunkSize: 4, auth: { apiKeys: [KEY] } });
  const url = await mock.start();
  onTestFinished(() => mock.stop());
  const models = PROTOCOLS.flatMap(({ protocol, path }) =>
    [KEY, WRONG_KEY].map((apiKey) => ({
      ...{ provider: apiKey === KEY ? protocol : `${protocol}-locked`, modelId: modelIdOf(protocol), protocol, apiKey },
      baseUrl: url + path,
    })),
  );
  const env = { OMNID_CONFIG: "/models.json", OMNID_RETRY_BASE_MS: "10", OMNID_RETRY_LIMIT: "2" };
  server = await startRealServer(env, { "/models.json": JSON.stringify({ models }) });
});

async function open(protocol: string, provider = protocol): Promise<string> {
  return makeSession(server, { provider, modelId: modelIdOf(protocol), approvalMode: "allow-all" });
}

/** Prompts, and holds what came of it to every guarantee. */
async function play(id: string, input: string): Promise<OmniMessage[]> {
  const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input } });
  await reader.ended;
  await expectLawful(server, id, reader.messages, { joined: true });
  return reader.messages;
}

const said = (messages: readonly OmniMessage[]): string[] => payloads(messages, "text").map(({ text }) => text);
const ends = (messages: readonly OmniMessage[]) => payloads(messages, "request_end");
/** What the mock understood of a request; it translates every protocol into the messages of one. */
function understood(number: number): ChatCompletionRequest["messages"] {
  const body = mock.getRequests()[number]?.body as ChatCompletionRequest | undefined;
  return body?.messages ?? [];
}
/** Under the name that each protocol has for it. */
const USAGE = {
  ...{ prompt_tokens: 12, completion_tokens: 5, input_tokens: 12, output_tokens: 5 },
  ...{ promptTokenCount: 12, candidatesTokenCount: 5, totalTokenCount: 17 },
};

const TWO_CALLS = [
  { name: "exec_command", arguments: '{"cmd":"echo one"}', id: "call_1" },
  { name: "exec_command", arguments: '{"cmd":"echo two >&2; exit 3"}', id: "call_2" },
];

describe.each(PROTOCOLS)("$protocol", ({ protocol }) => {
  test("an answer comes in fragments, is recorded whole, and is part of the next request", async () => {
    const content = "Grüezi! 👋 Nice to meet you.";
    mock.onMessage("hello", { content, usage: USAGE }).onMessage("bye", { content: "Adieu." });
    const id = await open(protocol);
    const messages = await play(id, "hello");
    expect(said(messages)).toEqual([content]);
    expect(payloads(messages, "partial_text").length).toBeGreaterThan(4);
    expect(ends(messages)).toMatchObject([{ status: "completed" }]);
    expect(payloads(messages, "token_usage")[0]?.request).toMatchObject({ cache_read: 0, cache_write: 12, output: 5 });

    expect(said(await play(id, "bye"))).toEqual(["Adieu."]);
    const conversation = understood(1).filter(({ role }) => role !== "system");
    expect(conversation.map(({ role, content }) => [role, textOf(content)])).toEqual([
      ["user", "hello"],
      ["assistant", content],
      ["user", "bye"],
    ]);
  });

  test("parallel calls run, and their outputs go back paired and in call order, turn after turn", async () => {
    mock.on({ userMessage: "look", hasToolResult: false }, { content: "Looking.", toolCalls: TWO_CALLS });
    mock.on({ userMessage: "look", hasToolResult: true }, { content: "Seen." });
    mock.onMessage("and now", { content: "Nothing more." });
    const id = await open(protocol);
    const messages = await play(id, "look");
    expect(said(messages)).toEqual(["Looking.", "Seen."]);
    expect(payloads(messages, "tool_call").map(({ arguments: args }) => args)).toEqual(
      TWO_CALLS.map(({ arguments: args }) => args),
    );
    const outputs = new Map(payloads(messages, "tool_call_output").map((each) => [each.tool_call_id, each.output]));
    expect(outputs.size).toBe(2);

    await play(id, "and now");
    for (const number of [1, 2]) {
      const results = understood(number).filter(({ role }) => role === "tool");
      expect(results.map(({ content }) => textOf(content))).toEqual([
        expect.stringContaining("one"),
        expect.stringContaining("two"),
      ]);
      const calls = understood(number).flatMap(({ tool_calls = [] }) => tool_calls);
      expect(calls.map(({ function: { arguments: args } }) => JSON.parse(args))).toEqual(
        TWO_CALLS.map(({ arguments: args }) => JSON.parse(args)),
      );
      expect(results.map(({ tool_call_id }) => tool_call_id)).toEqual(calls.map(({ id }) => id));
    }
  });

  test("F16: a key that is refused is said so at once, is never shown, and is not tried again", async () => {
    mock.onMessage("hello", { content: "Hello." });
    const messages = await play(await open(protocol, `${protocol}-locked`), "hello");
    expect(ends(messages)).toMatchObject([{ status: "failed", error: { kind: "auth" } }]);
    expect(JSON.stringify(messages)).not.toContain(WRONG_KEY);
    expect(mock.getRequests().filter(({ response }) => response.status === 200)).toEqual([]);
  });

  test("a rate limit is waited out, and the Task goes on", async () => {
    const busy = { error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded" } };
    mock.on({ userMessage: "hello", sequenceIndex: 0 }, { ...busy, status: 429, retryAfter: 0 });
    mock.on({ userMessage: "hello", sequenceIndex: 1 }, { content: "At last." });
    const messages = await play(await open(protocol), "hello");
    expect(ends(messages)).toMatchObject([
      { status: "timeout", error: { kind: "rate_limit", http_status: 429 } },
      { status: "completed" },
    ]);
    expect(said(messages)).toEqual(["At last."]);
  });

  test("F15: a cut within the answer loses nothing: it is said to be one, and asked for again", async () => {
    const content = "A long answer that takes more than a few fragments to say.";
    mock.on({ userMessage: "hello", sequenceIndex: 0 }, { content }, { truncateAfterChunks: 6 });
    mock.on({ userMessage: "hello", sequenceIndex: 1 }, { content });
    const messages = await play(await open(protocol), "hello");
    const [first, second] = ends(messages);
    expect(["malformed", "timeout"]).toContain(first?.status);
    expect(second).toMatchObject({ status: "completed" });
    expect(said(messages).at(-1)).toBe(content);
  });

  test("F15: a call that a cut left half said is not run", async () => {
    const args = JSON.stringify({ cmd: `echo ${"x".repeat(200)}` });
    const call = { toolCalls: [{ name: "exec_command", arguments: args, id: "call_1" }] };
    // Gemini sends calls whole: there the cut falls in front of it.
    mock.on({ userMessage: "run", sequenceIndex: 0 }, call, { truncateAfterChunks: protocol === "gemini" ? 1 : 9 });
    mock.on({ userMessage: "run", sequenceIndex: 1 }, { content: "No." });
    const messages = await play(await open(protocol), "run");
    expect(ends(messages).at(-1)).toMatchObject({ status: "completed" });
    expect(payloads(messages, "approval_decision").filter(({ decision }) => decision === "allow")).toEqual([]);
    expect(payloads(messages, "tool_call").every(({ stop_reason }) => stop_reason !== undefined)).toBe(true);
  });
});

const textOf = (content: ChatCompletionRequest["messages"][number]["content"]): string =>
  typeof content === "string" ? content : (content ?? []).map(({ text = "" }) => text).join("");
