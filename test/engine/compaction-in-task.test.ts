// Compaction as a Task runs: when, what goes on, and that it ends.

import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { textsOf } from "../support/compaction.js";
import {
  counts,
  type Harness,
  harness,
  kinds,
  type Script,
  type Step,
  scriptedModel,
  scriptedTools,
} from "../support/engine.js";
import { metaOf } from "../support/messages.js";

const SUMMARY = "[context_summary]\nAll of it.\n[/context_summary]";
const good: Script = { steps: [{ say: "All of it." }], outcome: { usage: counts(10, 5) } };
const sized = (total: number, ...steps: Step[]): Script => ({ steps, outcome: { usage: counts(total - 1, 1) } });
const tooLong: Script = {
  steps: [],
  outcome: { status: "failed", usage: counts(0, 0), error: { kind: "context_overflow", message: "too long" } },
};
const lost: Script = {
  steps: [],
  outcome: { status: "timeout", usage: counts(0, 0), error: { kind: "network", message: "reset" } },
};
const environment = scriptedTools({
  t: async function* () {
    yield "out";
  },
});

function expectLawful({ stream, trace }: Harness): void {
  const records = [metaOf() as OmniMessage, ...trace];
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(compareStreamWithTrace(stream, records)).toEqual([]);
}
const beginnings = (task: Harness) =>
  task.stream.flatMap(({ payload }) => ("type" in payload && payload.type === "compaction_begin" ? [payload] : []));

test("in mid-Task, when all outputs are in: the summary takes their place and the Task goes on", async () => {
  const model = scriptedModel([
    sized(1_000, { call: "t", id: "a" }, { call: "t", id: "b" }),
    good,
    sized(50, { say: "done" }),
  ]);
  const task = harness({ model, environment, compaction: { maxContextLength: 1_000 } });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(kinds(task.stream)).toEqual([
    "request_begin",
    "tool_call a",
    "approval_decision a",
    "tool_call b",
    "approval_decision b",
    expect.anything(),
    expect.anything(),
    expect.anything(),
    expect.anything(),
    "compaction_begin",
    "compaction_end completed",
    "request_begin",
    "text",
    "token_usage",
    "request_end completed",
  ]);
  expect(model.requests[1]?.messages.filter((message) => isPayload(message, "tool_call_output"))).toHaveLength(2);
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual([SUMMARY]);
  expectLawful(task);
});

test("at a Task's last turn too, before it ends, and the next Prompt stands behind the summary", async () => {
  const model = scriptedModel([sized(1_000, { say: "done" }), good, sized(50, { say: "again" })]);
  const task = harness({ model, compaction: { maxContextLength: 1_000 } });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(kinds(task.stream).at(-1)).toBe("compaction_end completed");
  await task.run("and now?");
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual([SUMMARY, "and now?"]);
  expectLawful(task);
});

test("after as many committed Requests as one context may have, tries that failed not among them", async () => {
  const model = scriptedModel([
    lost,
    sized(10, { call: "t", id: "a" }),
    sized(10, { call: "t", id: "b" }),
    good,
    sized(10, { say: "done" }),
  ]);
  const retry = { baseMs: 0, maxMs: 0, limit: 1 };
  const task = harness({ model, environment, retry, compaction: { maxSessionTurns: 2 } });
  await task.run("go");
  expect(beginnings(task)).toMatchObject([{ reason: "turns", turns: 2, context: 10 }]);
  expectLawful(task);
});

test("what is said into the Task meanwhile stands behind the summary, in the same Request", async () => {
  let task: Harness | undefined;
  const summarising = scriptedModel([sized(1_000, { call: "t", id: "a" }), good, sized(50, { say: "done" })]);
  const model = {
    stream: (request: Parameters<typeof summarising.stream>[0]) => {
      if (summarising.requests.length === 1) task?.steer("mind the gap");
      return summarising.stream(request);
    },
  };
  task = harness({ model, environment, compaction: { maxContextLength: 1_000 } });
  await task.run("go");
  expect(textsOf(summarising.requests[2]?.messages ?? [])).toEqual([SUMMARY, "mind the gap"]);
  expectLawful(task);
});

test("a Request that was too long: one compaction and one new try, with the Prompt word for word", async () => {
  const model = scriptedModel([sized(10, { say: "one" }), tooLong, good, sized(10, { say: "two" })]);
  const task = harness({ model, compaction: { maxContextLength: 1_000 } });
  await task.run("first");
  expect(await task.run("second")).toEqual({ status: "completed" });
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual(["first", "one", "Summarize."]);
  expect(textsOf(model.requests[3]?.messages ?? [])).toEqual([SUMMARY, "second"]);
  expect(task.stream.flatMap((m) => (isPayload(m, "request_end") ? [m.payload.attempt] : []))).toEqual([
    undefined,
    1,
    2,
  ]);
  expectLawful(task);
});

