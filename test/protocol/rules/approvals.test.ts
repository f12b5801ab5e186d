import { expect, test } from "vitest";
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
  callOf,
  denied,
  Meter,
  outputOf,
  said,
  twoCalls,
} from "../../support/messages.js";

const rulesOf = (stream: OmniMessage[], mode: "stream" | "trace" = "stream") =>
  validateStream(stream, { mode }).map(({ rule }) => rule);
const tail = (): OmniMessage[] => new Meter().tail();
const twoCallsThen = (...rest: OmniMessage[]): OmniMessage[] => [begin(), ...called("a"), ...called("b"), ...rest];

test.each([
  [
    "a decision between two calls, one after request_end",
    [
      begin(),
      ...called("a"),
      allowed("a"),
      ...called("b"),
      ...tail(),
      ...answered("a"),
      allowed("b"),
      ...answered("b"),
    ],
  ],
  [
    "a denied call with its synthetic output",
    [begin(), ...called("a"), denied("a"), outputOf("a", "no", "aborted"), ...tail()],
  ],
  [
    "a denied call that failed",
    [begin(), ...called("a"), denied("a", "policy"), outputOf("a", "no", "failed"), ...tail()],
  ],
  [
    "a call that cannot run: allowed by policy, failed",
    [
      begin(),
      ...called("a", "not json"),
      make.approvalDecision(AT, { decision: "allow", tool_call_id: "a", decided_by: "policy" }),
      outputOf("a", "the arguments are not an object", "failed"),
      ...tail(),
    ],
  ],
  [
    "a call closed by an interrupt, not decided",
    [begin(), ...called("a", '{"c', "aborted"), ...new Meter().tail("aborted"), aborted()],
  ],
  [
    "decisions in call order before either runs",
    twoCallsThen(allowed("a"), denied("b"), outputOf("b", "no", "aborted"), ...answered("a"), ...tail()),
  ],
])("passes: %s", (_, stream) => expect(validateStream(stream, { mode: "stream" })).toEqual([]));

test.each([
  ["an output before the decision", [begin(), ...called("a"), ...answered("a"), allowed("a"), ...tail()]],
  [
    "the first fragment of output before the decision",
    [begin(), ...called("a"), ...answered("a").slice(0, 1), allowed("a"), ...answered("a").slice(1), ...tail()],
  ],
  ["no decision at all", [begin(), ...called("a"), ...answered("a"), ...tail()]],
  [
    "a decision before its call is complete",
    [begin(), ...called("a").slice(0, 2), allowed("a"), ...called("a").slice(2), ...answered("a"), ...tail()],
  ],
  ["two decisions", [begin(), ...called("a"), allowed("a"), allowed("a"), ...answered("a"), ...tail()]],
  ["a decision after the output", [begin(), ...called("a"), allowed("a"), ...answered("a"), denied("a"), ...tail()]],
  [
    "decisions out of call order",
    twoCallsThen(allowed("b"), allowed("a"), ...answered("a"), ...answered("b"), ...tail()),
  ],
  ["a decision for a call that nobody made", [begin(), ...said("x"), allowed("ghost"), ...tail()]],
  [
    "a decision for a call that was cut off",
    [begin(), ...called("a", '{"c', "aborted"), denied("a", "abort"), ...new Meter().tail("aborted"), aborted()],
  ],
  ["a denied call that answered normally", [begin(), ...called("a"), denied("a"), ...answered("a"), ...tail()]],
  [
    "a denied call with an exit code",
    [begin(), ...called("a"), denied("a"), ...answered("a", "x", { stop: "failed", exitCode: 1 }), ...tail()],
  ],
  [
    "an allow that an abort gave",
    [
      begin(),
      ...called("a"),
      make.approvalDecision(AT, { decision: "allow", tool_call_id: "a", decided_by: "abort" }),
      ...answered("a"),
      ...tail(),
    ],
  ],
])("caught: %s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["approvals"])));

test("a call that is still undecided is a fault at the end, and none while the stream goes on", () => {
  const stream = [begin(), ...called("a"), ...tail()];
  expect(rulesOf(stream)).toEqual(["approvals", "pairing"]);
  expect(validateStream(stream, { mode: "stream", running: true })).toEqual([]);
});

test("a missing decision is told once, however many fragments follow", () => {
  const stream = [begin(), callOf("a"), ...answered("a", ["1", "2", "3"]), ...tail(), begin(), ...said("x")];
  expect(validateStream(stream, { mode: "stream", running: true })).toEqual([
    { place: 2, rule: "approvals", toolCallId: "a", message: 'call "a" is not decided before its output' },
  ]);
});

test("a whole Task with two calls passes", () => expect(validateStream(twoCalls(), { mode: "stream" })).toEqual([]));
