// The disk fails at any one call that changes it, once or from there on. What cannot be recorded is not shown and not
// promised; nothing that was recorded is harmed; when the disk takes writes again, the Session goes on.
//
// Every second call is tried, in one of the ways in turn; OMNID_CRASH_ALL=1 tries all calls in all ways, and
// OMNID_CRASH_AT one call.

import { join } from "node:path";
import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import { DATA } from "../support/crash-life.js";
import {
  CHANGES,
  Dead,
  expectGoesOn,
  faultAt,
  hurriedClock,
  live,
  livelyModel,
  makeWorkspace,
  nothingTold,
  plainModel,
  type Told,
} from "../support/crash-world.js";
import { type ScriptedModel, scriptedModel } from "../support/engine.js";
import { hostOn, listReader, made, recordsOf, tempDir } from "../support/sessions.js";
import { type Fault, MemoryFs } from "../trace/support.js";

const ALL = process.env.OMNID_CRASH_ALL !== undefined;
const ONLY = process.env.OMNID_CRASH_AT;

const error = (code: "EIO" | "ENOSPC" | "EROFS", part = 0, done = false): Fault => ({
  kind: "error",
  code,
  done,
  part,
});
const WAYS: [string, Fault][] = [
  ["ENOSPC, nothing written", error("ENOSPC")],
  ["ENOSPC in the middle of the write", error("ENOSPC", 0.5)],
  ["EIO, and it was done all the same", error("EIO", 1, true)],
  ["a short write", { kind: "short", part: 0.5 }],
  ["EROFS", error("EROFS")],
];
const waysFor = (at: number): typeof WAYS => (ALL ? WAYS : WAYS.filter((_, index) => index === at % WAYS.length));

/** The Session at rest, on a disk that works: all that was seen is in its Trace, and the next process finds the same. */
async function expectWhole(disk: MemoryFs, told: Told, model: ScriptedModel, workspace: string): Promise<void> {
  const { session, reader } = told;
  if (session === undefined) return;
  await expectGoesOn(session, told, model, workspace);
  const records = await recordsOf(session);
  expect(validateStream(reader.messages, { mode: "stream" }), "the stream").toEqual([]);
  expect(compareStreamWithTrace(reader.messages, records), "the stream against the Trace").toEqual([]);
  const host = await hostOn({ model: plainModel(), fs: disk.afterKill(), dataDir: DATA, clock: hurriedClock() });
  const again = await host.find(session.id, null);
  if (again === undefined) throw new Error("the Session is gone");
  expect(await recordsOf(again), "the next process").toEqual(records);
  for (const id of told.accepted.keys()) expect(again.task(id), id).toEqual(session.task(id));
  expect(again.queue()).toEqual(session.queue());
  await host.drain(0);
}

async function everyCall(tryOne: (at: number, fault: Fault, workspace: string) => Promise<string>): Promise<void> {
  const root = tempDir();
  for (let at = Number(ONLY ?? 0), isOver = false; !isOver; at += ALL ? 1 : 2) {
    for (const [way, fault] of waysFor(at)) {
      const workspace = makeWorkspace(join(root, `${at} ${way}`));
      let op = "";
      try {
        op = await tryOne(at, fault, workspace);
      } catch (error) {
        throw new Error(`change ${at}: ${way}`, { cause: error });
      }
      isOver = op === "" || ONLY !== undefined;
    }
  }
}

test("G1: one call fails: what it was for is refused or told as failed, and all else is as promised", async () => {
  await everyCall(async (at, fault, workspace) => {
    const disk = new MemoryFs();
    const told = nothingTold();
    let op = "";
    faultAt(disk, at, fault, (name) => {
      op = name;
    });
    const model = livelyModel();
    const host = await hostOn({ model, fs: disk, dataDir: DATA, clock: hurriedClock() }).catch(() => undefined);
    if (host !== undefined) {
      await live(host, workspace, told, new Promise(() => {}));
      disk.plan = () => undefined;
      await expectWhole(disk, told, model, workspace);
      await host.drain(0);
    }
    return op;
  });
}, 300_000);

