// What waits in a Session: Tasks and steering, each with exactly one outcome, whoever is faster.

import { mkdirSync, rmSync } from "node:fs";
import { expect, test } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import { diskFs } from "../../src/trace/trace-fs.js";
import { textsOf } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { manualClock } from "../support/manual-clock.js";
import { ended, type HostOptions, hostOn, lawfulRecordsOf, listReader, made, tempDir } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

const codeOf = async (result: Promise<{ ok: boolean; code?: string }>) => (await result).code;

async function staged(scripts: Script[], options: Partial<HostOptions> = {}) {
  const model = scriptedModel(scripts);
  const dataDir = tempDir();
  const host = await hostOn({ model, dataDir, ...options });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const reader = listReader();
  session.follow(reader, {});
  const endOf = (taskId: string) =>
    reader.until((event) => ended(event) && (event.data.ended as { taskId: string }).taskId === taskId);
  return { model, host, session, reader, endOf, dataDir };
}

const texts = (request: LLMRequest | undefined) => textsOf(request?.messages ?? []);

test("Tasks that wait run one after the other in their order, and each says how it stands", async () => {
  const rest = gate();
  const { session, endOf, model, reader } = await staged([
    { steps: [{ wait: rest.opened }, { say: "1" }] },
    { steps: [{ say: "2" }] },
    { steps: [{ say: "3" }] },
  ]);
  const first = await made(session.submit("a", {}));
  const second = await made(session.submit("b", { whenBusy: "queue" }));
  const third = await made(session.submit("c", { whenBusy: "queue" }));
  expect([first.queued, second.queued, third.queued]).toEqual([0, 1, 2]);
  expect(session.view().queued).toBe(2);
  expect(session.queue().map(({ itemId, kind, input }) => [itemId, kind, input])).toEqual([
    [second.taskId, "task", "b"],
    [third.taskId, "task", "c"],
  ]);
  expect(session.task(second.taskId)).toEqual({ taskId: second.taskId, state: "queued" });
  expect(await codeOf(session.submit("d", {}))).toBe("task_in_progress");
  rest.open();
  await endOf(third.taskId);
  expect(model.requests.map((request) => texts(request).at(-1))).toEqual(["a", "b", "c"]);
  expect(session.task(second.taskId)).toMatchObject({ state: "ended", status: "completed" });
  const states = reader.events.filter(({ data }) => data.type === "task_state").map(({ data }) => data.queued);
  expect(states.slice(-1)).toEqual([0]);
  await lawfulRecordsOf(session);
});

test("Tasks that waited and whose Workspace is gone fail for that, and none of what they say is lost", async () => {
  const rest = gate();
  const { host, model } = await staged([{ steps: [{ wait: rest.opened }, { say: "1" }] }, { steps: [{ say: "2" }] }]);
  const workspace = tempDir();
  const session = await made(host.create({ workspace }, null));
  const reader = listReader();
  session.follow(reader, {});
  const endOfTask = (id: string) =>
    reader.until((event) => ended(event) && (event.data.ended as { taskId: string }).taskId === id);
  await made(session.submit("a", {}));
  const waited: { taskId: string }[] = [];
  for (const input of ["b", "c", "d"]) waited.push(await made(session.submit(input, { whenBusy: "queue" })));
  rmSync(workspace, { recursive: true });
  rest.open();
  await endOfTask(waited[2]?.taskId ?? "");
  for (const { taskId } of waited) {
    expect(session.task(taskId)).toMatchObject({ status: "failed", error: { kind: "invalid_request" } });
  }
  mkdirSync(workspace);
  const last = await made(session.submit("e", {}));
  await endOfTask(last.taskId);
  expect(texts(model.requests.at(-1))).toEqual(["a", "1", "b", "c", "d", "e"]);
  await lawfulRecordsOf(session);
});

