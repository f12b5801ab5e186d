// A record that cannot be written, in mid-Task: the Task ends, and nothing that it started outlives it.

import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { harness, scriptedModel, scriptedTools } from "../support/engine.js";
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
