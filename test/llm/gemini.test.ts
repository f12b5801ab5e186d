import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { contentsOf, fromTrace, readGemini, segments } from "./gemini-support.js";
import { complete, essence, pieces } from "./support.js";

const folder = new URL("../fixtures/gemini/", import.meta.url);
const stream = (name: string): Buffer => readFileSync(new URL(`${name}.sse`, folder));
const text = (said: string) => ({ type: "text", text: said });
const thinking = (thought: string) => ({ type: "thinking", thinking: thought });
const call = (name: string, args: string) => ({ type: "tool_call", name, arguments: args });
const opaque = (part: string) => ({ type: "opaque", part });
const PNG = "image/png";
const USAGE = { cache_read: 8, cache_write: 12, output: 5, total: 25 };
const WELL = { status: "completed", finishReason: "STOP", usage: USAGE };

const expected: Record<string, { segments: object[]; outcome: object }> = {
  "text-crlf-bom": { segments: [text("北🙂é done")], outcome: WELL },
  "text-cr-only": { segments: [text("one two")], outcome: { status: "completed", usage: { total: 0 } } },
  "think-then-text-then-call": {
    segments: [thinking("Let me see."), text("I will look."), call("look", '{"at":"sky"}')],
    outcome: WELL,
  },
  "signed-runs": {
    segments: [text("ab"), text("c"), text("d"), text("e"), text("f"), text("g"), opaque("text")],
    outcome: WELL,
  },
  "signed-thoughts": {
    segments: [thinking("why "), thinking("so"), opaque("text"), text("because")],
    outcome: WELL,
  },
  "calls-parallel-no-ids": { segments: [call("one", '{"x":1}'), call("two", "{}")], outcome: WELL },
  "calls-with-ids": { segments: [call("one", "{}"), call("two", "{}")], outcome: WELL },
  "partial-args": {
    segments: [call("put", '{"path":"a/b\\"c","lines":[{"n":1},{"n":2.5}],"odd key":true,"none":null}'), text("Done.")],
    outcome: WELL,
  },
  "code-and-media": {
    segments: [
      opaque("executableCode"),
      opaque("codeExecutionResult"),
      { type: "inline_thinking", mime_type: PNG, data: "dGhpbms=" },
      { type: "inline_data", mime_type: PNG, data: "c2hvdw==" },
      opaque("somethingNew"),
      text("There."),
    ],
    outcome: WELL,
  },
  "stop-on-every-chunk": {
    segments: [text("one two")],
    outcome: { status: "completed", finishReason: "RECITATION" },
  },
  "max-tokens-within-call": {
    segments: [text("Writing."), call("put", "")],
    outcome: { status: "completed", truncated: true, finishReason: "MAX_TOKENS", usage: USAGE },
  },
  "malformed-call": {
    segments: [text("Let me")],
    outcome: {
      status: "malformed",
      finishReason: "MALFORMED_FUNCTION_CALL",
      error: { kind: "malformed", message: "Malformed function call: print(x" },
      usage: USAGE,
    },
  },
  "safety-first": {
    segments: [],
    outcome: { status: "failed", finishReason: "SAFETY", error: { kind: "content_filter" }, usage: { total: 20 } },
  },
  "safety-after-text": { segments: [text("He")], outcome: { status: "completed", finishReason: "SAFETY" } },
  "prompt-blocked": {
    segments: [],
    outcome: {
      status: "failed",
      finishReason: "blockReason:PROHIBITED_CONTENT",
      error: { kind: "content_filter", message: "not this" },
      usage: { cache_read: 0, cache_write: 20, output: 0, total: 20 },
    },
  },
  "unknown-finish": { segments: [text("Well")], outcome: { status: "completed", finishReason: "SOMETHING_NEW" } },
  "empty-stop": { segments: [], outcome: { status: "completed", finishReason: "STOP" } },
  "error-midstream": {
    segments: [text("so")],
    outcome: { status: "timeout", error: { kind: "overloaded", message: "try later" }, usage: USAGE },
  },
  "odd-chunks": { segments: [text("ok")], outcome: WELL },
  "bare-error": {
    segments: [text("so")],
    outcome: { status: "timeout", error: { kind: "rate_limit", message: "slow down" }, retryAfterMs: 3500 },
  },
  "json-array": { segments: [text("as a list")], outcome: WELL },
};

