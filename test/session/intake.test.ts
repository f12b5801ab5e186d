// What is being accepted while the Session becomes free: it is neither lost nor in the way.

import { expect, test } from "vitest";
import { diskFs } from "../../src/trace/trace-fs.js";
import { textsOf } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { ended, hostOn, listReader, made } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

/** As long as a Task that could have ended needs to end. */
const turns = async () => {
  for (let count = 0; count < 50; count++) await new Promise((resolve) => setImmediate(resolve));
};

test("steering whose key is being recorded when its Task fails is given to the next one", async () => {
  const [rest, keyWrite, begun] = [gate(), gate(), gate()];
  const fails: Script = {
    steps: [{ wait: rest.opened }],
    outcome: { status: "failed", error: { kind: "auth", message: "no" } },
  };
  const model = scriptedModel([fails, { steps: [{ say: "2" }] }]);
  const host = await hostOn({ model });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const reader = listReader();
  session.follow(reader, {});
  const { taskId } = await made(session.submit("a", {}));
  const beforeRecorded = () => {
    begun.open();
    return keyWrite.opened;
  };
  const steering = session.submit("look left", { whenBusy: "steer", hasKey: true, beforeRecorded });
  await begun.opened;
  rest.open();
  await reader.until(({ data }) => (data.payload as { type?: string } | undefined)?.type === "request_end");
  await turns();
  // The Task that it was promised to waits for it.
  expect(session.task(taskId)?.state).toBe("running");
  keyWrite.open();
  expect(await made(steering)).toMatchObject({ taskId });
  await reader.until(ended);
  expect(session.task(taskId)).toMatchObject({ state: "ended", status: "failed" });
  await made(session.submit("b", {}));
  await session.settled();
  expect(session.queue()).toEqual([]);
  expect(textsOf(model.requests[1]?.messages ?? []).filter((text) => text === "look left")).toHaveLength(1);
});

test("a Task that waits starts although one that was put in front of it could not be recorded", async () => {
  const [rest, disk, begun] = [gate(), gate(), gate()];
  let isFull = false;
  const fs = {
    ...diskFs,
    rename: async (from: string, to: string) => {
      if (!isFull) return diskFs.rename(from, to);
      begun.open();
      await disk.opened;
      throw Object.assign(new Error("full"), { code: "ENOSPC" });
    },
  };
  const model = scriptedModel([{ steps: [{ wait: rest.opened }, { say: "1" }] }, { steps: [{ say: "2" }] }]);
  const host = await hostOn({ model, fs });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("a", {}));
  const waits = await made(session.submit("b", { whenBusy: "queue" }));
  isFull = true;
  const interrupts = session.submit("c", { whenBusy: "interrupt" });
  await begun.opened;
  // The first one ends by itself while that is being recorded.
  rest.open();
  await reader.until(ended);
  isFull = false;
  disk.open();
  expect(await interrupts).toMatchObject({ ok: false, code: "storage_failed" });
  await expect.poll(() => session.task(waits.taskId)).toMatchObject({ state: "ended", status: "completed" });
});
