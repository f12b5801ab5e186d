import { describe, expect, test } from "vitest";
import { failure } from "../../src/llm/outcome.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { ManualClock } from "./manual-clock.js";
import {
  added,
  argumentsDelta,
  call,
  completed,
  decodeBytes,
  decodeEvents,
  done,
  incomplete,
  message,
  reasoning,
  textDelta,
} from "./openai-responses-support.js";
import { complete, sse } from "./support.js";
import { drain, SILENCE_MS, start, streamHead, Upstream } from "./upstream.js";

const stops = (messages: OmniMessage[]) =>
  complete(messages).map((message) => (message.payload as { stop_reason?: string }).stop_reason);
const said = [added(0, message("")), textDelta(0, "a")];

describe("how an answer ends", () => {
  test("an output limit is completed and truncated; only the call that it cut is malformed", () => {
    const { messages, outcome } = decodeEvents(
      ...[added(0, call("a")), done(0, call("a", "", { status: "completed" })), added(1, call("b"))],
      incomplete("max_output_tokens"),
    );
    expect(outcome).toMatchObject({ status: "completed", truncated: true, finishReason: "max_output_tokens" });
    expect(stops(messages)).toEqual([undefined, "malformed"]);
  });

  test("a filter without text is a failure, after text it is completed and not truncated", () => {
    const failed = { status: "failed", error: { kind: "content_filter" }, finishReason: "content_filter" };
    expect(decodeEvents(incomplete("content_filter")).outcome).toMatchObject(failed);
    const { outcome } = decodeEvents(...said, incomplete("content_filter"));
    expect(outcome).toMatchObject({ status: "completed", finishReason: "content_filter" });
    expect(outcome.truncated).toBeUndefined();
  });

  test("a refusal after text, or beside a call, is text", () => {
    const refusal = { type: "message", content: [{ type: "refusal", refusal: "No more." }] };
    const { messages, outcome } = decodeEvents(...said, done(0, message("a")), done(1, refusal), completed());
    expect(outcome.status).toBe("completed");
    expect(complete(messages).map(({ payload }) => (payload as { text?: string }).text)).toEqual(["a", "No more."]);
    expect(decodeEvents(done(0, refusal), done(1, call("a", "{}")), completed()).outcome.status).toBe("completed");
  });

  test("[DONE] and items that are all done prove nothing", () => {
    const { messages, outcome } = decodeEvents(...said, done(0, message("a")), "[DONE]");
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stops(messages)).toEqual([undefined]);
    expect(stops(decodeEvents(...said, "[DONE]").messages)).toEqual(["malformed"]);
  });

  test("the last word counts: another end, a status in the end, an error behind it", () => {
    expect(decodeEvents(completed(), incomplete("max_output_tokens")).outcome).toMatchObject({ truncated: true });
    const status = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
    expect(decodeEvents(completed([], status)).outcome).toMatchObject({ truncated: true });
    expect(decodeEvents(completed([], { status: "failed" })).outcome.status).toBe("failed");
    expect(decodeEvents(completed([], { status: "cancelled" })).outcome.status).toBe("failed");
    expect(decodeEvents(completed(), { type: "error", code: "server_error", message: "x" }).outcome.status).toBe(
      "timeout",
    );
    expect(decodeEvents(completed(), ...said, done(1, call("a", "{}"))).messages).toEqual([]);
    expect(decodeEvents(completed(), "[DONE]", { error: "x" }).outcome.status).toBe("completed");
  });

  test.each([
    ["server_error", "timeout"],
    ["rate_limit_exceeded", "rate_limit"],
    ["insufficient_quota", "invalid_request"],
    ["invalid_prompt", "invalid_request"],
    ["invalid_image_url", "invalid_request"],
    ["image_content_policy_violation", "content_filter"],
    ["context_length_exceeded", "context_overflow"],
    ["vector_store_timeout", "timeout"],
    ["never_heard_of", "unknown"],
  ])("F16: %s is %s, announced by `error`, by `response.failed`, by both or by a body", (code, kind) => {
    const event = { type: "error", code, message: "first", param: null };
    const failed = { type: "response.failed", response: { status: "failed", error: { code, message: "first" } } };
    const texts = [
      sse(event),
      sse({ type: "error", error: { type: code, message: "first" } }),
      sse(...said, event, { ...failed, response: { error: { code: "server_error", message: "second" } } }),
      sse(failed),
      `event: error\ndata: ${JSON.stringify({ error: { code, message: "first" } })}\n\n`,
      JSON.stringify({ error: { code, message: "first" } }),
      JSON.stringify({ object: "response", status: "failed", output: [], error: { code, message: "first" } }),
    ];
    for (const text of texts) expect(decodeBytes(text).outcome.error).toEqual({ kind, message: "first" });
  });

  test("an event that is not JSON is malformed and what was open is closed as such", () => {
    const { messages, outcome } = decodeEvents(...said, "{broken", completed());
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stops(messages)).toEqual(["malformed"]);
    expect(decodeBytes("event: error\ndata: overloaded\n\n").outcome.error?.kind).toBe("overloaded");
  });

  test("a lost connection is the outcome before the end and no matter after it", () => {
    const lost = failure("network", "reset");
    expect(decodeBytes(sse(...said), { lost }).outcome).toMatchObject({
      status: "timeout",
      error: { kind: "network" },
    });
    expect(decodeBytes(sse(...said, completed()), { lost }).outcome.status).toBe("completed");
  });

  test("an answer that is empty and ended well is completed with nothing", () => {
    expect(decodeEvents(added(0, message("")), done(0, message("")), completed())).toMatchObject({
      messages: [],
      outcome: { status: "completed", usage: { total: 0 } },
    });
    expect(decodeEvents(added(0, reasoning()), done(0, reasoning()), completed()).messages).toEqual([]);
  });

  test("usage is the response's own, input counted once and reasoning with the output", () => {
    const usage = {
      ...{ input_tokens: 10, output_tokens: 7, total_tokens: 17 },
      input_tokens_details: { cached_tokens: 6, cache_write_tokens: 3 },
      output_tokens_details: { reasoning_tokens: 5 },
    };
    const right = { cache_read: 6, cache_write: 4, output: 7, total: 17, cache_creation: 3 };
    expect(decodeEvents(completed([], { usage })).outcome.usage).toEqual(right);
    expect(decodeEvents(incomplete("max_output_tokens"), completed([], { usage })).outcome.usage).toEqual(right);
    expect(decodeEvents(completed([], { usage: {} })).outcome.usage).toMatchObject({ total: 0 });
  });

  test("a call whose arguments are not what was streamed of them is malformed; one without a name is a call", () => {
    const { messages, outcome } = decodeEvents(
      ...[added(0, call("a")), argumentsDelta(0, '{"x":'), done(0, call("a", '{"y":1}')), completed()],
    );
    expect(outcome.status).toBe("malformed");
    expect(stops(messages)).toEqual(["malformed"]);
    const nameless = decodeEvents(done(0, { type: "function_call", call_id: "a", arguments: "{}" }), completed());
    expect(nameless.outcome.status).toBe("completed");
    expect(nameless.messages.at(-1)?.payload).toMatchObject({ type: "tool_call", name: "" });
  });
});

describe("over the network", () => {
  const model = { protocol: "openai-responses" } as const;

  test("F19: an answer that has ended waits a moment for its body to end, not for the silence limit", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(...said, done(0, message("a")), completed()));
    });
    const { stream } = start(upstream, clock, model);
    expect((await stream.next()).done).toBe(false);
    const rest = drain(stream);
    await clock.waiting(2);
    clock.advance(SILENCE_MS / 2);
    const { outcome, messages } = await rest;
    expect(outcome.status).toBe("completed");
    expect(messages.filter((each) => isPayload(each, "text"))).toEqual([]);
    await upstream.noSockets();
    expect(clock.pending).toBe(0);
  });

  test("an answer whose body ends is over at once", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).end(sse(...said, completed([message("a")])));
    });
    const { outcome } = await drain(start(upstream, clock, model).stream);
    expect(outcome.status).toBe("completed");
    expect(upstream.requests[0]?.path).toBe("/v1/responses");
    expect(clock.pending).toBe(0);
  });
});
