import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ReplayBudget } from "../../src/channel/replay-budget.js";
import type { LLMRequest } from "../../src/engine/ports.js";
import { isPayload } from "../../src/protocol/guards.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { StorageError } from "../../src/trace/storage-error.js";
import { diskFs } from "../../src/trace/trace-fs.js";
import { gate, scriptedModel } from "../support/engine.js";
import { manualClock } from "../support/manual-clock.js";
import { ended, hostOn, listReader, made, recordsOf, tempDir } from "../support/sessions.js";

const never = new Promise<never>(() => {});

const sentTexts = (request: LLMRequest | undefined) =>
  (request?.messages ?? []).flatMap((message) => (isPayload(message, "text") ? [message.payload.text] : []));

test("a Session that was unloaded comes back with its epoch, its numbers and its context", async () => {
  const clock = manualClock();
  const model = scriptedModel([{ steps: [{ say: "one" }] }, { steps: [{ say: "two" }] }]);
  const budget = new ReplayBudget(1_000_000);
  const replay = { maxEvents: 1_000, maxBytes: 1_000_000, budget };
  const host = await hostOn({ model, clock, process: { maxSessions: 1, replay } });
  const first = await made(host.create({}, null));
  const reader = listReader();
  first.follow(reader, {});
  await made(first.submit("hello", {}));
  await reader.until(ended);
  await first.settled();
  reader.leave();
  const before = reader.events.flatMap(({ id }) => id ?? []);

  expect(budget.bytes).toBeGreaterThan(500);
  await made(host.create({}, null));
  // Its ring has gone with it.
  expect(budget.bytes).toBe(0);
  expect(host.figures).toMatchObject({ sessions: 2, inMemory: 1 });

  clock.advance(61_000);
  const again = await host.find(first.id, null);
  expect(again).not.toBe(first);
  const late = listReader();
  again?.follow(late, { lastEventId: before[before.length - 1] as string });
  await made(again?.submit("and", {}) ?? Promise.resolve({ ok: false as const, message: "gone" }));
  await late.until(ended);
  expect(late.events.some(({ data }) => data.type === "resync_required")).toBe(false);
  const numbers = [...before, ...late.events.flatMap(({ name, id }) => (name === undefined ? [id ?? ""] : []))];
  expect(new Set(numbers.map((id) => id.split("-")[0])).size).toBe(1);
  expect(late.messages[0]?.payload).toEqual({ type: "request_begin" });
  expect(sentTexts(model.requests[1])).toEqual(["hello", "one", "and"]);
});

test("G3, A4: a Trace cut off in mid-Request is closed on record, and the next prompt carries what was asked", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([{ steps: [{ say: "half" }, { wait: never }] }, { steps: [{ say: "whole" }] }]);
  const dead = await hostOn({ model, dataDir });
  const session = await made(dead.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("first", {}));
  await reader.until(({ data }) => (data.payload as { type?: string })?.type === "text");
  // As a crash leaves it: no closing record, and the last record torn.
  const path = join(dataDir, "sessions", session.id, "trace-000001.jsonl");
  const left = readFileSync(path);
  truncateSync(path, left.length - 7);

  const alive = await hostOn({ model, dataDir });
  const again = await alive.find(session.id, null);
  if (again === undefined) throw new Error("the Session is gone");
  const late = listReader();
  again.follow(late, { lastEventId: reader.events[reader.events.length - 1]?.id ?? "" });
  expect(late.events[0]?.data).toMatchObject({ type: "resync_required", reason: "other_epoch" });
  expect(again.view().state).toBe("idle");
  const closed = (await recordsOf(again)).map(({ payload }) => (payload as { type?: string }).type);
  expect(closed).toEqual([undefined, "text", "request_begin", "token_usage", "request_end", "abort"]);

  await made(again.submit("second", {}));
  await late.until(ended);
  const records = await recordsOf(again);
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(sentTexts(model.requests[1])).toEqual(["first", expect.stringMatching(/^\[turn_aborted\]/), "second"]);
});