test("a full or read-only disk: the Task ends with storage, prompts are refused, and both are made good when it works again", async () => {
  await everyCall(async (at, fault, workspace) => {
    const disk = new MemoryFs();
    const told = nothingTold();
    let die: (error: Dead) => void = () => {};
    const onset = new Promise<never>((_, reject) => {
      die = reject;
    });
    onset.catch(() => {});
    let op = "";
    let running: string | undefined;
    faultAt(disk, at, fault, (name) => {
      op = name;
      running = told.session?.view().state === "running" ? lastTask(told) : undefined;
      disk.plan = (_call, each) => (CHANGES.has(each) ? fault : undefined);
      die(new Dead());
    });
    const model = livelyModel();
    const host = await hostOn({ model, fs: disk, dataDir: DATA, clock: hurriedClock() }).catch(() => undefined);
    await (host === undefined ? undefined : live(host, workspace, told, onset).catch(() => {}));
    if (op !== "" && told.session !== undefined) await expectRefuses(told, running);
    disk.plan = () => undefined;
    await expectWhole(disk, told, model, workspace);
    await host?.drain(0);
    return op;
  });
}, 300_000);

/** The Task that readers were told of last. */
function lastTask({ reader }: Told): string | undefined {
  const states = reader.events.filter(({ data }) => data.type === "task_state");
  return states.at(-1)?.data.taskId as string | undefined;
}

/** While the disk takes no write. */
async function expectRefuses({ session }: Told, running: string | undefined): Promise<void> {
  if (session === undefined) return;
  for (;;) {
    const refused = await session.submit("refused", {});
    expect(refused.ok).toBe(false);
    if (!refused.ok && refused.code === "storage_failed") break;
    expect(refused).toMatchObject({ code: "task_in_progress" });
    const [open] = session.approvals();
    const id = open?.toolCall.payload.tool_call_id;
    if (id !== undefined) expect(await session.decide(id, { decision: "allow" })).toMatchObject({ ok: false });
    await session.abort();
    await session.settled();
  }
  const ended = running === undefined ? undefined : session.task(running);
  if (ended?.state === "ended" && ended.error !== undefined) expect(ended.error.kind).toBe("storage");
  const head = headOf(session);
  expect(await session.submit("refused", {})).toMatchObject({ ok: false });
  expect(await session.compact()).toMatchObject({ ok: false });
  expect(headOf(session), "nothing is shown").toBe(head);
}

const headOf = (session: Session): string => session.history({}).cursor;

test("G5: a disk that refuses the closing records at start: they are written before the next Prompt, with the reason", async () => {
  const disk = new MemoryFs();
  const never = new Promise<void>(() => {});
  const workspace = makeWorkspace(join(tempDir(), "workspace"));
  const options = { dataDir: DATA, clock: hurriedClock() };
  const first = await hostOn({
    ...options,
    model: scriptedModel([{ steps: [{ say: "half" }, { wait: never }] }]),
    fs: disk,
  });
  const { id } = await made(first.create({ workspace }, null));
  const running = await first.find(id, null);
  const reader = listReader();
  running?.follow(reader, {});
  await running?.submit("first", {});
  await reader.until(({ data }) => JSON.stringify(data).includes('"text","role":"assistant","text":"half"'));
  const left = disk.afterKill();
  await first.drain(0);

  left.plan = (_call, op, path) => (op === "write" && path.endsWith(".jsonl") ? error("EROFS") : undefined);
  const model = scriptedModel([{ steps: [{ say: "well" }] }]);
  const host = await hostOn({ ...options, model, fs: left });
  const session = await host.find(id, null);
  expect(session?.view().state).toBe("idle");
  expect(await session?.submit("refused", {})).toMatchObject({ code: "storage_failed" });
  left.plan = () => undefined;
  expect(await session?.submit("next", {})).toMatchObject({ ok: true });
  await session?.settled();
  const records = session === undefined ? [] : await recordsOf(session);
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(records.filter((record) => isPayload(record, "abort"))).toMatchObject([
    { payload: { reason: "server_restarted" } },
  ]);
  await host.drain(0);
});
