// A process that ends at any instant, and the Session that the next one finds: from the same folder, without a drain.

import { appendFileSync, cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import { asSteering, userText } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { textsOf } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { manualClock } from "../support/manual-clock.js";
import { ended, hostOn, lawfulRecordsOf, listReader, made, tempDir } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

/** The folder as a kill would leave it now: a copy, so that the old process goes on in its own. */
function killed(dataDir: string): string {
  const copy = join(tempDir(), "data");
  cpSync(dataDir, copy, { recursive: true });
  return copy;
}

async function found(host: SessionManager, id: string): Promise<Session> {
  const session = await host.find(id, null);
  if (session === undefined) throw new Error("the Session is gone");
  return session;
}

const types = (records: readonly OmniMessage[]) =>
  records.map(({ payload }) => ("type" in payload ? payload.type : "session_meta"));
const texts = (request: LLMRequest | undefined) => textsOf(request?.messages ?? []);
const outputs = (request: LLMRequest | undefined) =>
  (request?.messages ?? []).flatMap((m) => (isPayload(m, "tool_call_output") ? [m.payload.output] : []));

const ASKS: Script = {
  steps: [
    { say: "May I?" },
    { call: "exec_command", id: "call-1", args: '{"cmd":"echo one"}' },
    { call: "exec_command", id: "call-2", args: '{"cmd":"echo two"}' },
  ],
};

async function waiting(scripts: Script[] = [ASKS], process: object = {}) {
  const dataDir = tempDir();
  const clock = manualClock();
  const host = await hostOn({ model: scriptedModel(scripts), dataDir, clock, process });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  const { taskId } = await made(session.submit("go", {}));
  await reader.until(({ data }) => data.type === "approval_request");
  await reader.until(({ data }) => (data.payload as { type?: string })?.type === "request_end");
  return { dataDir, clock, host, session, reader, taskId };
}

test("E1 E11 E17: a Task that waits for a person waits on after a kill: same Task, same approval, same time; the answer continues it", async () => {
  const { dataDir, session, taskId } = await waiting();
  const [open] = session.approvals();
  const model = scriptedModel([{ steps: [{ say: "done" }] }]);
  const later = manualClock(Date.parse("2026-01-03T00:00:00.000Z"));
  const host = await hostOn({ model, dataDir: killed(dataDir), clock: later });
  // Eagerly: before anyone asks for the Session.
  expect(host.figures).toMatchObject({ inMemory: 1, running: 1, pendingApprovals: 1 });
  const again = await found(host, session.id);
  expect(again.view()).toMatchObject({ state: "running", pendingApprovals: 1 });
  expect(again.task(taskId)).toMatchObject({ taskId, state: "running" });
  expect(again.approvals()).toEqual([open]);
  const before = await lawfulRecordsOf(again, true);
  expect(types(before).at(-1)).toBe("request_end");

  const reader = listReader();
  again.follow(reader, {});
  expect(reader.events.map(({ data }) => data.type)).toEqual(["task_state", "approval_request"]);
  expect(await again.decide("call-2", { decision: "allow" })).toMatchObject({ code: "approval_not_found" });
  await made(again.decide("call-1", { decision: "allow" }));
  await reader.until(({ data }) => data.type === "approval_request" && JSON.stringify(data).includes("call-2"));
  await made(again.decide("call-2", { decision: "deny", reason: "no" }));
  await reader.until(ended);
  expect(again.task(taskId)).toMatchObject({ state: "ended", status: "completed" });
  expect(outputs(model.requests[0])).toEqual([expect.stringMatching(/one\n$/), "Tool call denied by user.\nno"]);
  await lawfulRecordsOf(again);
});

test("G5 G6 G14: a Task of which one call ran is closed, and the next prompt carries what the batch came to", async () => {
  const { dataDir, session, reader, taskId } = await waiting();
  await made(session.decide("call-1", { decision: "allow" }));
  await reader.until(({ data }) => data.type === "approval_request" && JSON.stringify(data).includes("call-2"));
  await reader.until(({ data }) => (data.payload as { type?: string })?.type === "tool_call_output");
  // Whole: the decided call has its output, so only a person is waited for.
  const whole = await found(await hostOn({ model: scriptedModel([]), dataDir: killed(dataDir) }), session.id);
  expect(whole.view()).toMatchObject({ state: "running", pendingApprovals: 1 });
  expect(whole.task(taskId)?.state).toBe("running");

  // Without that output: the tool may have run, so nothing is guessed.
  const torn = killed(dataDir);
  const path = join(torn, "sessions", session.id, "trace-000001.jsonl");
  const lines = readFileSync(path, "utf8").split("\n");
  writeFileSync(path, lines.filter((line) => !line.includes('"tool_call_output"')).join("\n"));
  const model = scriptedModel([{ steps: [{ say: "ok" }] }]);
  const closed = await found(await hostOn({ model, dataDir: torn }), session.id);
  expect(closed.view()).toMatchObject({ state: "idle", pendingApprovals: 0 });
  expect(closed.task(taskId)).toMatchObject({ state: "ended", status: "aborted" });
  expect(types(await lawfulRecordsOf(closed)).at(-1)).toBe("abort");
  await made(closed.submit("and now", {}));
  await closed.settled();
  expect(outputs(model.requests[0])).toEqual(Array(2).fill("[interrupted: tool aborted by user]"));
  expect(texts(model.requests[0])).toEqual(["go", "May I?", "and now"]);
});

test("an approval's time runs on across restarts, and the record counts all of it", async () => {
  const { dataDir, clock, session } = await waiting([ASKS], { approvalTimeoutMs: 60_000 });
  const expiresAt = session.approvals()[0]?.expiresAt;
  const later = manualClock(clock.now() + 45_000);
  const model = scriptedModel([{ steps: [{ say: "done" }] }]);
  const host = await hostOn({
    model,
    dataDir: killed(dataDir),
    clock: later,
    process: { approvalTimeoutMs: 60_000 },
  });
  const again = await found(host, session.id);
  expect(again.approvals()[0]?.expiresAt).toBe(expiresAt);
  const reader = listReader();
  again.follow(reader, {});
  later.advance(14_000);
  expect(again.approvals().length).toBe(1);
  later.advance(1_000);
  await reader.until(({ data }) => data.type === "approval_request" && JSON.stringify(data).includes("call-2"));
  const denied = (await lawfulRecordsOf(again, true)).find((record) => isPayload(record, "tool_call_output"));
  expect(denied?.payload).toMatchObject({ output: "Tool call denied: nobody answered within 60 s." });
  await made(again.decide("call-2", { decision: "deny" }));
  await reader.until(ended);
});

test("max_turns counts the Requests from before the restart", async () => {
  const { dataDir, session } = await waiting();
  const model = scriptedModel([]);
  const host = await hostOn({ model, dataDir: killed(dataDir), process: { maxTurns: 1 } });
  const again = await found(host, session.id);
  const reader = listReader();
  again.follow(reader, {});
  await made(again.decide("call-1", { decision: "deny" }));
  await reader.until(({ data }) => data.type === "approval_request" && JSON.stringify(data).includes("call-2"));
  await made(again.decide("call-2", { decision: "deny" }));
  await reader.until(ended);
  expect(model.requests).toEqual([]);
  expect((await lawfulRecordsOf(again)).at(-1)?.payload).toMatchObject({ text: "[reached max turns (1); stopping]" });
});

test("a restarted Task that waits can be interrupted, and can be restarted again", async () => {
  const { dataDir, session, taskId } = await waiting();
  const first = await hostOn({ model: scriptedModel([]), dataDir: killed(dataDir) });
  expect((await found(first, session.id)).view().state).toBe("running");
  const copy = killed(dataDir);
  await hostOn({ model: scriptedModel([]), dataDir: copy });
  const model = scriptedModel([{ steps: [{ say: "ok" }] }]);
  const again = await found(await hostOn({ model, dataDir: killed(copy) }), session.id);
  expect(again.approvals()).toEqual(session.approvals());
  const reader = listReader();
  again.follow(reader, {});
  expect(await made(again.abort({}))).toBe(true);
  await reader.until(ended);
  expect(again.task(taskId)?.status).toBe("aborted");
  expect(types(await lawfulRecordsOf(again)).slice(-5)).toEqual([
    "approval_decision",
    "tool_call_output",
    "approval_decision",
    "tool_call_output",
    "abort",
  ]);
});

test("a drain leaves what waits for a person as it is, and writes nothing for it", async () => {
  const { dataDir, host, session, taskId } = await waiting();
  const path = join(dataDir, "sessions", session.id, "trace-000001.jsonl");
  const before = readFileSync(path);
  await host.drain(1_000);
  expect(readFileSync(path).equals(before)).toBe(true);
  const again = await found(await hostOn({ model: scriptedModel([]), dataDir }), session.id);
  expect(again.task(taskId)?.state).toBe("running");
});

test("what waits survives: queued Tasks start after the restart in their order, undelivered steering stays listed", async () => {
  const never = gate();
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([{ steps: [{ say: "half" }, { wait: never.opened }] }]), dataDir });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const first = await made(session.submit("a", {}));
  const second = await made(session.submit("b", { whenBusy: "queue", thinkingLevel: "high" }));
  const third = await made(session.submit("c", { whenBusy: "queue" }));
  const { steerId } = await made(session.steer("aside"));

  const rest = gate();
  const model = scriptedModel([{ steps: [{ wait: rest.opened }, { say: "2" }] }, { steps: [{ say: "3" }] }]);
  const again = await found(await hostOn({ model, dataDir: killed(dataDir) }), session.id);
  expect(again.task(first.taskId)).toMatchObject({ state: "ended", status: "aborted" });
  const reader = listReader();
  again.follow(reader, {});
  rest.open();
  await reader.until((e) => ended(e) && (e.data.ended as { taskId: string }).taskId === third.taskId);
  expect(again.task(second.taskId)).toMatchObject({ state: "ended", status: "completed" });
  expect(model.requests.map((request) => texts(request).at(-1))).toEqual(["b", "c"]);
  expect(model.requests.map(({ thinkingLevel }) => thinkingLevel)).toEqual(["high", "default"]);
  expect(again.queue()).toMatchObject([{ itemId: steerId, kind: "steer", input: "aside" }]);
  expect(again.holds(steerId)).toBe(true);
  await lawfulRecordsOf(again);
  await again.settled();
});