test("from the end of one Task to the start of the next nobody finds the Session idle with nothing waiting", async () => {
  const rest = gate();
  const slow = gate();
  let isSlow = false;
  const { session, endOf, reader } = await staged(
    [{ steps: [{ wait: rest.opened }, { say: "1" }] }, { steps: [{ say: "2" }] }],
    {
      fs: {
        ...diskFs,
        rename: async (from, to) => {
          if (isSlow) await slow.opened;
          return diskFs.rename(from, to);
        },
      },
    },
  );
  const first = await made(session.submit("a", {}));
  const second = await made(session.submit("b", { whenBusy: "queue" }));
  isSlow = true;
  rest.open();
  await endOf(first.taskId);
  for (let turn = 0; turn < 20; turn++) {
    await new Promise(setImmediate);
    const late = listReader();
    session.follow(late, {});
    expect(late.events[0]?.data).toMatchObject({ type: "task_state", state: "idle", queued: 1 });
    expect(session.view()).toMatchObject({ state: "idle", queued: 1 });
    expect(session.queue()).toMatchObject([{ itemId: second.taskId }]);
    expect(session.task(second.taskId)).toMatchObject({ state: "queued" });
  }
  slow.open();
  await endOf(second.taskId);
  const states = reader.events.flatMap(({ data }) =>
    data.type === "task_state" ? [`${data.state} ${data.queued}`] : [],
  );
  expect(states.filter((state, at) => state === "idle 0" && at < states.length - 1 && at > 0)).toEqual([]);
});

test("D8: steering is delivered with the next Request of the same Task, under its id, and Trace-only", async () => {
  const rest = gate();
  const { session, endOf, model, reader } = await staged([
    { steps: [{ wait: rest.opened }, { say: "one" }] },
    { steps: [{ say: "two" }] },
  ]);
  const { taskId } = await made(session.submit("a", {}));
  const { steerId } = await made(session.steer("look left"));
  expect(session.queue()).toMatchObject([{ itemId: steerId, kind: "steer", input: "look left" }]);
  expect(session.view().queued).toBe(0);
  rest.open();
  await endOf(taskId);
  expect(texts(model.requests[1])).toEqual(["a", "one", "look left"]);
  expect(session.queue()).toEqual([]);
  const delivered = (await lawfulRecordsOf(session)).filter((record) => "steer_id" in record.payload);
  expect(delivered.map(({ payload }) => payload)).toMatchObject([{ text: "look left", steer_id: steerId }]);
  expect(reader.messages.some((message) => "steer_id" in message.payload)).toBe(false);
  expect(await codeOf(session.steer("late"))).toBe("not_running");
  expect(await codeOf(session.recall(steerId))).toBe("not_pending");
});

test.each([
  ["that has no turns left", { maxTurns: 1 }, [{ steps: [{ call: "nope", id: "a" }] }]],
  ["that fails", {}, [{ steps: [], outcome: { status: "failed", error: { kind: "auth", message: "no" } } }]],
] as [string, object, Script[]][])(
  "steering into a Task %s goes before the next Prompt",
  async (_, settings, scripts) => {
    const rest = gate();
    const [first] = scripts as [Script];
    const steps = [...first.steps, { wait: rest.opened }];
    const { host, model, dataDir } = await staged([{ ...first, steps }, { steps: [{ say: "so" }] }]);
    const session = await made(host.create({ approvalMode: "allow-all", ...settings }, null));
    const reader = listReader();
    session.follow(reader, {});
    const { taskId } = await made(session.submit("a", {}));
    const { steerId } = await made(session.steer("aside"));
    rest.open();
    await reader.until(ended);
    expect(session.task(taskId)?.status).not.toBe("aborted");
    expect(session.queue().map(({ itemId }) => itemId)).toEqual([steerId]);
    // Also behind a restart.
    const again = await (await hostOn({ model, dataDir })).find(session.id, null);
    const late = listReader();
    again?.follow(late, {});
    await again?.submit("b", {});
    await late.until(ended);
    expect(texts(model.requests[1]).slice(-2)).toEqual(["aside", "b"]);
    expect(again?.queue()).toEqual([]);
    if (again !== undefined) await lawfulRecordsOf(again);
  },
);

