import { readdirSync, readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { failure } from "../../src/llm/outcome.js";
import { isPayload } from "../../src/protocol/guards.js";
import { complete, decodeChunks, decodeText, delta, essence, FROM, pieces, segmentsOf, sse } from "./support.js";

const folder = new URL("../fixtures/openai-chat/", import.meta.url);
const stream = (name: string): Buffer => readFileSync(new URL(`${name}.sse`, folder));
const read = (name: string) => decodeChunks([stream(name)]);
const call = (id: string, name: string, args: string) => ({ type: "tool_call", id, name, arguments: args });
const toolDelta = (...calls: object[]): object => delta({ tool_calls: calls });
const stops = (messages: ReturnType<typeof read>["messages"]) =>
  complete(messages).map((message) => (message.payload as { stop_reason?: string }).stop_reason);

const USAGE = { cache_read: 0, cache_write: 20, output: 5, total: 25 };

describe("hand-written streams", () => {
  const expected: Record<string, { segments: object[]; outcome: object }> = {
    "text-crlf-bom": {
      segments: [{ type: "text", text: "北🙂é done" }],
      outcome: { status: "completed", finishReason: "stop", usage: USAGE },
    },
    "text-cr-only": { segments: [{ type: "text", text: "one two" }], outcome: { status: "completed" } },
    "think-then-text": {
      segments: [
        { type: "thinking", thinking: "Let me see." },
        { type: "text", text: "42" },
      ],
      outcome: { status: "completed", usage: USAGE },
    },
    "calls-same-index": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "calls-no-index": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "calls-interleaved": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "call-id-later": { segments: [call("a1", "one", '{"x":1}')], outcome: { status: "completed" } },
    "call-cut-by-length": {
      segments: [{ type: "text", text: "Writing." }, call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":"lo')],
      outcome: { status: "completed", truncated: true, finishReason: "length" },
    },
    "error-then-finish": {
      segments: [{ type: "text", text: "Hal" }],
      outcome: { status: "timeout", error: { kind: "timeout", message: "upstream fell over" }, usage: USAGE },
    },
    "odd-chunks": { segments: [{ type: "text", text: "ok" }], outcome: { status: "completed", usage: USAGE } },
    "no-done": { segments: [{ type: "text", text: "fine" }], outcome: { status: "completed" } },
    "bare-error": {
      segments: [{ type: "text", text: "so" }],
      outcome: { status: "timeout", error: { kind: "overloaded", message: "try later" } },
    },
  };

  test("every written stream has its expectation", () => {
    expect(readdirSync(folder).sort()).toEqual(
      Object.keys(expected)
        .map((name) => `${name}.sse`)
        .sort(),
    );
  });

  test.each(Object.entries(expected))("F10 F14 F16 F22: %s gives its segments and its outcome", (name, right) => {
    const { messages, outcome } = read(name);
    expect(segmentsOf(messages)).toEqual(right.segments);
    expect(outcome).toMatchObject(right.outcome);
  });

  test.each(Object.keys(expected))("B3: %s reads the same split in two at every byte offset", (name) => {
    const bytes = stream(name);
    const whole = essence(decodeChunks([bytes]));
    for (let at = 0; at <= bytes.length; at++) {
      expect(essence(decodeChunks([bytes.subarray(0, at), bytes.subarray(at)]))).toEqual(whole);
    }
    expect(essence(decodeChunks(pieces(bytes, 1)))).toEqual(whole);
  });

  test.each(Object.keys(expected))("F15: %s cut at any byte never ends well before its end mark", (name) => {
    const bytes = stream(name);
    for (let at = 0; at < bytes.length; at++) {
      const part = bytes.subarray(0, at);
      const { messages, outcome } = decodeChunks([part]);
      const hasEnd = /"finish_reason": ?"|data: \[DONE\]/.test(part.toString("utf8"));
      if (!hasEnd) expect(outcome.status).not.toBe("completed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        if (!hasEnd || message.payload.arguments !== "")
          expect(() => JSON.parse(message.payload.arguments)).not.toThrow();
      }
    }
  });
});

describe("segments", () => {
  test("empty content beside tool calls opens no text segment", () => {
    const { messages } = decodeText(
      sse(
        delta({ content: "", tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }),
        "[DONE]",
      ),
    );
    expect(segmentsOf(messages)).toEqual([call("a", "f", "{}")]);
  });

  test("a call whose arguments are whole closes when text begins, before the stream ends", () => {
    const { messages } = decodeText(
      sse(
        toolDelta({ index: 0, id: "a", function: { name: "f", arguments: '{"x":1}' } }),
        delta({ content: "meanwhile" }),
      ),
    );
    expect(stops(messages)).toEqual([undefined, "malformed"]);
  });

  test("a call with arguments that go on after its end makes the answer malformed, not the call longer", () => {
    const { messages, outcome } = decodeText(
      sse(
        toolDelta({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }),
        delta({ content: "x" }),
        toolDelta({ index: 0, function: { arguments: '{"x":1}' } }),
        delta({}, "tool_calls"),
        "[DONE]",
      ),
    );
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(segmentsOf(messages)[0]).toEqual(call("a", "f", "{}"));
  });

  test.each([["null"], ['""'], ['"  "'], ['"{}"']])(
    "F12: arguments %s are a complete call without arguments",
    (args) => {
      const { messages, outcome } = decodeText(
        sse(
          toolDelta({ index: 0, id: "a", function: { name: "f", arguments: JSON.parse(args) } }),
          delta({}, "tool_calls"),
          "[DONE]",
        ),
      );
      expect(outcome.status).toBe("completed");
      expect(stops(messages)).toEqual([undefined]);
    },
  );

  test("F10: calls without index and without id are told apart by their names", () => {
    const { messages } = decodeText(
      sse(
        toolDelta({ function: { name: "f", arguments: '{"x":1}' } }, { function: { name: "f", arguments: '{"x":1}' } }),
        toolDelta({ function: { name: "g", arguments: "{}" } }),
        delta({}, "stop"),
      ),
    );
    expect(segmentsOf(messages).map(({ name, arguments: args }) => [name, args])).toEqual([
      ["f", '{"x":1}'],
      ["f", '{"x":1}'],
      ["g", "{}"],
    ]);
    expect(new Set(segmentsOf(messages).map(({ id }) => id)).size).toBe(3);
  });

  test("a name that comes again in every fragment is neither glued nor a new call", () => {
    const part = (args: string) => toolDelta({ index: 0, id: "a", function: { name: "f", arguments: args } });
    const { messages } = decodeText(sse(part('{"x"'), part(":1}"), part(""), part('{"x":1}'), delta({}, "tool_calls")));
    expect(segmentsOf(messages)).toEqual([call("a", "f", '{"x":1}')]);
  });

  test("a call that never gets a name fails the answer", () => {
    const { outcome } = decodeText(sse(toolDelta({ index: 0, id: "a", function: { arguments: "{}" } }), "[DONE]"));
    expect(outcome).toMatchObject({ status: "malformed", error: { message: "a tool call without a name" } });
  });

  test("half a call and [DONE] without a finish_reason is malformed", () => {
    const { messages, outcome } = decodeText(
      sse(toolDelta({ index: 0, id: "a", function: { name: "f", arguments: '{"x"' } }), "[DONE]"),
    );
    expect(outcome.status).toBe("malformed");
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("the legacy function_call is a tool call with an id of ours", () => {
    const { messages, outcome } = decodeText(
      sse(
        delta({ function_call: { name: "f", arguments: '{"x"' } }),
        delta({ function_call: { arguments: ":1}" } }),
        delta({}, "function_call"),
      ),
    );
    expect(outcome).toMatchObject({ status: "completed", finishReason: "function_call" });
    expect(segmentsOf(messages)).toMatchObject([{ name: "f", arguments: '{"x":1}' }]);
  });

  test("ids that the Session has seen, that are odd, or that come twice are replaced and kept beside", () => {
    const { messages } = decodeText(
      sse(
        toolDelta(
          { index: 0, id: "seen", function: { name: "f", arguments: "{}" } },
          { index: 1, id: "with space", function: { name: "f", arguments: "{}" } },
          { index: 2, id: "new", function: { name: "f", arguments: "{}" } },
          { index: 3, id: "new", function: { name: "g", arguments: "{}" } },
          { index: 4, function: { name: "f", arguments: "{}" } },
        ),
        delta({}, "tool_calls"),
      ),
      { isTaken: (id) => id === "seen" },
    );
    const calls = complete(messages).map(({ payload }) => payload as Record<string, unknown>);
    const ids = calls.map((payload) => String(payload.tool_call_id));
    expect(ids[2]).toBe("new");
    expect(new Set(ids).size).toBe(5);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_.:-]{1,64}$/);
    expect(calls.map((payload) => (payload.fidelity as Record<string, unknown> | undefined)?.provider_call_id)).toEqual(
      ["seen", "with space", undefined, "new", undefined],
    );
  });

  test("fragments of calls in any interleaving give the calls in order of first appearance", () => {
    const args = fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(args, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()), (calls, picks) => {
        const texts = calls.map((parts) => JSON.stringify({ v: parts.join("") }));
        const queues = texts.map((text, index) =>
          text.split(/(?<=[\s\S]{3})/).map((part, n) => ({
            index,
            ...(n === 0 ? { id: `id${index}` } : {}),
            function: { ...(n === 0 ? { name: `f${index}` } : {}), arguments: part },
          })),
        );
        const chunks: object[] = queues.map((queue) => toolDelta(queue.shift()!));
        for (
          let left = queues.filter((q) => q.length > 0);
          left.length > 0;
          left = queues.filter((q) => q.length > 0)
        ) {
          chunks.push(toolDelta(left[picks.next().value % left.length]!.shift()!));
        }
        const { messages } = decodeText(sse(...chunks, delta({}, "tool_calls")));
        expect(segmentsOf(messages)).toEqual(texts.map((text, index) => call(`id${index}`, `f${index}`, text)));
      }),
      { numRuns: 200 },
    );
  });
});

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