/** What a reading gives, whatever ids were made for calls that had none. */
const stable = (chunks: Iterable<Uint8Array>): string =>
  JSON.stringify(essence(readGemini(chunks))).replace(/call_fresh\d+/g, "call_made");

describe("hand-written Gemini streams", () => {
  test("every written stream has its expectation", () => {
    expect(readdirSync(folder).sort()).toEqual(
      Object.keys(expected)
        .map((name) => `${name}.sse`)
        .sort(),
    );
  });

  test.each(Object.entries(expected))("F12 F16 F22: %s gives its segments and its outcome", (name, right) => {
    const { messages, outcome } = readGemini([stream(name)]);
    expect(segments(messages)).toEqual(right.segments);
    expect(outcome).toMatchObject(right.outcome);
  });

  test.each(Object.keys(expected))("B3: %s reads the same split in two at every byte offset", (name) => {
    const bytes = stream(name);
    const whole = stable([bytes]);
    for (let at = 0; at <= bytes.length; at++) {
      expect(stable([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(whole);
    }
    expect(stable(pieces(bytes, 1))).toEqual(whole);
  });

  test.each(Object.keys(expected))("F15: %s cut at any byte never ends well before its end mark", (name) => {
    const bytes = stream(name);
    for (let at = 0; at < bytes.length; at++) {
      const part = bytes.subarray(0, at);
      const { messages, outcome } = readGemini([part]);
      if (!/"(?:finish|block)Reason"/.test(part.toString("utf8"))) expect(outcome.status).not.toBe("completed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        expect(typeof JSON.parse(message.payload.arguments)).toBe("object");
      }
    }
  });
});

describe("from a stream back into a request", () => {
  const sentBack = (name: string) =>
    contentsOf(fromTrace(readGemini([stream(name)]).messages))
      .filter(({ role }) => role === "model")
      .flatMap(({ parts }) => parts);

  test("F8: a signed part is never merged with another, and one without text keeps its place", () => {
    expect(sentBack("signed-runs")).toEqual([
      { text: "ab" },
      { text: "c", thoughtSignature: "c2lnQQ==" },
      { text: "d" },
      { text: "e", thoughtSignature: "c2lnQg==" },
      { text: "f", thoughtSignature: "c2lnQw==" },
      { text: "g" },
      { text: "", thoughtSignature: "c2lnRA==" },
    ]);
  });

  test("thoughts go back only where they are signed", () => {
    expect(sentBack("signed-thoughts")).toEqual([
      { text: "so", thought: true, thoughtSignature: "dGgx" },
      { text: "", thought: true, thoughtSignature: "dGgy" },
      { text: "because" },
    ]);
  });

  test("a call without an id goes back without one, a strange id goes back as it came", () => {
    expect(sentBack("calls-parallel-no-ids")).toEqual([
      { functionCall: { name: "one", args: { x: 1 } } },
      { functionCall: { name: "two", args: {} } },
    ]);
    expect(sentBack("calls-with-ids")).toEqual([
      { functionCall: { id: "a1", name: "one", args: {} }, thoughtSignature: "c2ln" },
      { functionCall: { id: "b 2", name: "two", args: {} } },
    ]);
  });

  test("code, its result, signed and shown media and parts of a kind we do not know go back in place", () => {
    expect(sentBack("code-and-media")).toEqual([
      { executableCode: { language: "PYTHON", code: "print(1)" }, thoughtSignature: "Y29kZQ==" },
      { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1\n" } },
      { inlineData: { mimeType: PNG, data: "dGhpbms=" }, thought: true, thoughtSignature: "aW1n" },
      { inlineData: { mimeType: PNG, data: "c2hvdw==" } },
      { somethingNew: { a: [1] } },
      { text: "There." },
    ]);
  });
});
