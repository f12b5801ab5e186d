import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import * as make from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { classify, compareStreamWithTrace, StreamValidator, validateStream } from "../../src/protocol/validate.js";
import {
  AT,
  aborted,
  allowed,
  answered,
  begin,
  bend,
  called,
  callOf,
  compacted,
  denied,
  from,
  Meter,
  metaOf,
  outputOf,
  placeOf,
  said,
  traceOf,
  twoCalls,
} from "../support/messages.js";

const stream = { mode: "stream" } as const;
const typesOf = (messages: OmniMessage[]): string[] =>
  messages.map(({ payload }) => ("type" in payload ? String(payload.type) : "session_meta"));
const future: OmniMessage = { timestamp: AT, type: "event_msg", payload: { type: "weather" } } as never;

describe("a turn with two calls", () => {
  test("has the order that a reader may rely on", () => {
    const told = typesOf(twoCalls()).filter((type, i, all) => type !== all[i - 1]);
    expect(told).toEqual([
      "request_begin",
      "partial_thinking",
      "thinking",
      "partial_text",
      "text",
      "partial_tool_call",
      "tool_call",
      "approval_decision",
      "partial_tool_call",
      "tool_call",
      "approval_decision",
      "partial_tool_call_output",
      "tool_call_output",
      "token_usage",
      "request_end",
      "partial_tool_call_output",
      "tool_call_output",
      "request_begin",
      "partial_text",
      "text",
      "token_usage",
      "request_end",
    ]);
    expect(validateStream(twoCalls(), stream)).toEqual([]);
    expect(validateStream(traceOf(twoCalls()), { mode: "trace" })).toEqual([]);
  });

  test("is caught at every message that is lost", () => {
    const whole = twoCalls();
    const silent = whole.flatMap((_, i) => (validateStream(whole.toSpliced(i, 1), stream).length === 0 ? [i] : []));
    expect(silent).toEqual([]);
  });

  test("is caught at every message that comes twice", () => {
    const whole = twoCalls();
    const silent = whole.flatMap((message, i) =>
      validateStream(whole.toSpliced(i, 0, message), stream).length === 0 ? [i] : [],
    );
    // A complete message of a model needs no fragments, so its copy is a second answer, not a fault of order.
    expect(silent.map((i) => typesOf(whole)[i])).toEqual(["thinking", "text", "text"]);
  });

  test("is no fault wherever a reader stops, while it goes on", () => {
    const whole = twoCalls();
    for (let cut = 0; cut <= whole.length; cut += 1) {
      expect(validateStream(whole.slice(0, cut), { ...stream, running: true })).toEqual([]);
    }
  });
});

describe("a reader that joins midway", () => {
  const meter = new Meter();
  const whole = [
    ...twoCalls(meter),
    begin(),
    ...called("call_C"),
    ...meter.tail("timeout", { attempt: 1, retry_in_ms: 2000 }),
    denied("call_C", "abort"),
    outputOf("call_C", "[interrupted]", "aborted"),
    begin(),
    ...said("again"),
    ...meter.tail("completed", { attempt: 2 }),
    ...compacted(),
    begin(),
    ...called("call_D"),
    allowed("call_D"),
    ...said("wai", "aborted"),
    ...answered("call_D", "half", { stop: "aborted" }),
    ...meter.tail("aborted"),
    aborted(),
  ];

  test("sees no fault, wherever it joins", () => {
    expect(validateStream(whole, stream)).toEqual([]);
    for (let at = 0; at <= whole.length; at += 1) {
      expect([at, validateStream(whole.slice(at), { ...stream, joined: true })]).toEqual([at, []]);
    }
  });

  test("A14: sees no fault in a child that was speaking already", () => {
    const child = from("one", [metaOf("one"), ...twoCalls()]);
    for (let at = 0; at <= child.length; at += 1) {
      expect(validateStream(child.slice(at), { ...stream, joined: true })).toEqual([]);
    }
  });

  test("still sees faults in what it has seen the beginning of", () => {
    const rest = [...answered("call_A"), begin(), ...said("x"), ...answered("ghost"), ...new Meter().tail()];
    expect(validateStream(rest, { ...stream, joined: true }).map(({ rule }) => rule)).toEqual(["pairing"]);
  });
});

describe("what comes from a later version", () => {
  test("is passed over, also between two messages that must be adjacent", () => {
    const whole = twoCalls();
    const at = placeOf(whole, "request_end");
    expect(validateStream(whole.toSpliced(at, 0, future), stream)).toEqual([]);
  });

  test.each([
    ["a payload type", { timestamp: AT, type: "event_msg", payload: { type: "weather" } }, { future: "weather" }],
    ["an envelope type", { timestamp: AT, type: "sound_msg", payload: {} }, { future: "sound_msg" }],
  ])("%s is told apart from damage", (_, value, kind) => expect(classify(value)).toEqual(kind));

  test.each([
    [
      "a known payload type with a field missing",
      { timestamp: AT, type: "event_msg", payload: { type: "request_end" } },
    ],
    ["a payload without type", { timestamp: AT, type: "model_msg", payload: {} }],
    [
      "a known payload type in the wrong envelope",
      { timestamp: AT, type: "event_msg", payload: make.assistantText(AT, "x").payload },
    ],
    ["no timestamp", { type: "event_msg", payload: { type: "weather" } }],
    ["a list", []],
    ["null", null],
    ["a string", "request_begin"],
  ])("%s is damage", (_, value) => expect(Object.keys(classify(value))).toEqual(["problems"]));
});

