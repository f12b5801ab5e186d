import { expect, test } from "vitest";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import {
  aborted,
  allowed,
  answered,
  begin,
  called,
  callOf,
  compacted,
  denied,
  Meter,
  metaOf,
  outputOf,
  said,
  traceOf,
} from "../../support/messages.js";

const rulesOf = (stream: OmniMessage[]) => validateStream(stream, { mode: "stream" }).map(({ rule }) => rule);
const ran = (id: string): OmniMessage[] => [...called(id), allowed(id), ...answered(id)];
/** A Request whose only call was cut off, and what follows. */
const cut = (status: "completed" | "malformed", ...after: OmniMessage[]): OmniMessage[] => [
  begin(),
  ...called("a", '{"cmd', "malformed"),
  ...new Meter().tail(status, status === "completed" ? { truncated: true } : {}),
  ...after,
];

test.each([
  [
    "each call with one output, in completion order",
    [
      begin(),
      ...called("a"),
      ...called("b"),
      allowed("a"),
      allowed("b"),
      ...answered("b"),
      ...answered("a"),
      ...new Meter().tail(),
    ],
  ],
  ["a call that an output limit cut off, with its failed output", cut("completed", outputOf("a", "cut off", "failed"))],
  [
    "the failed output of a limit before request_end",
    [begin(), ...called("a", "{", "malformed"), ...answered("a", "cut off", { stop: "failed" }), ...new Meter().tail()],
  ],
  [
    "an interrupt between the limit and its output",
    cut("completed", outputOf("a", "[interrupted]", "aborted"), aborted()),
  ],
  ["a call that a failed try cut off, not answered", cut("malformed")],
  [
    "a whole call of a try that failed: denied by abort, and answered",
    [
      begin(),
      ...called("a"),
      ...new Meter().tail("timeout"),
      denied("a", "abort"),
      outputOf("a", "[interrupted]", "aborted"),
    ],
  ],
])("passes: %s", (_, stream) => expect(validateStream(stream, { mode: "stream" })).toEqual([]));

test.each([
  ["no output", [begin(), ...called("a"), allowed("a"), ...new Meter().tail()]],
  ["two outputs", [begin(), ...ran("a"), ...answered("a"), ...new Meter().tail()]],
  ["an output for a call that nobody made", [begin(), ...answered("ghost"), ...new Meter().tail()]],
  [
    "a call cut off by an interrupt, yet answered",
    [
      begin(),
      ...called("a", "{", "aborted"),
      outputOf("a", "[interrupted]", "aborted"),
      ...new Meter().tail("aborted"),
      aborted(),
    ],
  ],
  ["a call cut off by a limit and never answered", cut("completed")],
  ["a call cut off by a limit and answered as if it had run", cut("completed", outputOf("a", "a.txt"))],
  ["a call cut off by a failed try, answered after it", cut("malformed", outputOf("a", "cut off", "failed"))],
  [
    "a call cut off by a failed try, answered inside it",
    [begin(), ...called("a", "{", "malformed"), outputOf("a", "cut off", "failed"), ...new Meter().tail("malformed")],
  ],
  [
    "E14: one id for two calls, answered once each",
    (() => {
      const meter = new Meter();
      return [begin(), ...ran("a"), ...meter.tail(), begin(), ...ran("a"), ...meter.tail()];
    })(),
  ],
  ["an empty id", [begin(), ...ran(""), ...new Meter().tail()]],
  ["an id with a space", [begin(), ...ran("call 1"), ...new Meter().tail()]],
  ["an id of 65 characters", [begin(), ...ran("x".repeat(65)), ...new Meter().tail()]],
])("caught: %s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["pairing"])));

test("an id is taken for the whole Session, across compactions", () => {
  const meter = new Meter();
  const turn = (): OmniMessage[] => [begin(), ...ran("a"), ...meter.tail(), begin(), ...said("x"), ...meter.tail()];
  const trace = [...traceOf(turn()), ...compacted(), metaOf(), ...traceOf(turn()).slice(1)];
  expect(validateStream(trace, { mode: "trace" }).map(({ rule }) => rule)).toEqual(["pairing"]);
});

test("a call that a model made in place of a summary is neither decided nor answered", () => {
  const meter = new Meter();
  const first = traceOf([begin(), ...said("x"), ...meter.tail()]);
  const trace = [...first, ...compacted("failed", [callOf("a"), meter.usage()])];
  expect(validateStream(trace, { mode: "trace" })).toEqual([]);
});