test("a disk that refuses ends the Task with storage, refuses prompts, and is made good before the next one", async () => {
  let full = false;
  const fs = {
    ...diskFs,
    openToAppend: async (path: string) => {
      const file = await diskFs.openToAppend(path);
      return {
        read: file.read.bind(file),
        truncate: file.truncate.bind(file),
        sync: file.sync.bind(file),
        stat: file.stat.bind(file),
        close: file.close.bind(file),
        write: async (bytes: Uint8Array) => {
          if (full) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
          return file.write(bytes);
        },
      };
    },
  };
  let go: () => void = () => {};
  const gate = new Promise<void>((resolve) => {
    go = resolve;
  });
  const model = scriptedModel([
    { steps: [{ begin: "so far" }, { wait: gate }, { say: "lost" }] },
    { steps: [{ say: "back" }] },
  ]);
  const host = await hostOn({ model, fs });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("first", {}));
  await reader.until(({ data }) => (data.payload as { type?: string })?.type === "partial_text");
  full = true;
  go();
  await reader.until(ended);
  expect(reader.events[reader.events.length - 1]?.data).toMatchObject({
    state: "idle",
    ended: { status: "failed", error: { kind: "storage" } },
  });
  expect(reader.messages.some((message) => isPayload(message, "text"))).toBe(false);
  expect(await session.submit("no", {})).toMatchObject({ ok: false, code: "storage_failed" });

  full = false;
  const second = await made(session.submit("second", {}));
  await reader.until(({ data }) => (data.ended as { taskId?: string })?.taskId === second.taskId);
  const records = await recordsOf(session);
  expect(validateStream(reader.messages, { mode: "stream" })).toEqual([]);
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(compareStreamWithTrace(reader.messages, records)).toEqual([]);
  expect(sentTexts(model.requests[1]).filter((text) => !text.startsWith("["))).toEqual(["first", "second"]);
});

test("a StorageError is told from a bug of ours, and neither says where a file is", async () => {
  const broken = {
    // biome-ignore lint/correctness/useYield: a client that breaks its contract
    async *stream(): AsyncGenerator<never, never, void> {
      throw new Error("at /secret/path");
    },
  };
  const host = await hostOn({ model: broken });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  const { taskId } = await made(session.submit("go", {}));
  await reader.until(ended);
  expect(session.task(taskId)).toMatchObject({
    state: "ended",
    status: "failed",
    error: { kind: "unknown", message: "internal error" },
  });
  expect(new StorageError("write_failed", "a record could not be written").message).not.toContain("/");
});

test("G14: a record that is missing or broken comes back from the Trace, asking for everything and owned by nobody", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([{ steps: [{ say: "one" }] }]);
  const dead = await hostOn({ model, dataDir });
  const session = await made(dead.create({ approvalMode: "allow-all", title: "mine" }, "alice"));
  writeFileSync(join(dataDir, "sessions", session.id, "session.json"), "{ torn");
  const alive = await hostOn({ model, dataDir });
  expect(await alive.find(session.id, "alice")).toBeUndefined();
  expect((await alive.find(session.id, null))?.view()).toMatchObject({ approvalMode: "always-ask", state: "idle" });
});

test("A11: a Session is found by its owner alone, listed for no other, and cannot be removed by one", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const { id } = await made(host.create({}, "alice"));
  for (const stranger of ["bob", null]) {
    expect(await host.find(id, stranger)).toBeUndefined();
    expect(await host.remove(id, stranger)).toBe(false);
    expect(await host.list({ limit: 10, archived: true }, stranger)).toMatchObject({ value: { sessions: [] } });
  }
  expect((await host.find(id, "alice"))?.id).toBe(id);
});

test("D12: a deleted Session stops what runs, takes its temporary Workspace along, and nothing brings it back", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([{ steps: [{ begin: "x" }, { wait: never }] }]);
  const host = await hostOn({ model, dataDir });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  await reader.until(({ data }) => (data.payload as { type?: string })?.type === "partial_text");
  expect(await host.remove(session.id, null)).toBe(true);
  expect(model.requests[0]?.signal.aborted).toBe(true);
  // Readers see the interrupt to its end before their streams end.
  expect(reader.messages.at(-1)?.payload).toEqual({ type: "abort", reason: "session_deleted" });
  expect(validateStream(reader.messages, { mode: "stream" })).toEqual([]);
  expect(reader.events.at(-1)?.data).toMatchObject({ type: "task_state", state: "idle", ended: { status: "aborted" } });
  expect(await host.find(session.id, null)).toBeUndefined();
  expect(() => readFileSync(join(dataDir, "sessions", session.id, "session.json"))).toThrow(/ENOENT/);
  expect(() => readFileSync(session.view().workspace)).toThrow(/ENOENT/);
  expect((await hostOn({ model, dataDir })).figures.sessions).toBe(0);
});