test("steering into a Task that waits for a person is delivered after the restart, once", async () => {
  const { dataDir, session } = await waiting();
  const { steerId } = await made(session.steer("mind the gap"));
  const model = scriptedModel([{ steps: [{ say: "done" }] }]);
  const copy = killed(dataDir);
  const again = await found(await hostOn({ model, dataDir: copy }), session.id);
  expect(again.queue()).toMatchObject([{ itemId: steerId }]);
  const reader = listReader();
  again.follow(reader, {});
  for (const call of ["call-1", "call-2"]) {
    await reader.until(({ data }) => data.type === "approval_request" && JSON.stringify(data).includes(call));
    await made(again.decide(call, { decision: "deny" }));
  }
  await reader.until(ended);
  expect(texts(model.requests[0]).at(-1)).toBe("mind the gap");
  await again.settled();

  // Delivered and on record; the Session record, had it not been written since, would still list it.
  const file = join(copy, "sessions", session.id, "session.json");
  const record = JSON.parse(readFileSync(file, "utf8"));
  const stale = { itemId: steerId, kind: "steer", input: "mind the gap", createdAt: record.createdAt, taskId: "t" };
  writeFileSync(file, JSON.stringify({ ...record, queue: [stale] }));
  const third = await found(await hostOn({ model: scriptedModel([]), dataDir: killed(copy) }), session.id);
  expect(third.queue()).toEqual([]);
  expect(third.holds(steerId)).toBe(true);
});

