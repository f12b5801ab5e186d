// What a Session remembers of Tasks that are over, and what whoever waits for one is told that it has forgotten.

import { expect, test } from "vitest";
import { type Ended, EndedTasks } from "../../src/session/ended-tasks.js";
import { gate, scriptedModel } from "../support/engine.js";
import { hostOn, listReader, made, tempDir } from "../support/sessions.js";

const START = Date.parse("2026-01-01T00:00:00.000Z");
const HOUR_MS = 3_600_000;

const task = (taskId: string, hours = 0, hasKey = false): Ended => ({
  taskId,
  state: "ended",
  status: "completed",
  endedAt: new Date(START + hours * HOUR_MS).toISOString(),
  ...(hasKey ? { hasKey: true } : {}),
});
const idsOnRecord = (tasks: EndedTasks) => tasks.onRecord?.map(({ taskId }) => taskId);

test("the newest 128 Tasks go on record, and beside them those whose key is kept yet", () => {
  const tasks = new EndedTasks([]);
  expect(tasks.onRecord).toBeUndefined();
  for (const [id, hours] of [
    ["expired", 0],
    ["kept", 1],
  ] as const)
    tasks.add(task(id, hours, true));
  for (let n = 0; n < 200; n += 1) tasks.add(task(`${n}`, 25));
  expect(idsOnRecord(tasks)).toEqual(["kept", ...Array.from({ length: 128 }, (_, n) => `${n + 72}`)]);
  const again = new EndedTasks(tasks.onRecord ?? []);
  expect(again.onRecord).toEqual(tasks.onRecord);
  // The key is nothing to a client.
  expect(again.view("kept")).toEqual(task("kept", 1));
});

test("of 1000 Tasks the oldest without a key is forgotten first, and one that has just ended never", () => {
  const tasks = new EndedTasks([]);
  for (let n = 0; n < 900; n += 1) tasks.add(task(`keyed ${n}`, 0, true));
  for (let n = 0; n < 300; n += 1) tasks.add(task(`${n}`));
  expect(tasks.view("keyed 0")).toBeUndefined();
  expect(tasks.view("keyed 28")).toBeDefined();
  expect([tasks.view("171"), tasks.view("172"), tasks.view("299")].map((each) => each !== undefined)).toEqual([
    false,
    true,
    true,
  ]);
  expect(idsOnRecord(tasks)).toHaveLength(1000);
});

test("a stream of a Task that is not known any more says that it is over, not how, and ends", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const session = await made(host.create({}, null));
  let isEnded = false;
  const reader = {
    ...listReader(),
    end: () => {
      isEnded = true;
    },
  };
  session.follow(reader, { untilTask: "task-forgotten" });
  expect(isEnded).toBe(true);
  expect(reader.events.map(({ data }) => data)).toEqual([
    {
      type: "task_state",
      state: "idle",
      queued: 0,
      pendingApprovals: 0,
      records: 1,
      ended: { taskId: "task-forgotten" },
    },
  ]);
});

test("what a key answers for is known after a restart and many Tasks more: started, queued, steered into, taken back", async () => {
  const dataDir = tempDir();
  const rest = gate();
  const say = { steps: [{ say: "well" }] };
  const model = scriptedModel([{ steps: [{ wait: rest.promise }, { say: "well" }] }, ...new Array(140).fill(say)]);
  const host = await hostOn({ model, dataDir });
  const session = await made(host.create({}, null));
  const started = await made(session.submit("started", {}));
  const steered = await made(session.submit("steered", { whenBusy: "steer", hasKey: true }));
  expect(steered.taskId).toBe(started.taskId);
  const queued = await made(session.submit("queued", { whenBusy: "queue", hasKey: true }));
  const recalled = await made(session.submit("recalled", { whenBusy: "queue", hasKey: true }));
  const without = await made(session.submit("without a key", { whenBusy: "queue" }));
  await made(session.recall(recalled.taskId));
  const reader = listReader();
  session.follow(reader, { untilTask: without.taskId });
  rest.open();
  await reader.until(({ data }) => (data.ended as Ended | undefined)?.taskId === without.taskId);
  await session.settled();
  const direct = await made(session.submit("direct", { hasKey: true }));
  await session.settled();
  for (let n = 0; n < 130; n += 1) {
    await made(session.submit(`${n}`, {}));
    await session.settled();
  }
  const keyed = [started, queued, recalled, direct].map(({ taskId }) => session.task(taskId));
  expect(keyed.map((each) => each?.status)).toEqual(["completed", "completed", "aborted", "completed"]);
  await host.drain(0);

  const again = await (await hostOn({ model, dataDir })).find(session.id, null);
  expect([started, queued, recalled, direct].map(({ taskId }) => again?.task(taskId))).toEqual(keyed);
  expect(again?.task(without.taskId)).toBeUndefined();
});
