import { describe, expect, test } from "vitest";
import { type RetryPolicy, retryWait } from "../../src/engine/ladder.js";
import type { LLMOutcome } from "../../src/engine/ports.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { ErrorKind, StopReason } from "../../src/protocol/payloads.js";
import { counts, harness, kinds, scriptedModel, scriptedTools } from "../support/engine.js";

const STANDARD: RetryPolicy = { baseMs: 2_000, maxMs: 30_000, limit: 5 };
const QUICK: RetryPolicy = { baseMs: 1, maxMs: 4, limit: 5 };

const failed = (kind: ErrorKind, status: StopReason = "timeout"): LLMOutcome => ({
  status,
  usage: counts(0, 0),
  error: { kind, message: "no" },
});
const lost = { outcome: { status: "timeout", error: { kind: "network", message: "reset" } } } as const;
const endsOf = (messages: readonly OmniMessage[]) =>
  messages.flatMap((message) => (isPayload(message, "request_end") ? [message.payload] : []));

describe("the waits", () => {
  test("double from 2 s to the ceiling of 30 s, five times, and then no further try follows", () => {
    const waits = [1, 2, 3, 4, 5, 6].map((attempt) => retryWait(STANDARD, failed("network"), attempt));
    expect(waits).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, undefined]);
  });

  test("F17: are what the provider asks for when that is longer, not bounded by the ceiling but by five minutes", () => {
    const asking = (retryAfterMs: number) => retryWait(STANDARD, { ...failed("rate_limit"), retryAfterMs }, 1);
    expect([asking(500), asking(45_000), asking(9e9)]).toEqual([2_000, 45_000, 300_000]);
  });

  test.each<[ErrorKind, boolean]>([
    ["auth", false],
    ["invalid_request", false],
    ["context_overflow", false],
    ["content_filter", false],
    ["rate_limit", true],
    ["overloaded", true],
    ["network", true],
    ["timeout", true],
    ["malformed", true],
    ["unknown", true],
  ])("after %s there is another try: %s", (kind, isTried) => {
    expect(retryWait(STANDARD, failed(kind), 1) !== undefined).toBe(isTried);
  });

  test("with a limit of 0 a Request is tried once", () => {
    expect(retryWait({ ...STANDARD, limit: 0 }, failed("network"), 1)).toBeUndefined();
  });
});

test("a lost try is followed by another that carries the input and a block of what was said, and then the Task goes on", async () => {
  const model = scriptedModel([{ steps: [{ say: "half an ans" }], ...lost }, { steps: [{ say: "whole" }] }]);
  const waits: { attempt: number }[] = [];
  const task = harness({ model, retry: QUICK, waits: waits as never });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(endsOf(task.stream)).toMatchObject([
    { status: "timeout", attempt: 1, retry_in_ms: 1 },
    { status: "completed", attempt: 2 },
  ]);
  expect(waits).toMatchObject([{ attempt: 1, status: "timeout" }]);
  const sent = (model.requests[1]?.messages ?? []).map((message) =>
    isPayload(message, "text") ? message.payload.text : "",
  );
  expect(sent[0]).toBe("go");
  expect(sent[1]).toMatch(/^\[turn_retried\]\n.*half an ans.*\n\[\/turn_retried\]$/s);
});

test("a try that had come to nothing leaves no block", async () => {
  const model = scriptedModel([{ steps: [], ...lost }, { steps: [{ say: "whole" }] }]);
  const task = harness({ model, retry: QUICK });
  await task.run("go");
  expect(model.requests[1]?.messages.length).toBe(1);
});

test("tools of a failed try are not run again: what ran is told in the block, what was not asked about is denied", async () => {
  const model = scriptedModel([
    {
      steps: [
        { call: "t", id: "a" },
        { call: "t", id: "b" },
      ],
      ...lost,
    },
    { steps: [{ say: "done" }] },
  ]);
  const environment = scriptedTools({
    t: async function* () {
      yield "ran";
    },
  });
  const task = harness({
    model,
    environment,
    retry: QUICK,
    approver: (call) =>
      call.payload.tool_call_id === "a" ? { decision: "allow", decidedBy: "policy" } : new Promise(() => {}),
  });
  await task.run("go");
  expect(environment.started).toEqual(["a"]);
  const beginnings = kinds(task.stream).flatMap((kind, index) => (kind === "request_begin" ? [index] : []));
  const outputs = kinds(task.stream).flatMap((kind, index) => (kind.startsWith("tool_call_output") ? [index] : []));
  expect(Math.max(...outputs)).toBeLessThan(beginnings[1] ?? 0);
  expect(JSON.stringify(model.requests[1]?.messages)).toContain("Output of t: ran");
});

test("when the last try fails too the Task ends with its status, and no wait is promised", async () => {
  const model = scriptedModel([1, 2, 3].map(() => ({ steps: [], ...lost })));
  const task = harness({ model, retry: { ...QUICK, limit: 2 } });
  expect((await task.run("go")).status).toBe("timeout");
  expect(endsOf(task.stream).map((end) => end.retry_in_ms)).toEqual([1, 2, undefined]);
});

test("an abort in back-off takes effect at once", async () => {
  const model = scriptedModel([{ steps: [], ...lost }]);
  const task = harness({ model, retry: { baseMs: 3_600_000, maxMs: 3_600_000, limit: 1 } });
  const run = task.run("go");
  await task.shown((message) => isPayload(message, "request_end"));
  task.abort();
  expect(await run).toEqual({ status: "aborted" });
});

test("an answer of reasoning alone is not empty: it is taken as it is", async () => {
  const task = harness({ model: scriptedModel([{ steps: [{ think: "hm" }] }]), retry: QUICK });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(endsOf(task.stream)).toMatchObject([{ status: "completed" }]);
});

test("an empty answer that ended well is tried once more, then accepted", async () => {
  const model = scriptedModel([{ steps: [] }, { steps: [] }]);
  const task = harness({ model, retry: QUICK });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(endsOf(task.stream)).toMatchObject([
    { status: "malformed", error: { kind: "malformed" }, retry_in_ms: 1 },
    { status: "completed", attempt: 2 },
  ]);
});