test("a Task that was about to start when the process ended waits again, or is forgotten if nobody was promised it", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([{ steps: [{ say: "1" }] }, { steps: [{ say: "2" }] }]);
  const host = await hostOn({ model, dataDir });
  const session = await made(host.create({}, null));
  await made(session.submit("a", {}));
  await session.settled();
  const ordinal = (await lawfulRecordsOf(session)).length;
  const file = join("sessions", session.id, "session.json");
  const record = JSON.parse(readFileSync(join(dataDir, file), "utf8"));
  const begun = { taskId: "task-x", startedAt: record.createdAt, ordinal };
  const item = { itemId: "task-x", kind: "task", input: "from the queue", createdAt: record.createdAt };

  const forgotten = killed(dataDir);
  writeFileSync(join(forgotten, file), JSON.stringify({ ...record, running: begun }));
  const idle = await found(await hostOn({ model, dataDir: forgotten }), session.id);
  expect(idle.view()).toMatchObject({ state: "idle", queued: 0 });
  expect(idle.task("task-x")).toBeUndefined();
  expect((await lawfulRecordsOf(idle)).length).toBe(ordinal);

  const promised = killed(dataDir);
  writeFileSync(join(promised, file), JSON.stringify({ ...record, running: { ...begun, item } }));
  const resumed = await found(await hostOn({ model, dataDir: promised }), session.id);
  const reader = listReader();
  resumed.follow(reader, {});
  if (resumed.task("task-x")?.state !== "ended") await reader.until(ended);
  expect(resumed.task("task-x")).toMatchObject({ state: "ended", status: "completed" });
  expect(texts(model.requests[1])).toEqual(["a", "1", "from the queue"]);
  await resumed.settled();
});

