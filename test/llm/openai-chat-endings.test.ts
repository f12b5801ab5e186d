import { describe, expect, test } from "vitest";
import { failure } from "../../src/llm/outcome.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { complete, decodeText, delta, fromOf, segmentsOf, sse } from "./support.js";

const FROM = fromOf("openai-chat");

const toolDelta = (...calls: object[]): object => delta({ tool_calls: calls });
const stops = (messages: OmniMessage[]) =>
  complete(messages).map((message) => (message.payload as { stop_reason?: string }).stop_reason);

describe("reasoning", () => {
  const thought = (text: string) => complete(decodeText(text).messages).filter((m) => isPayload(m, "thinking"));

  test.each(["reasoning_content", "reasoning", "reasoning_text"])("%s is thinking and its name is kept", (field) => {
    const [only] = thought(sse(delta({ [field]: "a" }), delta({ [field]: "b" }), delta({ content: "c" }, "stop")));
    expect(only?.payload).toMatchObject({ thinking: "ab", fidelity: { reasoning_field: field, from: FROM } });
  });

  test("pieces of one details entry are glued and its signature kept byte for byte", () => {
    const entry = (more: object) => delta({ reasoning_details: [{ type: "reasoning.text", index: 0, ...more }] });
    const [only] = thought(
      sse(entry({ text: "a" }), entry({ text: "b" }), entry({ signature: "S+/=" }), delta({ content: "c" }, "stop")),
    );
    expect(only?.payload).toMatchObject({
      thinking: "ab",
      fidelity: {
        reasoning_field: "reasoning_details",
        reasoning_details: [{ type: "reasoning.text", index: 0, text: "ab", signature: "S+/=" }],
      },
    });
  });

  test("F5: hidden reasoning that comes after text has begun is kept without cutting the text in two", () => {
    const hidden = { type: "reasoning.encrypted", data: "AAA", id: "r1", index: 0 };
    const { messages } = decodeText(
      sse(
        delta({ content: "one " }),
        delta({ reasoning_details: [hidden] }),
        delta({ content: "two" }),
        delta({}, "stop"),
      ),
    );
    expect(segmentsOf(messages)).toEqual([
      { type: "text", text: "one two" },
      { type: "thinking", thinking: "" },
    ]);
    expect(complete(messages)[1]?.payload).toMatchObject({ fidelity: { reasoning_details: [hidden] } });
  });
});

describe("endings", () => {
  test.each(["length", "max_tokens", "model_length"])("%s is completed and truncated", (finish) => {
    expect(decodeText(sse(delta({ content: "a" }, finish), "[DONE]")).outcome).toMatchObject({
      status: "completed",
      truncated: true,
      finishReason: finish,
    });
  });

  test("only the call that the limit cut is malformed; one without arguments before it stands", () => {
    const { messages } = decodeText(
      sse(
        toolDelta({ index: 0, id: "a", function: { name: "f", arguments: "" } }),
        toolDelta({ index: 1, id: "b", function: { name: "g", arguments: "" } }),
        delta({}, "length"),
      ),
    );
    expect(stops(messages)).toEqual([undefined, "malformed"]);
  });

  test("content_filter without text is a failure, after text it is completed", () => {
    expect(decodeText(sse(delta({}, "content_filter"), "[DONE]")).outcome).toMatchObject({
      status: "failed",
      error: { kind: "content_filter" },
    });
    const after = decodeText(sse(delta({ content: "a" }), delta({}, "content_filter"), "[DONE]")).outcome;
    expect(after).toMatchObject({ status: "completed" });
    expect(after.truncated).toBeUndefined();
  });

  test("a refusal in place of the answer fails with its text; an empty refusal is none", () => {
    expect(decodeText(sse(delta({ refusal: "I will " }), delta({ refusal: "not" }, "stop"))).outcome).toMatchObject({
      status: "failed",
      error: { kind: "content_filter", message: "I will not" },
    });
    expect(decodeText(sse(delta({ refusal: "", content: "a" }, "stop"))).outcome.status).toBe("completed");
  });

  test("an answer that is empty and ended well is completed with nothing", () => {
    expect(decodeText(sse(delta({ content: "" }, "stop"), "[DONE]"))).toMatchObject({
      messages: [],
      outcome: { status: "completed", usage: { total: 0 } },
    });
  });

  test("F16: an error first, alone, or as `event: error` is the outcome", () => {
    const body = { error: { message: "busy", type: "overloaded_error" } };
    for (const text of [
      sse(body),
      sse(body, delta({}, "stop"), "[DONE]"),
      `event: error\ndata: ${JSON.stringify(body)}\n\n`,
      `event: error\ndata: overloaded\n\n`,
      JSON.stringify(body),
      JSON.stringify([body]),
    ]) {
      expect(decodeText(text).outcome).toMatchObject({ status: "timeout", error: { kind: "overloaded" } });
    }
  });

  test("an event that is not JSON is malformed and what was open is closed as such", () => {
    const { messages, outcome } = decodeText(sse(delta({ content: "a" }), "{broken", delta({}, "stop")));
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("a lost connection is the outcome before the end mark and no matter after it", () => {
    const lost = failure("network", "reset");
    expect(decodeText(sse(delta({ content: "a" })), { lost }).outcome).toMatchObject({
      status: "timeout",
      error: { kind: "network" },
    });
    expect(decodeText(sse(delta({ content: "a" }, "stop")), { lost }).outcome.status).toBe("completed");
  });

  test("[DONE] counts without its line end, any other event does not", () => {
    expect(decodeText(`${sse(delta({ content: "a" }))}data: [DONE]`).outcome.status).toBe("completed");
    expect(decodeText(sse(delta({ content: "a" }, "stop")).trimEnd()).outcome.status).toBe("malformed");
  });

  test("a whole answer in place of a stream is read", () => {
    const body = {
      id: "x",
      choices: [{ index: 0, message: { role: "assistant", content: "hi", reasoning: "hm" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    };
    const { messages, outcome } = decodeText(JSON.stringify(body, null, 2));
    expect(segmentsOf(messages)).toEqual([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "hi" },
    ]);
    expect(outcome).toMatchObject({ status: "completed", usage: { cache_write: 3, output: 2, total: 5 } });
  });
});

describe("usage", () => {
  const usage = (raw: object) =>
    decodeText(sse(delta({ content: "a" }, "stop"), { choices: [], usage: raw })).outcome.usage;

  test("cached input is counted once, wherever the provider says it", () => {
    const right = { cache_read: 6, cache_write: 4, output: 2, total: 12 };
    const base = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
    expect(usage({ ...base, prompt_tokens_details: { cached_tokens: 6 } })).toEqual(right);
    expect(usage({ ...base, prompt_cache_hit_tokens: 6, prompt_cache_miss_tokens: 4 })).toEqual(right);
    expect(usage({ ...base, cached_tokens: 6 })).toEqual(right);
  });

  test("reasoning that is only in the total counts as output", () => {
    expect(usage({ prompt_tokens: 10, completion_tokens: 2, total_tokens: 20 })).toMatchObject({
      output: 10,
      total: 20,
    });
  });

  test("F14: snapshots in every chunk count once: the last", () => {
    const snapshot = (n: number) => ({ prompt_tokens: 10, completion_tokens: n, total_tokens: 10 + n });
    const chunks = [1, 2, 3].map((n) => ({ ...delta({ content: "a" }), usage: snapshot(n) }));
    expect(decodeText(sse(...chunks, delta({}, "stop"), "[DONE]")).outcome.usage).toMatchObject({
      output: 3,
      total: 13,
    });
  });
});
