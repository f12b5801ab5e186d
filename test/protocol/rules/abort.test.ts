import { expect, test } from "vitest";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import {
  aborted,
  allowed,
  answered,
  begin,
  called,
  compacted,
  denied,
  Meter,
  notice,
  outputOf,
  said,
  traceOf,
} from "../../support/messages.js";

const rulesOf = (stream: OmniMessage[], mode: "stream" | "trace" = "stream") =>
  validateStream(stream, { mode }).map(({ rule }) => rule);
const interrupted = "[interrupted: tool aborted by user]";
const tail = (): OmniMessage[] => new Meter().tail("aborted");
const done = (...inside: OmniMessage[]): OmniMessage[] => [begin(), ...inside, ...new Meter().tail()];

const mid = [
  begin(),
  ...called("a"),
  allowed("a"),
  ...called("b"),
  ...said("I wi", "aborted"),
  denied("b", "abort"),
  ...answered("a", ["half", interrupted], { stop: "aborted" }),
  outputOf("b", interrupted, "aborted"),
  ...tail(),
  aborted(),
];

test.each([
  ["an interrupt with a segment, an undecided call and a running tool", mid],
  ["an interrupt while a call is written", [begin(), ...called("a", '{"cm', "aborted"), ...tail(), aborted()]],
  [
    "an interrupt after the Request committed",
    [...done(...called("a")), denied("a", "abort"), outputOf("a", interrupted, "aborted"), aborted()],
  ],
  ["an interrupt before anything was said", [aborted()]],
  ["two Tasks, each aborted before its Request", [aborted(), aborted("shutdown")]],
  ["a Task after an aborted one", [begin(), ...tail(), aborted(), begin()]],
  ["a compaction after an aborted Task", [begin(), ...tail(), aborted(), ...compacted("aborted"), aborted()]],
  ["a Task that starts with the notice, after an aborted one", [aborted(), ...notice(0)]],
])("passes: %s", (_, stream) => expect(validateStream(stream, { mode: "stream", running: true })).toEqual([]));

test("F1: an interrupt leaves every call of the Trace paired", () => {
  expect(validateStream(traceOf(mid), { mode: "trace" })).toEqual([]);
});

test.each([
  ["abort inside a Request", [begin(), ...said("a"), aborted()]],
  ["abort inside a compaction", [...compacted().slice(0, 1), aborted()]],
  ["abort before the output of a call", [...done(...called("a"), allowed("a")), aborted()]],
  [
    "request_end(aborted) before the output of a call",
    [begin(), ...called("a"), allowed("a"), ...tail(), outputOf("a", interrupted, "aborted"), aborted()],
  ],
  ["request_end(aborted) without abort", [begin(), ...tail(), begin(), ...said("x")]],
  ["compaction_end(aborted) without abort", [...compacted("aborted"), begin()]],
  ["an output after the abort", [...done(...called("a"), allowed("a")), aborted(), ...answered("a")]],
  ["a Request closed after the abort", [begin(), aborted(), ...tail()]],
  [
    "a denial by abort while a segment is open",
    [
      begin(),
      ...called("a"),
      ...said("I wi", "aborted").slice(0, 2),
      denied("a", "abort"),
      ...said("I wi", "aborted").slice(2),
      outputOf("a", interrupted, "aborted"),
      ...tail(),
      aborted(),
    ],
  ],
  ["a reason that is not in the list", [aborted("because")]],
])("caught: %s", (_, stream) =>
  expect(validateStream(stream, { mode: "stream", running: true }).map(({ rule }) => rule)).toContain("abort"),
);

test("the order of recovery is caught where a person interrupted", () => {
  const stream = [
    begin(),
    ...called("a"),
    ...tail(),
    denied("a", "abort"),
    outputOf("a", interrupted, "aborted"),
    aborted(),
  ];
  expect(validateStream(stream, { mode: "stream" }).map(({ place, rule, message }) => [place, rule, message])).toEqual([
    [6, "abort", 'request_end(aborted) before the output of call "a"'],
    [6, "abort", "request_end(aborted) is not followed by abort"],
  ]);
  expect(rulesOf([...stream.slice(0, -1), aborted("server_restarted")])).toEqual([]);
});

test("request_end(aborted) as the last message of all is caught", () => {
  expect(rulesOf([begin(), ...tail()])).toEqual(["abort"]);
});

test("what an aborted Task left open is not held against the next", () => {
  const stream = [...done(...called("a"), allowed("a")), aborted(), begin()];
  expect(validateStream(stream, { mode: "stream", running: true })).toHaveLength(1);
});

test("an imported Trace may give reasons of its own", () => {
  expect(rulesOf([...traceOf([]), aborted("user closed the window")], "trace")).toEqual([]);
});