test("steering of parts reaches the model as parts, each under the id", async () => {
  const rest = gate();
  const { session, endOf, model } = await staged([
    { steps: [{ wait: rest.opened }, { say: "done" }] },
    { steps: [{ say: "x" }] },
  ]);
  const { taskId } = await made(session.submit("a", {}));
  const { steerId } = await made(
    session.steer([
      { type: "text", text: "see" },
      { type: "file", fileName: "a.txt", dataUrl: "data:text/plain;base64,aGk=" },
    ]),
  );
  rest.open();
  await endOf(taskId);
  expect(
    model.requests
      .at(-1)
      ?.messages.slice(-2)
      .map(({ payload }) => payload),
  ).toMatchObject([
    { type: "text", text: "see", steer_id: steerId },
    { type: "inline_data", file_name: "a.txt", steer_id: steerId },
  ]);
});

test("D6: after an abort steering stays in the list, is never fired by a later Task, and can be taken back", async () => {
  const never = gate();
  const { session, endOf, model } = await staged([
    { steps: [{ say: "half" }, { wait: never.opened }] },
    { steps: [{ say: "whole" }] },
  ]);
  const first = await made(session.submit("a", {}));
  const { steerId } = await made(session.steer("left over"));
  expect(await made(session.abort({}))).toBe(true);
  await endOf(first.taskId);
  expect(session.queue()).toMatchObject([{ itemId: steerId }]);
  const second = await made(session.submit("b", {}));
  await endOf(second.taskId);
  expect(texts(model.requests[1]).join()).not.toContain("left over");
  expect(await made(session.recall(steerId))).toMatchObject({ itemId: steerId, kind: "steer", input: "left over" });
  expect(session.queue()).toEqual([]);
});

test("an abort ends the running Task only; with clearQueue what waits is over too, each Task told as aborted", async () => {
  const never = gate();
  const { session, endOf, reader } = await staged([
    { steps: [{ wait: never.opened }] },
    { steps: [{ wait: never.opened }] },
    { steps: [{ say: "never asked" }] },
  ]);
  const first = await made(session.submit("a", {}));
  const second = await made(session.submit("b", { whenBusy: "queue" }));
  const third = await made(session.submit("c", { whenBusy: "queue" }));
  await made(session.abort({}));
  await endOf(first.taskId);
  expect(session.task(third.taskId)?.state).toBe("queued");
  await reader.until(({ data }) => data.type === "task_state" && data.taskId === second.taskId);
  await made(session.steer("into the second"));
  await made(session.abort({ clearQueue: true }));
  await Promise.all([endOf(second.taskId), endOf(third.taskId)]);
  expect(session.queue()).toEqual([]);
  expect(session.task(third.taskId)).toMatchObject({ state: "ended", status: "aborted" });
  expect(session.task(third.taskId)?.startedAt).toBeUndefined();
  expect(await made(session.abort({ clearQueue: true }))).toBe(false);
});

test("interrupt aborts what runs and goes ahead of what waits", async () => {
  const never = gate();
  const { session, endOf, model } = await staged([
    { steps: [{ say: "half" }, { wait: never.opened }] },
    { steps: [{ say: "urgent" }] },
    { steps: [{ say: "later" }] },
  ]);
  const first = await made(session.submit("a", {}));
  const later = await made(session.submit("later", { whenBusy: "queue" }));
  const urgent = await made(session.submit("urgent", { whenBusy: "interrupt" }));
  expect(urgent.queued).toBe(2);
  await endOf(later.taskId);
  expect(session.task(first.taskId)?.status).toBe("aborted");
  expect(model.requests.map((request) => texts(request).at(-1))).toEqual(["a", "urgent", "later"]);
  expect(session.task(urgent.taskId)?.status).toBe("completed");
});