test("a Task whose last record was written when the process ended has ended as it did", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([{ steps: [{ say: "1" }] }]), dataDir });
  const session = await made(host.create({}, null));
  const { taskId } = await made(session.submit("a", {}));
  await session.settled();
  const before = await lawfulRecordsOf(session);
  const file = join(dataDir, "sessions", session.id, "session.json");
  const { ended: _, ...record } = JSON.parse(readFileSync(file, "utf8"));
  writeFileSync(file, JSON.stringify({ ...record, running: { taskId, startedAt: record.createdAt, ordinal: 1 } }));
  const again = await found(await hostOn({ model: scriptedModel([]), dataDir: killed(dataDir) }), session.id);
  expect(again.task(taskId)).toMatchObject({ state: "ended", status: "completed" });
  expect(await lawfulRecordsOf(again)).toEqual(before);
});

test("how Tasks ended is known after a restart", async () => {
  const dataDir = tempDir();
  const scripts: Script[] = [
    { steps: [{ say: "1" }] },
    { steps: [], outcome: { status: "failed", error: { kind: "auth", message: "no key" } } },
  ];
  const host = await hostOn({ model: scriptedModel(scripts), dataDir });
  const session = await made(host.create({}, null));
  const views = [];
  for (const input of ["a", "b"]) {
    const { taskId } = await made(session.submit(input, {}));
    await session.settled();
    views.push(session.task(taskId));
  }
  expect(views).toMatchObject([{ status: "completed" }, { status: "failed", error: { kind: "auth" } }]);
  const again = await found(await hostOn({ model: scriptedModel([]), dataDir }), session.id);
  expect(views.map((view) => again.task(view?.taskId ?? ""))).toEqual(views);
});

test.each([
  ["is not configured any more", undefined, "invalid_request"],
  ["has lost its key", { spec: {} as never, available: false, reason: "LOCAL_KEY is not set" }, "auth"],
])("a Task that waited and whose model %s ends with that reason on record", async (_, model, kind) => {
  const never = gate();
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([{ steps: [{ say: "half" }, { wait: never.opened }] }]), dataDir });
  const session = await made(host.create({}, null));
  await made(session.submit("a", {}));
  const queued = await made(session.submit("b", { whenBusy: "queue" }));
  const models = {
    defaultModel: { provider: "test", modelId: "scripted" },
    views: () => [],
    find: () => model,
    client: () => scriptedModel([]),
  };
  const again = await found(
    await hostOn({ model: scriptedModel([]), dataDir: killed(dataDir), process: { models } }),
    session.id,
  );
  await again.settled();
  expect(again.task(queued.taskId)).toMatchObject({ state: "ended", status: "failed", error: { kind } });
  expect(texts({ messages: await lawfulRecordsOf(again) } as unknown as LLMRequest)).toContain("b");
});

test("G3: a Prompt that had waited, and steering, of which a kill left only the first records, are recorded whole", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([{ steps: [{ say: "1" }] }]), dataDir });
  const session = await made(host.create({}, null));
  await made(session.submit("a", {}));
  await session.settled();
  const before = await lawfulRecordsOf(session);
  const folder = join("sessions", session.id);
  const record = JSON.parse(readFileSync(join(dataDir, folder, "session.json"), "utf8"));
  const at = record.createdAt;
  const parts = ["one", "two", "three"].map((text) => ({ type: "text", text }));
  const item = { itemId: "task-x", kind: "task", input: parts, createdAt: at };
  const steer = { itemId: "steer-x", kind: "steer", input: parts, createdAt: at, taskId: "task-y" };
  const one = userText(at, "one");
  const first = (steerId?: string) => `${JSON.stringify(steerId === undefined ? one : asSteering(one, steerId))}\n`;
  for (const [name, left, steerId] of [
    ["a Prompt", { running: { taskId: "task-x", startedAt: at, ordinal: before.length, item } }, undefined],
    ["steering", { running: { taskId: "task-y", startedAt: at, ordinal: 1 }, queue: [steer] }, "steer-x"],
  ] as const) {
    const torn = killed(dataDir);
    appendFileSync(join(torn, folder, "trace-000001.jsonl"), first(steerId));
    writeFileSync(join(torn, folder, "session.json"), JSON.stringify({ ...record, ...left }));
    const model = scriptedModel([{ steps: [{ say: "2" }] }]);
    const again = await found(await hostOn({ model, dataDir: torn }), session.id);
    const records = await lawfulRecordsOf(again);
    expect(types(records.slice(before.length)), name).toEqual(["text", "text", "text", "abort"]);
    expect(again.queue(), name).toEqual([]);
    await made(again.submit("next", {}));
    await again.settled();
    expect(texts(model.requests[0]), name).toEqual(["a", "1", "one", "two", "three", "next"]);
  }
});
