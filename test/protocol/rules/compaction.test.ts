import { expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import { AT, aborted, begin, compacted, Meter, metaOf, said, thought, traceOf } from "../../support/messages.js";

const rulesOf = (messages: OmniMessage[], mode: "stream" | "trace") =>
  validateStream(messages, { mode }).map(({ rule }) => rule);
const meter = new Meter();
const one = [begin(), ...said("one"), ...meter.tail()];
const inside = meter.usage();
const two = [begin(), ...said("two"), ...meter.tail()];
const summary = make.userText(AT, "[context_summary]\nall of it\n[/context_summary]");
const own = [make.thinking(AT, "hm"), make.assistantText(AT, "all of it"), inside];
const records = (messages: OmniMessage[]): OmniMessage[] => traceOf(messages).slice(2);
const trace = (...rest: OmniMessage[]): OmniMessage[] => [...traceOf(one), ...rest];

test.each([
  ["on the stream, without its own messages", [...one, ...compacted(), ...two], "stream"],
  ["on the stream, with its token_usage", [...one, ...compacted("completed", [inside]), ...two], "stream"],
  [
    "in the Trace, with its output and a new context",
    trace(...compacted("completed", own), metaOf(), summary, ...records(two)),
    "trace",
  ],
  ["one that failed: the old context stays", trace(...compacted("failed", [inside]), ...records(two)), "trace"],
  ["one that was aborted while no Task ran", trace(...compacted("aborted", [inside]), aborted()), "trace"],
  ["one that completed last, in an idle Session", trace(...compacted("completed", own)), "trace"],
] as const)("passes: %s", (_, messages, mode) => expect(validateStream(messages, { mode })).toEqual([]));

const [opened, closed] = compacted();
test.each([
  ["a begin inside a compaction", [...one, opened!, opened!, closed!], "stream"],
  ["an end without begin", [...one, closed!], "stream"],
  [
    "an end of another mode",
    [...one, opened!, make.compactionEnd(AT, { reason: "context", mode: "discard", status: "completed" })],
    "stream",
  ],
  ["one that never ends", [...one, opened!], "stream"],
  ["one inside a Request", [...one.slice(0, 5), ...compacted(), ...one.slice(5)], "stream"],
  ["its own output on the stream", [...one, opened!, ...said("all of it"), closed!], "stream"],
  ["its own fragments on the stream", [...one, opened!, ...thought("hm"), closed!], "stream"],
  ["a Request inside it", trace(opened!, ...records(two).toSpliced(1, 1), closed!), "trace"],
  ["a session_meta inside a context", trace(metaOf(), ...records(two)), "trace"],
  ["a session_meta after one that failed", trace(...compacted("failed"), metaOf(), ...records(two)), "trace"],
  ["a new context without session_meta", trace(...compacted("completed", own), summary, ...records(two)), "trace"],
  [
    "a summary before the session_meta",
    trace(...compacted("completed", own), summary, metaOf(), ...records(two)),
    "trace",
  ],
] as const)("caught: %s", (_, messages, mode) => expect(rulesOf([...messages], mode)).toContain("compaction"));

test("what is caught is only the compaction", () => {
  expect(
    rulesOf([...one, opened!, ...said("all of it"), closed!, ...two], "stream").every((rule) => rule === "compaction"),
  ).toBe(true);
  expect(rulesOf(trace(...compacted("completed", own), summary, ...records(two)), "trace")).toEqual(["compaction"]);
});