test("whenBusy of an idle Session starts a Task, whatever it says", async () => {
  const { session, endOf } = await staged([1, 2, 3].map(() => ({ steps: [{ say: "x" }] })));
  for (const whenBusy of ["queue", "steer", "interrupt"] as const) {
    const assigned = await made(session.submit("a", { whenBusy }));
    expect(assigned).toEqual({ taskId: assigned.taskId, queued: 0 });
    await endOf(assigned.taskId);
  }
});

test("D4 D9: whenBusy steer at any step of a Task's end becomes steering of it or a Task of its own, and is always answered to", async () => {
  for (let ticks = 0; ticks < 60; ticks++) {
    const { session, model } = await staged([{ steps: [{ say: "1" }] }, { steps: [{ say: "2" }] }]);
    await made(session.submit("a", {}));
    for (let tick = 0; tick < ticks; tick++) await (tick % 7 === 0 ? new Promise(setImmediate) : Promise.resolve());
    const said = await made(session.submit("b", { whenBusy: "steer" }));
    const reader = listReader();
    session.follow(reader, {});
    while (session.view().state !== "idle" || session.view().queued > 0) await new Promise(setImmediate);
    expect(model.requests.length, `after ${ticks} ticks`).toBe(2);
    expect(texts(model.requests[1])).toEqual(["a", "1", "b"]);
    expect(session.task(said.taskId)).toMatchObject({ state: "ended", status: "completed" });
    await session.settled();
  }
});

test("a Task that is taken back while it is about to start either runs or was taken back, never both", async () => {
  const outcomes = new Set<string>();
  for (let ticks = 0; ticks < 40; ticks++) {
    const rest = gate();
    const { session, model, endOf } = await staged([
      { steps: [{ wait: rest.opened }] },
      { steps: [{ say: "2" }] },
      { steps: [{ say: "3" }] },
    ]);
    const first = await made(session.submit("a", {}));
    const second = await made(session.submit("b", { whenBusy: "queue" }));
    await made(session.abort({}));
    await endOf(first.taskId);
    for (let tick = 0; tick < ticks; tick++) await (tick % 5 === 0 ? new Promise(setImmediate) : Promise.resolve());
    const recalled = await session.recall(second.taskId);
    await endOf(second.taskId);
    const ran = model.requests.length === 2;
    expect(recalled.ok, `after ${ticks} ticks`).toBe(!ran);
    expect(session.task(second.taskId)?.status).toBe(ran ? "completed" : "aborted");
    outcomes.add(ran ? "ran" : "recalled");
    await session.settled();
  }
  expect([...outcomes].sort()).toEqual(["ran", "recalled"]);
});

test("the process's cap on Tasks holds up what waits, and lets it go on when a place is free", async () => {
  const rest = gate();
  const { host, session, endOf } = await staged(
    [{ steps: [{ wait: rest.opened }, { say: "done" }] }, { steps: [{ say: "x" }] }, { steps: [{ say: "x" }] }],
    { process: { maxTasks: 1 } },
  );
  const other = await made(host.create({ approvalMode: "allow-all" }, null));
  const first = await made(session.submit("a", {}));
  const waiting = await made(session.submit("b", { whenBusy: "queue" }));
  expect(await codeOf(other.submit("c", {}))).toBe("too_many_tasks");
  rest.open();
  await endOf(first.taskId);
  await endOf(waiting.taskId);
  await made(other.submit("c", {}));
  await other.settled();
});

test("what waits has a bound, by number and by size", async () => {
  const never = gate();
  const { session } = await staged([{ steps: [{ wait: never.opened }] }]);
  await made(session.submit("a", {}));
  const file = (size: number) => [
    { type: "file" as const, fileName: "a", dataUrl: `data:text/plain;base64,${"QUJD".repeat(size / 4)}` },
  ];
  await made(session.submit(file(20_000_000), { whenBusy: "queue" }));
  expect(await codeOf(session.submit(file(20_000_000), { whenBusy: "queue" }))).toBe("too_many_queued");
  expect(await codeOf(session.steer(file(20_000_000)))).toBe("too_many_queued");
  for (const item of session.queue()) await made(session.recall(item.itemId));
  // Also where each waits for a disk before it is listed.
  const beforeRecorded = () => new Promise<void>(setImmediate);
  const many = await Promise.all(
    Array.from({ length: 300 }, (_, n) => session.submit(`${n}`, { whenBusy: "queue", beforeRecorded })),
  );
  expect(many.filter(({ ok }) => ok).length).toBe(256);
  await made(session.abort({ clearQueue: true }));
  await session.settled();
});

