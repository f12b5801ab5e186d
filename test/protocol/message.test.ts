import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as make from "../../src/protocol/builders.js";
import { isCompleteModelMessage, isEventMessage, isPartial, isSessionMeta } from "../../src/protocol/guards.js";
import { type OmniMessage, parseMessage, toLine } from "../../src/protocol/message.js";
import { eventPayloadSchema, modelPayloadSchema } from "../../src/protocol/payloads.js";
import { AT, answered, callOf, countsOf, metaOf } from "../support/messages.js";

const fidelity = { signature: "EqQBCkYIBxgCKkB+/=", nested: { list: [1, null, "x"] } };
const compaction = { reason: "manual", mode: "discard" } as const;
const every: [string, OmniMessage][] = [
  ["session_meta", metaOf()],
  ["text", make.asSteering(make.userText(AT, "hi"), "steer-1")],
  ["text", make.assistantText(AT, "hi", { fidelity, stop_reason: "aborted" })],
  ["thinking", make.thinking(AT, "", { fidelity })],
  ["inline_thinking", make.inlineThinking(AT, { data: "AA==", mime_type: "image/png", fidelity })],
  ["tool_call", callOf("call_1", "", "malformed")],
  [
    "tool_call_output",
    make.toolCallOutput(AT, { output: "x", tool_call_id: "call_1", images: ["data:,"], exit_code: 1 }),
  ],
  ["image_url", make.imageUrl(AT, "https://example.org/a.png")],
  ["inline_data", make.inlineData(AT, { role: "user", data: "AA==", mime_type: "a/b", file_name: "a.b" })],
  ["partial_text", make.partialText(AT, "delta", "x")],
  ["partial_thinking", make.partialThinking(AT, "stop", "", "timeout")],
  ["partial_tool_call", make.partialToolCall(AT, "start", { name: "exec_command", tool_call_id: "call_1" })],
  ["partial_tool_call_output", answered("call_1", [], { images: ["data:,"] })[1]!],
  ["request_begin", make.requestBegin(AT)],
  [
    "request_end",
    make.requestEnd(AT, {
      status: "timeout",
      attempt: 2,
      retry_in_ms: 4000,
      error: { kind: "rate_limit", message: "slow down", http_status: 429 },
    }),
  ],
  ["request_end", make.requestEnd(AT, { status: "completed", finish_reason: "length", truncated: true })],
  [
    "approval_decision",
    make.approvalDecision(AT, { decision: "deny", tool_call_id: "call_1", decided_by: "user", reason: "no" }),
  ],
  ["token_usage", make.tokenUsage(AT, { ...countsOf(1, 2, 3), cache_creation: 1 }, countsOf(0, 0, 0))],
  ["compaction_begin", make.compactionBegin(AT, { ...compaction, context: 10, turns: 2 })],
  ["compaction_end", make.compactionEnd(AT, { ...compaction, status: "completed" })],
  ["abort", make.abort(AT, null)],
  ["subagent", make.subagent(AT, "session-1")],
];

describe("every kind of message", () => {
  test.each(every)("%s parses, and is itself again after a line", (_, message) => {
    expect(parseMessage(message)).toEqual({ message });
    expect(JSON.parse(toLine(message))).toEqual(message);
  });

  test("is in the list above", () => {
    const known = [...modelPayloadSchema.options, ...eventPayloadSchema.options].map(
      (schema) => schema.shape.type.value,
    );
    expect(new Set(every.map(([type]) => type))).toEqual(new Set([...known, "session_meta"]));
  });

  test.each(every)("%s is of one kind only", (_, message) => {
    const kinds = [isSessionMeta, isEventMessage, isPartial, isCompleteModelMessage].filter((is) => is(message));
    expect(kinds).toHaveLength(1);
  });

  test.each(every)("%s keeps fields that we do not know, in their order, byte for byte", (_, message) => {
    const { timestamp, ...rest } = message;
    const payload = { zeta: [1, { b: 2, a: 1 }], ...message.payload, __proto_: null, alpha: "é\u2028\\" };
    const line = toLine({ "x-trace": { id: 7 }, timestamp, ...rest, payload, origin: ["child"], later: true });
    const parsed = parseMessage(JSON.parse(line));
    expect("message" in parsed && toLine(parsed.message)).toBe(line);
  });

  test.each(every)("%s is refused without its timestamp, and in another envelope", (_, message) => {
    expect(parseMessage({ ...message, timestamp: undefined })).toHaveProperty("problems");
    const type = message.type === "event_msg" ? "model_msg" : "event_msg";
    expect(parseMessage({ ...message, type })).toHaveProperty("problems");
  });
});

