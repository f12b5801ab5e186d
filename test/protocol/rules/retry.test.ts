import { expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import type { ErrorKind, RequestEndPayload, StopReason } from "../../../src/protocol/payloads.js";
import { validateStream } from "../../../src/protocol/validate.js";
import {
  AT,
  aborted,
  begin,
  called,
  compacted,
  denied,
  Meter,
  metaOf,
  notice,
  outputOf,
  said,
  thought,
  traceOf,
} from "../../support/messages.js";

const rulesOf = (stream: OmniMessage[], mode: "stream" | "trace" = "stream") =>
  validateStream(stream, { mode }).map(({ rule }) => rule);

/** A run of Requests of one Session, each with the end that is given. */
function tries(...ends: ([StopReason, Partial<RequestEndPayload>] | OmniMessage[])[]): OmniMessage[] {
  const meter = new Meter();
  return ends.flatMap((end) =>
    typeof end[0] === "string"
      ? [begin(), ...meter.tail(end[0], end[1] as Partial<RequestEndPayload>)]
      : (end as OmniMessage[]),
  );
}
const lost = (attempt: number, retryInMs?: number): [StopReason, Partial<RequestEndPayload>] => [
  "timeout",
  {
    attempt,
    error: { kind: "network", message: "reset" },
    ...(retryInMs === undefined ? {} : { retry_in_ms: retryInMs }),
  },
];
const done = (attempt: number): [StopReason, Partial<RequestEndPayload>] => ["completed", { attempt }];
const overflow = (attempt: number): [StopReason, Partial<RequestEndPayload>] => [
  "failed",
  { attempt, error: { kind: "context_overflow", message: "too long" } },
];

test.each([
  ["a try that succeeds after two that failed", tries(lost(1, 2000), lost(2, 4000), done(3), done(1))],
  ["the last try failed: no wait, and the next Task starts from 1", tries(lost(1, 0), lost(2), done(1))],
  ["an abort in the wait", tries(lost(1, 2000), [aborted()], done(1))],
  ["an overflow, a compaction and one new try, numbered on", tries(overflow(1), compacted(), done(2))],
  ["an overflow, a compaction and one new try, numbered afresh", tries(overflow(1), compacted(), done(1))],
  ["an overflow without a further try", tries(overflow(1), done(1))],
  ["ends without numbers", tries(["timeout", { retry_in_ms: 1 }], ["failed", {}], ["completed", {}])],
  ["an end that says it was the only one", tries(["failed", { attempt: 1, error: { kind: "auth", message: "401" } }])],
])("passes: %s", (_, stream) => expect(validateStream(stream, { mode: "stream" })).toEqual([]));

test("a failed try with thinking, a call that was cut off and one that was whole passes", () => {
  const meter = new Meter();
  const failed: Partial<RequestEndPayload> = {
    attempt: 1,
    retry_in_ms: 2000,
    error: { kind: "malformed", message: "no end" },
  };
  const stream = [
    begin(),
    ...thought("hm"),
    ...called("a"),
    ...called("b", '{"c', "malformed"),
    ...meter.tail("malformed", failed),
    denied("a", "abort"),
    outputOf("a", "[interrupted]", "aborted"),
    begin(),
    ...said("again"),
    ...meter.tail("completed", { attempt: 2 }),
  ];
  expect(rulesOf(stream)).toEqual([]);
  expect(rulesOf(traceOf(stream), "trace")).toEqual([]);
});

const kind = (status: StopReason, name: ErrorKind, retry?: number): OmniMessage[] =>
  tries(
    [
      status,
      { attempt: 1, error: { kind: name, message: "x" }, ...(retry === undefined ? {} : { retry_in_ms: retry }) },
    ],
    ...(retry === undefined ? [] : [done(2)]),
  );

test.each([
  ["the first try is not number 1", tries(lost(2, 2000), done(3))],
  ["a number is left out", tries(lost(1, 2000), done(3))],
  ["a number is repeated", tries(lost(1, 2000), lost(1, 2000), done(2))],
  ["numbers go on after a success", tries(done(1), done(2))],
  ["numbers go on after an abort", tries(lost(1, 2000), [aborted()], done(2))],
  ["a wait on a Request that completed", tries(["completed", { attempt: 1, retry_in_ms: 1 }], done(2))],
  ["a wait that nothing follows", tries(lost(1, 2000))],
  ["a wait, then only the max_turns notice", tries(lost(1, 2000), notice(1))],
  ["a refused key is tried again", kind("failed", "auth", 2000)],
  ["a content filter is tried again", kind("failed", "content_filter", 2000)],
  ["a rate limit that ends failed", kind("failed", "rate_limit")],
  ["a bad request that ends as timeout", kind("timeout", "invalid_request")],
  ["a cut stream that ends as timeout", kind("timeout", "malformed")],
])("caught: %s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["retry"])));

test("a wait that nothing follows yet is no fault while the stream goes on", () => {
  expect(validateStream(tries(lost(1, 2000)), { mode: "stream", running: true })).toEqual([]);
});

test("a Trace whose Task could not be closed on a full disk: the next Prompt starts from 1", () => {
  const trace = [...traceOf(tries(lost(1, 2000))), make.userText(AT, "again")];
  const meter = new Meter();
  meter.usage();
  expect(rulesOf([...trace, begin(), ...meter.tail("completed", { attempt: 1 })], "trace")).toEqual([]);
});

test("a compaction in mid-Task writes the Prompt again, and the ladder goes on", () => {
  const meter = new Meter();
  const trace = traceOf([begin(), ...meter.tail("failed", { ...overflow(1)[1], retry_in_ms: 0 })]);
  const again = [...compacted(), metaOf(), make.userText(AT, "[context_summary]"), make.userText(AT, "list the files")];
  expect(rulesOf([...trace, ...again, begin(), ...meter.tail("completed", { attempt: 2 })], "trace")).toEqual([]);
});
