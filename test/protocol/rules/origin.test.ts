import { describe, expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import {
  AT,
  aborted,
  allowed,
  answered,
  begin,
  called,
  from,
  Meter,
  metaOf,
  outputOf,
  said,
  traceOf,
  twoCalls,
} from "../../support/messages.js";

const rulesOf = (messages: OmniMessage[], mode: "stream" | "trace" = "stream") =>
  validateStream(messages, { mode }).map(({ rule }) => rule);
const pointer = (id: string): OmniMessage => make.subagent(AT, id);
const childOf = (id: string, stream = twoCalls()): OmniMessage[] => from(id, [metaOf(id), ...stream]);
const parent = (ids: string[], ...during: OmniMessage[]): OmniMessage[] => [
  begin(),
  ...ids.flatMap((id) => called(id)),
  ...ids.map((id) => allowed(id)),
  ...new Meter().tail(),
  ...during,
  ...ids.flatMap((id) => answered(id)),
];

describe("passes", () => {
  test("a child between its pointer and the output of its tool", () => {
    expect(rulesOf(parent(["x"], pointer("one"), ...childOf("one")))).toEqual([]);
  });

  test("two children at once that use the same tool_call_id", () => {
    const [a, b] = [childOf("one"), childOf("two")];
    const mixed = a.flatMap((message, i) => [message, b[i]!]);
    expect(rulesOf(parent(["x", "y"], pointer("one"), pointer("two"), ...mixed))).toEqual([]);
  });

  test("a grandchild under the chain of both", () => {
    const inner = from("one", childOf("deep"));
    const [meta, opening, ...rest] = from("one", [metaOf("one"), ...parent(["x"], pointer("deep"))]);
    const at = rest.findIndex(({ payload }) => "type" in payload && payload.type === "subagent") + 1;
    const outer = [meta!, opening!, ...rest.slice(0, at), ...inner, ...rest.slice(at)];
    expect(rulesOf(parent(["x"], pointer("one"), ...outer))).toEqual([]);
  });

  test("a child that died before its first message", () => {
    expect(rulesOf(parent(["x"], pointer("one")))).toEqual([]);
  });

  test("a parent's abort after its child's own", () => {
    const child = from("one", [
      metaOf("one"),
      begin(),
      ...said("hal", "aborted"),
      ...new Meter().tail("aborted"),
      aborted(),
    ]);
    const head = [begin(), ...called("x"), allowed("x"), ...new Meter().tail(), pointer("one")];
    expect(rulesOf([...head, ...child, outputOf("x", "[interrupted]", "aborted"), aborted()])).toEqual([]);
  });

  test("a parent's Trace with the pointer alone", () => {
    expect(rulesOf(traceOf(parent(["x"], pointer("one"), ...childOf("one"))), "trace")).toEqual([]);
  });
});

describe("caught", () => {
  test("a child that speaks before its pointer", () => {
    expect(rulesOf(parent(["x"], ...childOf("one")))).toEqual(["origin"]);
    expect(rulesOf(parent(["x"], ...childOf("one"), pointer("one")))).toEqual(["origin", "origin"]);
  });

  test("two pointers to one child, on the stream and in the Trace", () => {
    const stream = parent(["x"], pointer("one"), pointer("one"));
    expect(rulesOf(stream)).toEqual(["origin"]);
    expect(rulesOf(traceOf(stream), "trace")).toEqual(["origin"]);
  });

  test("a child's session_meta of another Session", () => {
    expect(rulesOf(parent(["x"], pointer("one"), ...from("one", [metaOf("two"), ...twoCalls()])))).toEqual(["origin"]);
  });

  test("a child's message in its parent's Trace, once for each message and nothing else", () => {
    const trace = traceOf(parent(["x"], pointer("one")));
    const child = childOf("one").slice(0, 4);
    expect(rulesOf([...trace, ...child], "trace")).toEqual(["origin", "origin", "origin", "origin"]);
  });

  test("D12: a child's message after its parent's abort", () => {
    const head = [begin(), ...called("x"), allowed("x"), ...new Meter().tail(), pointer("one")];
    const child = from("one", [metaOf("one"), begin()]);
    const late = from("one", [...new Meter().tail("aborted"), aborted()]);
    const stream = [...head, ...child, outputOf("x", "[interrupted]", "aborted"), aborted(), ...late];
    expect(new Set(rulesOf(stream))).toEqual(new Set(["origin"]));
  });

  test("a fault inside a child is told with its chain", () => {
    const broken = childOf("one", [begin(), ...said("a"), ...new Meter().tail().slice(1)]);
    expect(validateStream(parent(["x"], pointer("one"), ...broken), { mode: "stream" })).toEqual([
      { place: 15, rule: "request-tail", message: "request_end without token_usage right before it", origin: ["one"] },
    ]);
  });
});
