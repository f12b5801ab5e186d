import { expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import type { TokenCounts } from "../../../src/protocol/payloads.js";
import { validateStream } from "../../../src/protocol/validate.js";
import { AT, begin, compacted, countsOf, Meter, metaOf, traceOf } from "../../support/messages.js";

const rulesOf = (messages: OmniMessage[], mode: "stream" | "trace" = "stream") =>
  validateStream(messages, { mode }).map(({ rule }) => rule);
const request = (session: TokenCounts, used: TokenCounts): OmniMessage[] => [
  begin(),
  make.tokenUsage(AT, session, used),
  make.requestEnd(AT, { status: "completed" }),
];
const used = countsOf(1, 2, 3);

test.each([
  ["counts that add up from zero", [...request(used, used), ...request(countsOf(2, 4, 6), used)]],
  ["a Request of which the provider said nothing", [...request(used, used), ...request(used, countsOf(0, 0, 0))]],
  ["the part of cache_write that was cached", request({ ...used, cache_creation: 2 }, { ...used, cache_creation: 2 })],
])("passes: %s", (_, stream) => {
  expect(rulesOf(stream)).toEqual([]);
  expect(rulesOf(traceOf(stream), "trace")).toEqual([]);
});

test("a stream may begin in a Session that has counts already", () => {
  expect(rulesOf([...request(countsOf(10, 20, 30), used), ...request(countsOf(11, 22, 33), used)])).toEqual([]);
});

test("a reader of the stream does not see what a compaction used", () => {
  expect(rulesOf([...request(used, used), ...compacted(), ...request(countsOf(9, 9, 9), used)])).toEqual([]);
});

test.each([
  ["a total that is not the sum", request({ ...used, total: 7 }, { ...used, total: 7 })],
  ["a Session that does not grow", [...request(used, used), ...request(used, used)]],
  ["a Session that grows too much", [...request(used, used), ...request(countsOf(2, 4, 7), used)]],
  [
    "a Session that shrinks over a compaction",
    [...request(countsOf(5, 5, 5), used), ...compacted(), ...request(countsOf(5, 5, 5), used)],
  ],
  ["a Session with less than its first Request", request(countsOf(1, 2, 2), used)],
  ["more cached than written", request({ ...used, cache_creation: 3 }, { ...used, cache_creation: 3 })],
])("caught: %s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["usage"])));

test("a Trace counts from zero, and a compaction's own usage counts in it", () => {
  expect(rulesOf(traceOf(request(countsOf(2, 2, 3), used)), "trace")).toEqual(["usage"]);
  const meter = new Meter();
  const first = [begin(), ...meter.tail()];
  const hidden = meter.usage();
  const second = [begin(), ...meter.tail()];
  const good = [...traceOf(first), ...compacted("completed", [hidden]), metaOf(), ...second];
  expect(rulesOf(good, "trace")).toEqual([]);
  expect(
    rulesOf(
      good.filter((message) => message !== hidden),
      "trace",
    ),
  ).toEqual(["usage"]);
});