test("F20: when the new try is too long as well the Task ends with context_overflow, and so does the next at once", async () => {
  const model = scriptedModel([sized(10, { say: "one" }), tooLong, good, tooLong, tooLong]);
  const task = harness({ model, compaction: { maxContextLength: 1_000 } });
  await task.run("first");
  expect(await task.run("second")).toMatchObject({ status: "failed", error: { kind: "context_overflow" } });
  expect(model.requests).toHaveLength(4);
  // Nothing was committed since the summary, so a further one could not help.
  expect(await task.run("third")).toMatchObject({ status: "failed", error: { kind: "context_overflow" } });
  expect(model.requests).toHaveLength(5);
  expect(beginnings(task)).toHaveLength(1);
  expectLawful(task);
});

test("F20: a summary that cannot be had ends the Task whose context does not fit, with context_overflow", async () => {
  const model = scriptedModel([sized(10, { say: "one" }), tooLong, tooLong, tooLong]);
  const task = harness({ model, compaction: { maxContextLength: 1_000 } });
  await task.run("first");
  expect(await task.run("second")).toMatchObject({ status: "failed", error: { kind: "context_overflow" } });
  expect(kinds(task.stream).at(-1)).toBe("compaction_end failed");
  expectLawful(task);
});

test("F20: a system prompt and tools that are too long in themselves are compacted once, not at every turn", async () => {
  const turns = Array.from({ length: 20 }, (_, n) => sized(2_000, { call: "t", id: `c${n}` }));
  const model = scriptedModel([turns[0]!, good, ...turns.slice(1), sized(2_000, { say: "done" })]);
  const task = harness({ model, environment, compaction: { maxContextLength: 1_000 } });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(beginnings(task)).toHaveLength(1);
});

test("F20: after one that failed none follows in the same Task, and the old context goes on", async () => {
  const turns = Array.from({ length: 20 }, (_, n) => sized(2_000, { call: "t", id: `c${n}` }));
  const model = scriptedModel([turns[0]!, lost, ...turns.slice(1), sized(2_000, { say: "done" }), lost]);
  const task = harness({ model, environment, compaction: { maxContextLength: 1_000 } });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(beginnings(task)).toHaveLength(1);
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual(["go"]);
});

test("F21: where compaction by length is off, a Request that was too long is not compacted either", async () => {
  const model = scriptedModel([sized(9_999, { say: "one" }), tooLong]);
  const task = harness({ model, compaction: { maxContextLength: -1 } });
  await task.run("first");
  expect(await task.run("second")).toMatchObject({ status: "failed", error: { kind: "context_overflow" } });
  expect(beginnings(task)).toEqual([]);
});

test("an abort during it ends the Task, and the next one has the old context", async () => {
  const model = scriptedModel([
    sized(1_000, { call: "t", id: "a" }),
    { steps: [{ say: "half" }, { wait: new Promise<never>(() => {}) }] },
    sized(10, { say: "done" }),
  ]);
  const task = harness({ model, environment, compaction: { maxContextLength: 1_000 } });
  const run = task.run("first");
  await task.shown((message) => isPayload(message, "compaction_begin"));
  while (kinds(task.trace).at(-1) !== "text") await Promise.resolve();
  task.abort();
  expect(await run).toEqual({ status: "aborted" });
  expect(kinds(task.stream).slice(-3)).toEqual(["compaction_begin", "compaction_end aborted", "abort"]);
  await task.run("second");
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual(["first", "second"]);
  expectLawful(task);
});

test("a disk that refuses the new context's file leaves nothing half done: the next Prompt begins it", async () => {
  let isFull = true;
  const model = scriptedModel([sized(1_000, { call: "t", id: "a" }), good, sized(10, { say: "done" })]);
  const task = harness({
    model,
    environment,
    compaction: { maxContextLength: 1_000 },
    refuses: (message) => isFull && isPayload(message, "request_begin") && model.requests.length === 2,
  });
  expect(await task.run("first")).toMatchObject({ status: "failed", error: { kind: "storage" } });
  expect(kinds(task.trace).at(-1)).toBe("compaction_end completed");
  isFull = false;
  expect(await task.run("second")).toEqual({ status: "completed" });
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual([SUMMARY, "second"]);
});

test("a paused answer is not torn from what follows it", async () => {
  const paused: Script = { steps: [{ say: "so far" }], outcome: { usage: counts(999, 1), pause: true } };
  const model = scriptedModel([paused, sized(1_000, { say: "and done" }), good]);
  const task = harness({ model, compaction: { maxContextLength: 1_000 } });
  await task.run("go");
  expect(textsOf(model.requests[1]?.messages ?? [])).toEqual(["go", "so far"]);
  expect(beginnings(task)).toHaveLength(1);
  expectLawful(task);
});