test("places are those that the caller gives, or counted from 0", () => {
  const validator = new StreamValidator(stream);
  validator.push(begin(), 7);
  validator.push(begin());
  validator.push(begin(), 20);
  expect(validator.violations.map(({ place }) => place)).toEqual([8, 20]);
});

test("what is open can be asked at any time", () => {
  const validator = new StreamValidator(stream);
  expect(validator.open).toEqual({ request: false, compaction: false, undecided: 0, unanswered: 0 });
  for (const message of [begin(), ...called("a"), ...called("b"), allowed("a")]) validator.push(message);
  expect(validator.open).toEqual({ request: true, compaction: false, undecided: 1, unanswered: 2 });
});

test("a Trace of 20,000 Requests with a call each has no fault and leaves nothing open", () => {
  const meter = new Meter();
  const validator = new StreamValidator({ mode: "trace" });
  validator.push(metaOf());
  for (let i = 0; i < 20_000; i += 1) {
    const id = `call_${i}`;
    for (const message of [begin(), callOf(id), allowed(id), outputOf(id, "a.txt"), ...meter.tail()]) {
      validator.push(message);
    }
  }
  validator.end();
  expect(validator.violations).toEqual([]);
  expect(validator.open).toEqual({ request: false, compaction: false, undecided: 0, unanswered: 0 });
});

describe("stream order is Trace order", () => {
  const meter = new Meter();
  const child = from("one", [metaOf("one"), begin()]);
  const first = twoCalls(meter);
  const used = meter.usage();
  const second = [begin(), ...said("b"), ...meter.tail()];
  const seen = [...first, ...compacted(), ...child, ...second];
  const own = [make.assistantText(AT, "summary"), used];
  const summary = make.userText(AT, "[context_summary]");
  const trace = [...traceOf(first), ...compacted("completed", own), metaOf(), summary, ...traceOf(second).slice(2)];

  test("with fragments, children and Trace-only records left out", () => {
    expect(validateStream(trace, { mode: "trace" })).toEqual([]);
    expect(compareStreamWithTrace(seen, trace)).toEqual([]);
  });

  test("with the usage of a compaction on the stream", () => {
    expect(compareStreamWithTrace([...first, ...compacted("completed", [used]), ...second], trace)).toEqual([]);
  });

  test("read back from JSON, whatever the order of keys", () => {
    const turned = trace.map(
      ({ payload, type, timestamp }) => JSON.parse(JSON.stringify({ payload, type, timestamp })) as OmniMessage,
    );
    expect(compareStreamWithTrace(seen, turned)).toEqual([]);
  });

  test("a record that only the Trace has", () => {
    expect(compareStreamWithTrace(seen.slice(0, -1), trace)).toEqual([
      { place: seen.length - 1, rule: "stream-order", message: "request_end is in the Trace and not on the stream" },
    ]);
    expect(compareStreamWithTrace(seen.slice(0, -1), trace, { running: true })).toEqual([]);
  });

  test("A12: a message that only the stream has", () => {
    expect(compareStreamWithTrace(seen, trace.slice(0, -1)).map(({ message }) => message)).toEqual([
      "request_end is not in the Trace",
    ]);
  });

  test("two records in another order, and one that differs", () => {
    const at = placeOf(first, "tool_call_output");
    const swapped = trace.toSpliced(placeOf(trace, "tool_call_output"), 1);
    expect(compareStreamWithTrace(seen, swapped)).toMatchObject([{ place: at }]);
    expect(compareStreamWithTrace(bend(seen, at, { output: "/other\n" }), trace)).toMatchObject([
      {
        place: at,
        message: 'the stream has tool_call_output of "call_B" where the Trace has tool_call_output of "call_B"',
      },
    ]);
  });

  test("a compaction's own output on the stream", () => {
    const loud = [...first, ...compacted("completed", own), ...second];
    expect(compareStreamWithTrace(loud, trace)).toHaveLength(1);
  });

  test("a stream that was joined midway, from each of its records on", () => {
    for (let at = 0; at < seen.length; at += 1) {
      expect(compareStreamWithTrace(seen.slice(at), trace, { joined: true })).toEqual([]);
    }
    expect(compareStreamWithTrace([aborted()], trace, { joined: true })).toHaveLength(1);
  });
});

test("each guarantee is a file of its own, with tests of its own", () => {
  const parts = new Set(["rule.ts", "facts.ts", "stream-order.ts"]);
  const rules = readdirSync(new URL("../../src/protocol/rules/", import.meta.url)).filter((file) => !parts.has(file));
  const tests = readdirSync(new URL("./rules/", import.meta.url)).map((file) => file.replace(".test.ts", ".ts"));
  expect(rules.sort()).toEqual(tests.sort());
  const source = readFileSync(new URL("../../src/protocol/validate.ts", import.meta.url), "utf8");
  for (const rule of rules) expect(source).toContain(`./rules/${rule.replace(".ts", ".js")}`);
});
