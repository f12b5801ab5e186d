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
  callOf,
  compacted,
  countsOf,
  denied,
  from,
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
const request = (meter: Meter, ...inside: OmniMessage[]): OmniMessage[] => [begin(), ...inside, ...meter.tail()];
const ran = (id: string): OmniMessage[] => [...called(id), allowed(id), ...answered(id)];

describe("passes", () => {
  test("a Request that said nothing", () => expect(rulesOf(request(new Meter()))).toEqual([]));

  test("output after request_end, and the next Request once all of it is in", () => {
    const meter = new Meter();
    const stream = [...request(meter, ...called("a"), ...called("b"), allowed("a")), ...answered("a"), allowed("b")];
    expect(rulesOf([...stream, ...answered("b"), ...request(meter, ...said("done"))])).toEqual([]);
  });

  test("the max_turns notice outside any Request", () => {
    const meter = new Meter();
    expect(rulesOf([...request(meter, ...ran("a")), ...notice(1), ...request(meter, ...said("next Task"))])).toEqual(
      [],
    );
  });

  test("a child's messages between token_usage and request_end: they are another chain", () => {
    const meter = new Meter();
    const child = from("child", [metaOf("child"), ...request(new Meter(), ...said("hi"))]);
    const [used, ended] = meter.tail();
    const stream = [begin(), ...called("a"), allowed("a"), make.subagent(AT, "child"), ...child.slice(0, 3), used!];
    expect(rulesOf([...stream, ...child.slice(3), ended!, ...answered("a")])).toEqual([]);
  });

  test("a Prompt and steering that a Trace holds inside a Request", () => {
    const trace = traceOf(request(new Meter(), ...said("a")));
    expect(rulesOf(trace.toSpliced(3, 0, make.asSteering(make.userText(AT, "and hurry"), "steer-1")), "trace")).toEqual(
      [],
    );
  });

  test("one token_usage for each try of a compaction, in the Trace", () => {
    const meter = new Meter();
    const first = request(meter, ...said("a"));
    const tries = compacted("completed", [meter.usage(), make.assistantText(AT, "summary"), meter.usage()]);
    const summary = make.userText(AT, "[context_summary]\nsummary\n[/context_summary]");
    const trace = [...traceOf(first), ...tries, metaOf(), summary, ...traceOf(request(meter, ...said("b"))).slice(1)];
    expect(rulesOf(trace, "trace")).toEqual([]);
  });
});

describe("caught", () => {
  const [used, ended] = new Meter().tail();
  const nothing = make.tokenUsage(AT, countsOf(2, 5, 3), countsOf(0, 0, 0));
  test.each([
    ["no token_usage", [begin(), ...said("a"), ended!]],
    ["two token_usages", [begin(), ...said("a"), used!, nothing, ended!]],
    ["text between token_usage and request_end", [begin(), used!, ...said("a"), ended!]],
    [
      "a tool's output between token_usage and request_end",
      [begin(), ...called("a"), allowed("a"), used!, ...answered("a"), ended!],
    ],
    ["token_usage after request_end", [begin(), ended!, used!]],
    ["request_begin inside a Request", [begin(), begin(), used!, ended!]],
    ["request_end twice", [begin(), used!, ended!, nothing, ended!]],
    ["a Request without end", [begin(), ...said("a")]],
    ["text outside a Request", [begin(), used!, ended!, ...said("a")]],
    ["a notice of other words", [begin(), used!, ended!, ...said("[reached max turns]")]],
    ["thinking outside a Request", [begin(), used!, ended!, ...thought("a")]],
    ["a call outside a Request", [begin(), used!, ended!, ...ran("a")]],
    ["token_usage outside a Request", [begin(), used!, ended!, nothing]],
  ])("%s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["request-tail"])));

  test.each([
    ["request_begin", (meter: Meter) => request(meter, ...said("x"))],
    ["the notice", () => notice(1)],
    ["compaction_begin", () => compacted()],
  ])("%s before an output of the batch", (_, next) => {
    const meter = new Meter();
    const stream = [...request(meter, ...called("a"), allowed("a")), ...next(meter), ...answered("a")];
    expect(rulesOf(stream)).toEqual(["request-tail"]);
  });
});

describe("G5: a Trace that a crash cut and recovery closed", () => {
  const recovered = aborted("server_restarted");
  const usages = (n: number): OmniMessage[] =>
    Array.from({ length: n }, () => make.tokenUsage(AT, countsOf(0, 0, 0), countsOf(0, 0, 0)));
  const head = traceOf([begin()]);
  const [first, second] = usages(2);
  const abortedEnd = make.requestEnd(AT, { status: "aborted" });
  const closed = [denied("a", "abort"), outputOf("a", "[interrupted: tool aborted by user]", "aborted")];

  test.each([
    ["after the Prompt", [...head.slice(0, 2), recovered]],
    ["after request_begin", [...head, first!, abortedEnd, recovered]],
    ["after a call", [...head, callOf("a"), ...closed, first!, abortedEnd, recovered]],
    ["after token_usage", [...head, first!, abortedEnd, recovered]],
    ["after token_usage, with a second one", [...head, first!, second!, abortedEnd, recovered]],
    ["after token_usage, with a call open", [...head, callOf("a"), first!, ...closed, second!, abortedEnd, recovered]],
    [
      "after token_usage, with a call open: the end first",
      [...head, callOf("a"), first!, abortedEnd, ...closed, recovered],
    ],
    [
      "after token_usage, with a call open and no second one",
      [...head, callOf("a"), first!, ...closed, abortedEnd, recovered],
    ],
    ["after request_end, with a call open", [...traceOf(request(new Meter(), callOf("a"))), ...closed, recovered]],
    ["in a compaction", [...traceOf(request(new Meter(), ...said("x"))), ...compacted("failed"), recovered]],
    [
      "between a compaction and its new context",
      [...traceOf(request(new Meter(), ...said("x"))), ...compacted(), recovered],
    ],
  ])("%s passes", (_, trace) => expect(validateStream(trace, { mode: "trace" })).toEqual([]));

  test("the same without a restart is caught, at its place", () => {
    const trace = [...head, first!, second!, abortedEnd, aborted("user")];
    expect(validateStream(trace, { mode: "trace" })).toEqual([
      { place: 3, rule: "request-tail", message: "token_usage is not followed by request_end" },
    ]);
  });

  test("a second token_usage of a Request that completed is caught", () => {
    expect(rulesOf([...head, first!, second!, make.requestEnd(AT, { status: "completed" })], "trace")).toEqual([
      "request-tail",
    ]);
  });
});