test("what a Session cost is told where prices are known", async () => {
  const host = await hostOn({ model: scriptedModel([{ steps: [{ say: "x" }] }]) });
  const session = await made(host.create({}, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  await reader.until(ended);
  // 10 tokens in at 1 dollar, 5 out at 2 dollars a million.
  expect(session.view().usage).toMatchObject({ total: 15, costUsd: 0.00002 });
});

test("of several changes at once none that was answered is lost, whatever is written when", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const changes = [{ approvalMode: "always-ask" as const }, { title: "mine" }, { archived: true }];
  for (const answer of await Promise.all(changes.map((change) => session.patch(change)))) expect(answer.ok).toBe(true);
  const again = await (await hostOn({ model: scriptedModel([]), dataDir })).find(session.id, null);
  expect(again?.view()).toMatchObject({ approvalMode: "always-ask", title: "mine", archived: true });
});

test("a temporary Workspace stays while another Session works in it or below it, and only ours is ever removed", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const first = await made(host.create({}, null));
  const { workspace } = first.view();
  mkdirSync(join(workspace, "sub"));
  const below = await made(host.create({ workspace: `${workspace}/sub/` }, null));
  await host.remove(first.id, null);
  expect(existsSync(join(workspace, "sub"))).toBe(true);
  await host.remove(below.id, null);
  expect(existsSync(workspace)).toBe(true);

  const named = join(dataDir, "named");
  mkdirSync(named);
  const third = await made(host.create({ workspace: named }, null));
  const path = join(dataDir, "sessions", third.id, "session.json");
  writeFileSync(path, readFileSync(path, "utf8").replace('"ownsWorkspace":false', '"ownsWorkspace":true'));
  await (await hostOn({ model: scriptedModel([]), dataDir })).remove(third.id, null);
  expect(existsSync(named)).toBe(true);
});

test("a record whose payload is damaged stays in the history, and the Session goes on without it", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([{ steps: [{ say: "one" }] }, { steps: [{ say: "two" }] }]);
  const session = await made((await hostOn({ model, dataDir })).create({}, null));
  const path = join(dataDir, "sessions", session.id, "trace-000001.jsonl");
  const at = "2026-01-02T03:04:05.000Z";
  for (const payload of [{ type: "token_usage", request: {} }, { type: "text", role: "user" }, { type: "tool_call" }]) {
    const type = payload.type === "token_usage" ? "event_msg" : "model_msg";
    appendFileSync(path, `${JSON.stringify({ timestamp: at, type, payload })}\n`);
  }
  const again = await (await hostOn({ model, dataDir })).find(session.id, null);
  if (again === undefined) throw new Error("the Session is gone");
  const reader = listReader();
  again.follow(reader, {});
  await made(again.submit("hello", {}));
  await reader.until(ended);
  expect(reader.events.at(-1)?.data).toMatchObject({ ended: { status: "completed" } });
  expect((await recordsOf(again)).length).toBe(again.view().state === "idle" ? 9 : 0);
});

test("a damaged folder does not keep the others from being hosted", async () => {
  const dataDir = tempDir();
  const { id } = await made((await hostOn({ model: scriptedModel([]), dataDir })).create({}, null));
  mkdirSync(join(dataDir, "sessions", "session-broken", "trace-000001.jsonl"), { recursive: true });
  symlinkSync("session-loop", join(dataDir, "sessions", "session-loop"));
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  expect((await host.find(id, null))?.id).toBe(id);
});

test("C10: many creates at once do not slip past the cap together", async () => {
  const host = await hostOn({ model: scriptedModel([]), process: { maxSessions: 5 } });
  const answers = await Promise.all(Array.from({ length: 20 }, () => host.create({}, null)));
  expect(answers.filter((answer) => answer.ok).length).toBe(5);
  expect(answers.filter((answer) => !answer.ok && answer.code === "too_many_sessions").length).toBe(15);
});

