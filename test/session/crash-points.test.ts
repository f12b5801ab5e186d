// The process ends at any one call that changes the disk: before it, after it, or with a write half done. The next
// process keeps whatever the clients of the last one were told. And a Trace that was cut off anywhere is gone on with.
//
// Each call is tried in one of the ways, in turn; OMNID_CRASH_ALL=1 tries all of them. OMNID_CRASH_AT tries one call.

import { join } from "node:path";
import { expect, test } from "vitest";
import { validateStream } from "../../src/protocol/validate.js";
import { DATA, type Life as LifeOf, lifeUntil, NEVER } from "../support/crash-life.js";
import {
  expectGoesOn,
  expectKept,
  expectPromises,
  faultAt,
  hurriedClock,
  live,
  livelyModel,
  makeWorkspace,
  nothingTold,
  plainModel,
  recordsOn,
  runsOf,
  type Told,
} from "../support/crash-world.js";
import { hostOn, recordsOf, tempDir } from "../support/sessions.js";
import type { Fault } from "../trace/support.js";

const ALL = process.env.OMNID_CRASH_ALL !== undefined;
const ONLY = process.env.OMNID_CRASH_AT;
type Life = LifeOf<Told>;

/** Lives until the change `at`, which ends the process. */
function liveUntil(at: number, fault: Fault, workspace: string): Promise<Life> {
  const told = nothingTold();
  return lifeUntil(at, fault, {
    model: livelyModel(),
    told,
    live: async (host, dead, isDead) => {
      await live(host, workspace, told, dead);
      if (!isDead() && told.session !== undefined) await expectPromises(told.session, told, workspace);
    },
  });
}

/** The next process, held to what the clients of the last one were told, then used. */
async function expectNext({ disk, told }: Pick<Life, "disk" | "told">, workspace: string): Promise<void> {
  const { sessionId } = told;
  const onDisk = sessionId === undefined ? [] : recordsOn(disk, sessionId);
  const model = plainModel();
  const host = await hostOn({ model, fs: disk, dataDir: DATA, clock: hurriedClock() });
  if (sessionId !== undefined) {
    const listed = await host.list({ limit: 10, archived: false }, null);
    expect(listed).toMatchObject({ value: { sessions: [{ sessionId }] } });
    const session = await host.find(sessionId, null);
    if (session === undefined) throw new Error("the Session is gone");
    await expectKept(session, told, onDisk);
    await expectGoesOn(session, told, model, workspace);
  }
  await host.drain(0);
}

const crash = (done: boolean, part = 0): Fault => ({ kind: "crash", done, part });
const WAYS: [string, Fault][] = [
  ["not done", crash(false)],
  ["done", crash(true)],
  ["half done", crash(false, 0.5)],
];
const waysFor = (at: number): typeof WAYS => (ALL ? WAYS : WAYS.filter((_, index) => index === at % WAYS.length));

test("without a fault it is all as promised", async () => {
  const workspace = makeWorkspace(join(tempDir(), "workspace"));
  const { changes, told } = await liveUntil(NEVER, crash(false), workspace);
  expect([...told.accepted.values()]).toEqual(["first", "queued", "unwanted", "aside", "third", "late", "fourth"]);
  expect(runsOf(workspace).map(({ count }) => count)).toEqual([1, 0, 0, 1]);
  expect(changes).toBeGreaterThan(100);
});

test("A4 G3 G5 G6 G14 E1: whichever change of the disk the process ends at, what was promised is kept", async () => {
  const root = tempDir();
  for (let at = Number(ONLY ?? 0), isOver = false; !isOver; at++) {
    for (const [way, fault] of waysFor(at)) {
      const workspace = makeWorkspace(join(root, `${at} ${way}`));
      const life = await liveUntil(at, fault, workspace);
      isOver = life.op === "" || ONLY !== undefined;
      try {
        await expectNext(life, workspace);
      } catch (error) {
        throw new Error(`change ${at} ${way}: ${life.op}`, { cause: error });
      }
    }
  }
}, 300_000);

test("a process that ends again while it recovers leaves the next one the same work", async () => {
  const root = tempDir();
  for (let at = 10, isOver = false; !isOver; at += ALL ? 1 : 12) {
    const workspace = makeWorkspace(join(root, `${at}`));
    const life = await liveUntil(at, crash(true), workspace);
    isOver = life.op === "";
    for (let again = 0; ; again++) {
      const disk = life.disk.afterKill();
      let wasFaulted = false;
      faultAt(disk, again, crash(again % 2 === 0, 0.5), () => {
        wasFaulted = true;
      });
      const second = await hostOn({ model: plainModel(), fs: disk, dataDir: DATA, clock: hurriedClock() }).catch(
        () => undefined,
      );
      // Where it came through, somebody uses the Session, and what that writes is no part of the recovery.
      if (!wasFaulted) {
        await second?.drain(0);
        break;
      }
      const left = disk.afterKill();
      await second?.drain(0);
      // As it was before anything ran: whatever the first process ran counts no more, and what runs now runs once.
      makeWorkspace(workspace);
      try {
        await expectNext({ disk: left, told: { ...life.told, allowed: new Set(life.told.allowed) } }, workspace);
      } catch (error) {
        throw new Error(`change ${at}, then ${again} of the recovery`, { cause: error });
      }
    }
  }
}, 300_000);

test("G3: a Trace that ends at any record or at any byte of its last one loads, and the next prompt works", async () => {
  const workspace = makeWorkspace(join(tempDir(), "workspace"));
  const { disk, told } = await liveUntil(NEVER, crash(false), workspace);
  const id = told.sessionId as string;
  const paths = disk.paths().filter((path) => path.endsWith(".jsonl"));
  expect(paths).toHaveLength(2);
  for (const [index, path] of paths.entries()) {
    const { bytes } = disk.file(path);
    const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
    const lastLine = ends.at(-2) as number;
    const step = ALL ? 1 : 11;
    const inLast = Array.from({ length: (bytes.length - lastLine) / step }, (_, at) => lastLine + at * step);
    for (const length of [...ends, ...ends.map((end) => end - 1), ...inLast]) {
      const cut = disk.afterKill();
      for (const later of paths.slice(index + 1)) await cut.remove(later);
      cut.file(path).bytes = bytes.subarray(0, length);
      const kept = recordsOn(cut, id);
      makeWorkspace(workspace);
      const model = plainModel();
      const host = await hostOn({ model, fs: cut, dataDir: DATA, clock: hurriedClock() });
      const session = await host.find(id, null);
      if (session === undefined) throw new Error(`the Session is gone at ${length} of ${path}`);
      const before = await recordsOf(session);
      expect(before.slice(0, kept.length)).toEqual(kept);
      await expectGoesOn(session, nothingTold(), model, workspace);
      expect(validateStream(await recordsOf(session), { mode: "trace" })).toEqual([]);
      await host.drain(0);
    }
  }
}, 300_000);