test("a partial type that we do not know is none of ours", () => {
  const message = { timestamp: AT, type: "model_msg", payload: { type: "partial_smell" } } as never;
  expect(isPartial(message)).toBe(false);
  expect(isCompleteModelMessage(message)).toBe(false);
});

test("problems name the field", () => {
  const broken = { ...callOf("a"), payload: { ...callOf("a").payload, arguments: 7 } };
  expect(parseMessage(broken)).toEqual({ problems: [expect.stringMatching(/^payload\.arguments: /)] });
  expect(parseMessage(undefined)).toEqual({ problems: [expect.stringMatching(/^message: /)] });
});

describe("a line", () => {
  const breakers = "a\u2028b\u2029c\u0085d\ne\rf";

  test("B1: holds nothing at which any reader splits", () => {
    for (const message of [
      make.assistantText(AT, breakers),
      make.toolCallOutput(AT, { output: breakers, tool_call_id: breakers }),
    ]) {
      const line = toLine(message);
      expect(line).not.toMatch(/[\n\r\u0085\u2028\u2029]/);
      expect(JSON.parse(line)).toEqual(message);
    }
  });

  test("B1: escapes in keys as well as in values", () => {
    const value = { "\u2028": "\u0085", list: ["\u2029"] };
    expect(toLine(value)).toBe('{"\\u2028":"\\u0085","list":["\\u2029"]}');
    expect(JSON.parse(toLine(value))).toEqual(value);
  });

  test("a backslash before a breaker stays a backslash", () => {
    expect(JSON.parse(toLine("\\\u2028\\u2028"))).toBe("\\\u2028\\u2028");
  });

  test("B3: half a surrogate pair survives UTF-8, and two halves are a whole again", () => {
    const halves = ["\ud83d", "\ude42"].map((text) => make.partialText(AT, "delta", text));
    const read = halves.map(
      (message) => JSON.parse(Buffer.from(toLine(message), "utf8").toString("utf8")) as typeof message,
    );
    expect(read).toEqual(halves);
    expect(read.map(({ payload }) => payload.text).join("")).toBe("🙂");
  });

  test("any JSON value comes back from UTF-8 bytes as it was, and its line is the same again", () => {
    const text = fc.string({
      unit: fc.oneof(
        fc.constantFrom("\u2028", "\u2029", "\u0085", "\ud800", "\udc00", "\\", '"', "\0"),
        fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
      ),
    });
    const value = fc.jsonValue({ stringUnit: "binary" });
    fc.assert(
      fc.property(text, value, (key, inner) => {
        const line = toLine({ [key]: inner, text: key });
        expect(line).not.toMatch(/[\n\r\u0085\u2028\u2029]/);
        const back: unknown = JSON.parse(Buffer.from(line, "utf8").toString("utf8"));
        expect(toLine(back)).toBe(line);
      }),
    );
  });
});

describe("builders", () => {
  test("leave out what is undefined, and completed, which is what absence means", () => {
    expect(make.assistantText(AT, "x", { stop_reason: "completed" }).payload).toEqual({
      type: "text",
      role: "assistant",
      text: "x",
    });
    expect(Object.keys(make.userText(AT, "x").payload)).toEqual(["type", "role", "text"]);
    expect(Object.keys(make.partialText(AT, "stop", "", "completed").payload)).toEqual([
      "type",
      "role",
      "event_type",
      "text",
    ]);
  });

  test("request_end says completed: it is the commit criterion", () => {
    expect(make.requestEnd(AT, { status: "completed" }).payload.status).toBe("completed");
  });

  test("each hop of a chain goes in front, and the message that is forwarded stays as it was", () => {
    const message = make.requestBegin(AT);
    expect(make.withOrigin(make.withOrigin(message, "inner"), "outer").origin).toEqual(["outer", "inner"]);
    expect(message.origin).toBeUndefined();
  });

  test("token counts add up field by field, in any order", () => {
    const counts = fc
      .tuple(fc.nat(), fc.nat(), fc.nat(), fc.nat())
      .map(([r, w, o, c]) => ({ ...countsOf(r, w, o), cache_creation: c }));
    fc.assert(
      fc.property(counts, counts, counts, (a, b, c) => {
        const add = make.addTokenCounts;
        expect(add(add(a, b), c)).toEqual(add(a, add(b, c)));
        expect(add(a, b)).toEqual(add(b, a));
        expect(add(a, make.emptyTokenCounts()).total).toBe(a.total);
      }),
    );
  });
});