test("C10: a Session that is made counts once, also while it is being loaded", async () => {
  const reading = gate();
  const read = gate();
  const openToRead = async (path: string) => {
    reading.open();
    await read.promise;
    return diskFs.openToRead(path);
  };
  const host = await hostOn({ model: scriptedModel([]), fs: { ...diskFs, openToRead }, process: { maxSessions: 2 } });
  const first = host.create({}, null);
  await reading.promise;
  const second = host.create({}, null);
  // It is taken, or refused at once: both are being loaded now.
  const third = host.create({}, null);
  read.open();
  expect(await first).toMatchObject({ ok: true });
  expect(await second).toMatchObject({ ok: true });
  expect(await third).toMatchObject({ ok: false, code: "too_many_sessions" });
  await made(host.create({}, null));
});

test("C10: of many unloaded Sessions that are asked for at once no more are loaded than the cap has room for", async () => {
  const host = await hostOn({ model: scriptedModel([]), process: { maxSessions: 2 } });
  const ids: string[] = [];
  for (let n = 0; n < 6; n += 1) ids.push((await made(host.create({}, null))).id);
  expect(host.figures).toMatchObject({ sessions: 6, inMemory: 2 });
  const atWork = gate();
  const used = ids.slice(0, 4).map((id) => host.hasRoomFor(id, null) && host.use(id, null, () => atWork.promise));
  expect(used.map((use) => use !== false)).toEqual([true, true, false, false]);
  await expect.poll(() => host.figures.inMemory).toBe(2);
  expect(ids.slice(0, 4).map((id) => host.hasRoomFor(id, null))).toEqual([true, true, false, false]);
  // Somebody else's is not there, whether or not there is room.
  expect(host.hasRoomFor(ids[5] as string, "somebody else")).toBe(true);
  atWork.open();
  await Promise.all(used);
  expect(host.hasRoomFor(ids[3] as string, null)).toBe(true);
});

test("idle Sessions that nobody is at work with give way at once, however often they are looked at", async () => {
  const host = await hostOn({ model: scriptedModel([]), process: { maxSessions: 2 } });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await made(host.create({}, null))).id);
  for (const id of [...ids, ...ids]) {
    expect(host.hasRoomFor(id, null)).toBe(true);
    expect((await host.find(id, null))?.id).toBe(id);
    expect(host.figures.inMemory).toBe(2);
  }
  await made(host.create({}, null));
});

test("a Session that a call is at work with stays in memory until the call is done, though it is idle", async () => {
  const model = scriptedModel([{ steps: [{ say: "hello" }] }]);
  const host = await hostOn({ model, process: { maxSessions: 2 } });
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) ids.push((await made(host.create({}, null))).id);
  const [first, ...others] = ids as [string, ...string[]];
  const atWork = gate();
  const submitted = host.use(first, null, async (session) => {
    await atWork.promise;
    return session?.submit("hello", {});
  });
  // All the others, one after the other and at once, take the one place that is left.
  for (const id of others) await host.find(id, null);
  expect(others.map((id) => host.hasRoomFor(id, null))).toEqual([true, true, true, true]);
  await Promise.all(others.map((id) => host.find(id, null)));
  await made(host.create({}, null));
  atWork.open();
  expect(await submitted).toMatchObject({ ok: true });
});

test("work that fails lets go of its Session", async () => {
  const host = await hostOn({ model: scriptedModel([]), process: { maxSessions: 1 } });
  const { id } = await made(host.create({}, null));
  const failed = host.use(id, null, () => Promise.reject(new Error("no")));
  expect((await host.create({}, null)).ok).toBe(false);
  await expect(failed).rejects.toThrow("no");
  await made(host.create({}, null));
});

test("the Session that was used least recently is unloaded first, though it was loaded last", async () => {
  const clock = manualClock();
  const host = await hostOn({ model: scriptedModel([]), clock, process: { maxSessions: 2 } });
  const used = await made(host.create({}, null));
  const { id } = await made(host.create({}, null));
  clock.advance(61_000);
  expect(await host.find(used.id, null)).toBe(used);
  clock.advance(61_000);
  await made(host.create({}, null));
  expect(await host.find(used.id, null)).toBe(used);
  clock.advance(61_000);
  expect((await host.find(id, null))?.id).toBe(id);
});

