// A record that cannot be written, in mid-Task: the Task ends, and nothing that it started outlives it.

import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { harness, kinds, scriptedModel, scriptedTools } from "../support/engine.js";
import { gate } from "../support/upstream.js";

test("one tool's output is refused while another runs: the Task ends when that one has ended too", async () => {
  const rest = gate();
  let isRunning = false;
  const environment = scriptedTools({
    // biome-ignore lint/correctness/useYield: it says nothing
    quick: async function* () {
      await new Promise(setImmediate);
    },
    stubborn: async function* () {
      isRunning = true;
      await rest.opened;
      isRunning = false;
      yield "late";
    },
  });
  const model = scriptedModel([
    {
      steps: [
        { call: "stubborn", id: "call-1" },
        { call: "quick", id: "call-2" },
      ],
    },
  ]);
  const run = harness({
    model,
    environment,
    refuses: (message) => isPayload(message, "tool_call_output"),
  });
  let isOver = false;
  const outcome = run.run("go").finally(() => {
    isOver = true;
  });
  for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
  expect([isRunning, isOver]).toEqual([true, false]);
  rest.open();
  expect(await outcome).toMatchObject({ status: "failed", error: { kind: "storage" } });
  expect(isRunning).toBe(false);
});

const quick = async function* () {
  await new Promise(setImmediate);
  yield "done";
};
const refuses = (message: OmniMessage) => isPayload(message, "tool_call_output");
const STORAGE = { status: "failed", error: { kind: "storage" } };

test("one tool's output is refused while another call waits for a person: the Task ends, and the question is withdrawn", async () => {
  let withdrawn: AbortSignal | undefined;
  const calls = [
    { call: "quick", id: "call-1" },
    { call: "quick", id: "call-2" },
  ];
  const run = harness({
    model: scriptedModel([{ steps: calls }]),
    environment: scriptedTools({ quick }),
    refuses,
    approver: (call, signal) => {
      if (call.payload.tool_call_id === "call-1") return { decision: "allow", decidedBy: "policy" };
      withdrawn = signal;
      return new Promise(() => {});
    },
  });
  expect(await run.run("go")).toMatchObject(STORAGE);
  expect(withdrawn?.aborted).toBe(true);
  expect(kinds(run.stream).filter((kind) => kind.startsWith("approval_decision"))).toHaveLength(1);
});

test("one tool's output is refused while the model is silent: the Task ends, and the Request with it", async () => {
  const model = scriptedModel([
    { steps: [{ call: "quick", id: "call-1" }, { wait: new Promise(() => {}) }, { say: "never" }] },
  ]);
  const run = harness({ model, environment: scriptedTools({ quick }), refuses });
  expect(await run.run("go")).toMatchObject(STORAGE);
  expect(model.requests[0]?.signal.aborted).toBe(true);
});
