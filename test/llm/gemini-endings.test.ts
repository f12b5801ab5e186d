import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { failure } from "../../src/llm/outcome.js";
import { GEMINI_NAMES } from "../../src/llm/wire/gemini-names.js";
import { PartialArgs } from "../../src/llm/wire/gemini-partial-args.js";
import { wireToolName } from "../../src/llm/wire/tool-names.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { chunk, readGeminiText, segments } from "./gemini-support.js";
import { complete, sse } from "./support.js";

const stops = (messages: OmniMessage[]) =>
  complete(messages).map((message) => (message.payload as { stop_reason?: string }).stop_reason);
const text = (said: string) => chunk([{ text: said }]);
const end = (finishReason: string, parts: object[] = []) => chunk(parts, { finishReason });
const call = (fn: object) => ({ functionCall: fn });

describe("how an answer ended", () => {
  test.each(["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "LANGUAGE", "IMAGE_SAFETY"])(
    "%s in place of the answer is a filter's failure, after visible text it is completed",
    (reason) => {
      expect(readGeminiText(sse(chunk([{ text: "hm", thought: true }]), end(reason))).outcome).toMatchObject({
        status: "failed",
        finishReason: reason,
        error: { kind: "content_filter" },
      });
      const after = readGeminiText(sse(text("a"), end(reason))).outcome;
      expect(after).toMatchObject({ status: "completed", finishReason: reason });
      expect(after.truncated).toBeUndefined();
    },
  );

  test.each(["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE"])(
    "%s is malformed, whatever was said before",
    (reason) => {
      for (const before of [[], [text("a")]]) {
        expect(readGeminiText(sse(...before, end(reason))).outcome).toMatchObject({
          status: "malformed",
          finishReason: reason,
          error: { kind: "malformed" },
        });
      }
    },
  );

  test.each(["OTHER", "NEVER_HEARD_OF"])("%s with an answer is completed, without one it is a failure", (reason) => {
    expect(readGeminiText(sse(text("a"), end(reason))).outcome).toMatchObject({ status: "completed" });
    expect(readGeminiText(sse(chunk([call({ name: "f" })]), end(reason))).outcome).toMatchObject({
      status: "completed",
    });
    expect(readGeminiText(sse(end(reason))).outcome).toMatchObject({ status: "failed", error: { kind: "unknown" } });
  });

  test("a picture is an answer as much as text is", () => {
    const picture = chunk([{ inlineData: { mimeType: "image/png", data: "AAAA" } }]);
    expect(readGeminiText(sse(picture, end("IMAGE_SAFETY"))).outcome).toMatchObject({ status: "completed" });
  });

  test("an abnormal end stands, whether STOP comes before or after it", () => {
    for (const reasons of [
      ["STOP", "MAX_TOKENS"],
      ["MAX_TOKENS", "STOP"],
    ] as const) {
      const { outcome } = readGeminiText(sse(end(reasons[0], [{ text: "a" }]), end(reasons[1])));
      expect(outcome).toMatchObject({ status: "completed", finishReason: "MAX_TOKENS", truncated: true });
    }
  });

  test("a reason that says nothing is no end", () => {
    expect(readGeminiText(sse(text("a"), end("FINISH_REASON_UNSPECIFIED"))).outcome.status).toBe("malformed");
  });

  test("a lost connection matters before the finishReason, and after one that stands on every chunk", () => {
    const lost = failure("network", "reset");
    const network = { status: "timeout", error: { kind: "network" } };
    expect(readGeminiText(sse(text("a")), { lost }).outcome).toMatchObject(network);
    expect(readGeminiText(sse(text("a"), end("STOP")), { lost }).outcome.status).toBe("completed");
    const everywhere = sse(end("STOP", [{ text: "a" }]), end("STOP", [{ text: "b" }]));
    expect(readGeminiText(everywhere, { lost }).outcome).toMatchObject(network);
    expect(readGeminiText(everywhere).outcome.status).toBe("completed");
  });

  test("F16: an error first, alone, in a list, after STOP or as `event: error` is the outcome, and ends the reading", () => {
    const body = { error: { code: 503, message: "busy", status: "UNAVAILABLE" } };
    for (const stream of [
      sse(body),
      sse(body, end("STOP", [{ text: "a" }])),
      sse(end("STOP"), body),
      `event: error\r\ndata: ${JSON.stringify(body)}\r\n\r\n`,
      "event: error\ndata: overloaded\n\n",
      JSON.stringify(body),
      JSON.stringify([body]),
    ]) {
      const { messages, outcome } = readGeminiText(stream);
      expect(outcome).toMatchObject({ status: "timeout", error: { kind: "overloaded" } });
      expect(messages).toEqual([]);
    }
  });

  test("a bad key that is told in the stream is an auth error", () => {
    const error = { code: 400, message: "no", status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] };
    expect(readGeminiText(JSON.stringify([{ error }])).outcome).toMatchObject({ error: { kind: "auth" } });
  });

  test("an event that is not JSON is malformed and what was open is closed as such", () => {
    const { messages, outcome } = readGeminiText(sse(text("a"), "{broken", end("STOP")));
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("the last numbers count, and a note without numbers wipes nothing", () => {
    const used = (usageMetadata: object) => ({ usageMetadata });
    const { outcome } = readGeminiText(
      sse(
        used({ promptTokenCount: 15, totalTokenCount: 15 }),
        used({ promptTokenCount: 13, cachedContentTokenCount: 99, toolUsePromptTokenCount: 2, thoughtsTokenCount: 4 }),
        end("STOP", [{ text: "a" }]),
        used({ trafficType: "ON_DEMAND" }),
      ),
    );
    expect(outcome.usage).toEqual({ cache_read: 15, cache_write: 0, output: 4, total: 19 });
  });
});

describe("calls", () => {
  test("ids that are repeated, here or in the Session, are replaced and kept; a missing one is remembered as missing", () => {
    const calls = ["a", "a", "old", undefined].map((id) => call({ name: "f", ...(id === undefined ? {} : { id }) }));
    const { messages } = readGeminiText(sse(chunk(calls), end("STOP")), { isTaken: (id) => id === "old" });
    const payloads = complete(messages).map(({ payload }) => payload as { tool_call_id: string; fidelity: object });
    expect(payloads[0]).toMatchObject({ tool_call_id: "a" });
    expect(payloads.slice(1).map(({ fidelity }) => fidelity)).toMatchObject([
      { provider_call_id: "a" },
      { provider_call_id: "old" },
      { provider_call_id: null },
    ]);
    expect(new Set(payloads.map(({ tool_call_id }) => tool_call_id)).size).toBe(4);
  });

  test("a call closes when it is whole, before the answer ends", () => {
    const { messages, outcome } = readGeminiText(sse(chunk([call({ name: "f", args: {} })])));
    expect(outcome.status).toBe("malformed");
    expect(stops(messages)).toEqual([undefined]);
  });

  test("a function whose name the protocol did not take is called by its own name", () => {
    const own = "mcp__files__read file/ütf";
    const name = wireToolName(own, GEMINI_NAMES);
    expect(name).toMatch(/^[A-Za-z_][\w.:-]{0,63}$/);
    const { messages } = readGeminiText(sse(chunk([call({ name })]), end("STOP")), { toolNames: ["other", own] });
    expect(complete(messages)[0]?.payload).toMatchObject({ name: own });
  });

  test.each<[string, object[]]>([
    ["the stream ends", [{ name: "f", willContinue: true }]],
    ["another begins", [{ name: "f", willContinue: true }, { name: "g" }]],
    [
      "a string is still open",
      [
        { name: "f", willContinue: true },
        { partialArgs: [{ jsonPath: "$.a", stringValue: "x", willContinue: true }], willContinue: true },
        {},
      ],
    ],
    [
      "a path leads nowhere",
      [{ name: "f", willContinue: true }, { partialArgs: [{ jsonPath: "a", boolValue: true }] }],
    ],
  ])("half a call never runs: %s", (_, calls) => {
    const { messages, outcome } = readGeminiText(sse(...calls.map((fn) => chunk([call(fn)])), end("STOP")));
    expect(outcome.status).toBe("malformed");
    const [first] = complete(messages);
    if (first !== undefined) expect(first.payload).toMatchObject({ stop_reason: "malformed" });
  });

  test("a call without a name is a call all the same, for its output to say so", () => {
    const { messages, outcome } = readGeminiText(sse(chunk([call({ args: { a: 1 } })]), end("STOP")));
    expect(outcome.status).toBe("completed");
    expect(complete(messages)[0]?.payload).toMatchObject({ name: "", arguments: '{"a":1}' });
  });

  test("media cannot end a call that is half there", () => {
    const media = { inlineData: { mimeType: "image/png", data: "AAAA" } };
    const { messages, outcome } = readGeminiText(
      sse(chunk([call({ name: "f", willContinue: true }), media]), end("STOP")),
    );
    expect(outcome.status).toBe("malformed");
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("text that comes within a streamed call waits for its end", () => {
    const { messages } = readGeminiText(
      sse(chunk([call({ name: "f", willContinue: true }), { text: "beside" }]), chunk([call({})]), end("STOP")),
    );
    expect(segments(messages)).toEqual([
      { type: "tool_call", name: "f", arguments: "{}" },
      { type: "text", text: "beside" },
    ]);
    expect(messages.filter((message) => isPayload(message, "tool_call"))).toHaveLength(1);
  });
});

describe("streamed arguments", () => {
  const key = fc.oneof(fc.string({ minLength: 1, maxLength: 6 }), fc.constantFrom("__proto__", "constructor", "a"));
  const { value } = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: "small", withCrossShrink: true },
      fc.string(),
      fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
      fc.boolean(),
      fc.constant(null),
      fc.array(tie("value"), { minLength: 1, maxLength: 3 }),
      fc.dictionary(key, tie("value"), { minKeys: 1, maxKeys: 3 }),
    ),
  }));

  /** The pieces that a server sends for a value, strings cut in two. */
  function* piecesOf(whole: unknown, path: string): Generator<object> {
    if (typeof whole === "string") {
      const at = Math.floor(whole.length / 2);
      yield { jsonPath: path, stringValue: whole.slice(0, at), willContinue: true };
      yield { jsonPath: path, stringValue: whole.slice(at) };
    } else if (typeof whole === "number") yield { jsonPath: path, numberValue: whole };
    else if (typeof whole === "boolean") yield { jsonPath: path, boolValue: whole };
    else if (whole === null) yield { jsonPath: path, nullValue: "NULL_VALUE" };
    else if (Array.isArray(whole)) for (const [n, each] of whole.entries()) yield* piecesOf(each, `${path}[${n}]`);
    else {
      for (const [name, each] of Object.entries(whole as object)) {
        const quoted = name.replace(/[\\']/g, "\\$&");
        yield* piecesOf(each, /^[A-Za-z_]\w*$/.test(name) ? `${path}.${name}` : `${path}['${quoted}']`);
      }
    }
  }

  test("any arguments come together from their pieces", () => {
    fc.assert(
      fc.property(fc.dictionary(key, value, { maxKeys: 4 }), (args) => {
        const collected = new PartialArgs();
        for (const piece of piecesOf(args, "$")) expect(collected.apply(piece)).toBeUndefined();
        expect(collected.isOpen).toBe(false);
        expect(JSON.parse(collected.toJson())).toEqual(JSON.parse(JSON.stringify(args)));
      }),
    );
  });

  test("no path makes room for a million entries, or for something within a string", () => {
    const collected = new PartialArgs();
    expect(collected.apply({ jsonPath: "$.a[0]", stringValue: "x" })).toBeUndefined();
    for (const jsonPath of ["$.a[999999]", "$.a[0].b", "$.a.b", "$[0]", "$", "$.", "$.a[", "x"]) {
      expect(collected.apply({ jsonPath, stringValue: "y" })).toBeDefined();
    }
    expect(collected.toJson()).toBe('{"a":["x"]}');
  });
});