test("the end of a Task is use: a Session that only was asked for before it is unloaded first", async () => {
  const clock = manualClock();
  const rest = gate();
  const model = scriptedModel([{ steps: [{ wait: rest.promise }, { say: "done" }] }]);
  const host = await hostOn({ model, clock, process: { maxSessions: 2 } });
  const working = await made(host.create({}, null));
  await made(working.submit("hello", {}));
  const looked = await made(host.create({}, null));
  rest.open();
  await working.settled();
  clock.advance(61_000);
  await made(host.create({}, null));
  expect(await host.find(working.id, null)).toBe(working);
  clock.advance(61_000);
  expect(await host.find(looked.id, null)).not.toBe(looked);
});

/** A disk on which Traces cannot be read while `isBroken` says so. */
const unreadable = (isBroken: () => boolean) => ({
  ...diskFs,
  openToRead: async (path: string) => {
    if (isBroken() && path.includes("trace-")) throw Object.assign(new Error("no"), { code: "EIO" });
    return diskFs.openToRead(path);
  },
});

test("a Session that cannot be loaded leaves no ring among those of the process, and loads once it can", async () => {
  const dataDir = tempDir();
  const { id } = await made((await hostOn({ model: scriptedModel([]), dataDir })).create({}, null));
  // It can be opened, which reads it once, and not be read then.
  let readings = 1;
  const budget = new ReplayBudget(1_000_000);
  const replay = { maxEvents: 1_000, maxBytes: 1_000_000, budget };
  const fs = unreadable(() => readings-- <= 0);
  const host = await hostOn({ model: scriptedModel([]), dataDir, fs, process: { replay } });
  for (let n = 0; n < 3; n += 1) await expect(host.find(id, null)).rejects.toMatchObject({ name: "StorageError" });
  expect(readings).toBe(-3);
  expect(budget.size).toBe(0);
  readings = Number.POSITIVE_INFINITY;
  expect((await host.find(id, null))?.id).toBe(id);
  expect(budget.size).toBe(1);
});

test("a Session that is made and cannot be loaded is not there: no entry, no folder, no ring", async () => {
  const dataDir = tempDir();
  let isBroken = true;
  const budget = new ReplayBudget(1_000_000);
  const replay = { maxEvents: 1_000, maxBytes: 1_000_000, budget };
  const host = await hostOn({
    model: scriptedModel([]),
    dataDir,
    fs: unreadable(() => isBroken),
    process: { replay, maxSessions: 2 },
  });
  await expect(host.create({}, null)).rejects.toMatchObject({ name: "StorageError" });
  isBroken = false;
  const source = await made(host.create({}, null));
  isBroken = true;
  expect((await host.fork(source.id, { ordinal: 0 }, null))?.ok).toBe(false);
  expect(host.figures).toMatchObject({ sessions: 1, inMemory: 1 });
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([source.id]);
  expect(readdirSync(join(dataDir, "workspaces"))).toEqual([source.id]);
  expect(budget.size).toBe(1);
});

test("a Session whose record is being written is not unloaded in the middle of it", async () => {
  const clock = manualClock();
  const hold = gate();
  const fs = {
    ...diskFs,
    rename: async (from: string, to: string) => {
      if (to.endsWith("session.json") && isHeld) await hold.promise;
      return diskFs.rename(from, to);
    },
  };
  let isHeld = false;
  const host = await hostOn({ model: scriptedModel([]), clock, fs, process: { maxSessions: 1 } });
  const session = await made(host.create({}, null));
  isHeld = true;
  const patched = session.patch({ title: "kept" });
  clock.advance(61_000);
  expect((await host.create({}, null)).ok).toBe(false);
  hold.open();
  expect((await patched).ok).toBe(true);
  isHeld = false;
  await made(host.create({}, null));
  clock.advance(61_000);
  expect((await host.find(session.id, null))?.view().title).toBe("kept");
});

test("a Session that could not be removed is still there, and can be removed later", async () => {
  let broken = true;
  const fs = {
    ...diskFs,
    rename: async (from: string, to: string) => {
      if (broken && to.includes(".gone-")) throw Object.assign(new Error("no"), { code: "EIO" });
      return diskFs.rename(from, to);
    },
  };
  const host = await hostOn({ model: scriptedModel([]), fs });
  const { id } = await made(host.create({}, null));
  await expect(host.remove(id, null)).rejects.toMatchObject({ name: "StorageError" });
  expect((await host.find(id, null))?.id).toBe(id);
  broken = false;
  expect(await host.remove(id, null)).toBe(true);
});