test("a full disk: what cannot be recorded is refused and not done, and what waited starts when it works again", async () => {
  let full = false;
  let rested = false;
  let attempts = 0;
  const fs = {
    ...diskFs,
    create: async (...args: Parameters<typeof diskFs.create>) => {
      if (full && rested) attempts += 1;
      if (full) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
      return diskFs.create(...args);
    },
  };
  const clock = manualClock();
  const rest = gate();
  const { session, endOf } = await staged(
    [{ steps: [{ wait: rest.opened }, { say: "done" }] }, { steps: [{ say: "x" }] }],
    {
      fs,
      clock,
    },
  );
  const first = await made(session.submit("a", {}));
  const waiting = await made(session.submit("b", { whenBusy: "queue" }));
  full = true;
  expect(await codeOf(session.submit("c", { whenBusy: "queue" }))).toBe("storage_failed");
  expect(await codeOf(session.steer("c"))).toBe("storage_failed");
  expect(await codeOf(session.recall(waiting.taskId))).toBe("storage_failed");
  expect(session.queue().map(({ itemId }) => itemId)).toEqual([waiting.taskId]);
  rested = true;
  rest.open();
  await endOf(first.taskId);
  while (session.task(waiting.taskId)?.state !== "queued") await new Promise(setImmediate);
  // Its start is refused meanwhile: it waits again, and the Session is free.
  while (attempts === 0) await new Promise(setImmediate);
  full = false;
  clock.advance(6_000);
  await endOf(waiting.taskId);
  expect(session.task(waiting.taskId)?.status).toBe("completed");
});

test("an abort that cannot record the cleared queue clears nothing: what waited runs, once", async () => {
  let full = false;
  const fs = {
    ...diskFs,
    create: async (...args: Parameters<typeof diskFs.create>) => {
      if (full) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
      return diskFs.create(...args);
    },
  };
  const clock = manualClock();
  const rest = gate();
  const { session, endOf, model } = await staged(
    [{ steps: [{ wait: rest.opened }] }, { steps: [{ say: "b" }] }, { steps: [{ say: "c" }] }],
    { fs, clock },
  );
  const first = await made(session.submit("a", {}));
  const waiting = [];
  for (const text of ["b", "c"]) waiting.push((await made(session.submit(text, { whenBusy: "queue" }))).taskId);
  full = true;
  expect(await codeOf(session.abort({ clearQueue: true }))).toBe("storage_failed");
  expect(session.queue().map(({ itemId }) => itemId)).toEqual(waiting);
  await endOf(first.taskId);
  full = false;
  clock.advance(6_000);
  for (const taskId of waiting) await endOf(taskId);
  expect(waiting.map((taskId) => session.task(taskId)?.status)).toEqual(["completed", "completed"]);
  expect(model.requests.length).toBe(3);
});

test("D12: what a Session is given while it is being deleted is refused as not found, and nothing of it starts", async () => {
  const never = gate();
  const { host, session, model } = await staged([{ steps: [{ say: "half" }, { wait: never.opened }] }]);
  await made(session.submit("a", {}));
  const queued = session.submit("b", { whenBusy: "queue" });
  const interrupting = session.submit("c", { whenBusy: "interrupt" });
  const steered = session.steer("d");
  await host.remove(session.id, null);
  expect(await Promise.all([queued, interrupting, steered].map(codeOf))).toEqual(Array(3).fill("session_not_found"));
  expect(await codeOf(session.submit("e", {}))).toBe("session_not_found");
  expect(model.requests.length).toBe(1);
});
