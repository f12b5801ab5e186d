// A process that ends at any change of the disk while a Session is made or deleted, and the temporary Workspaces that the
// next one finds: one for each Session that has one, and no other.

import { existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import type { SessionManager } from "../../src/session/session-manager.js";
import { diskFs, type TraceFile, type TraceFs } from "../../src/trace/trace-fs.js";
import { scriptedModel } from "../support/engine.js";
import { hostOn, made, tempDir } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

const model = () => scriptedModel([]);
const never = new Promise<never>(() => {});

/** A disk that, once it is counted, answers nothing from the change `at` on, which is done or not. */
function mortal() {
  let left = Number.POSITIVE_INFINITY;
  let isDone = false;
  let die = () => {};
  const died = new Promise<void>((resolve) => {
    die = resolve;
  });
  async function change<T>(run: () => Promise<T>): Promise<T> {
    left -= 1;
    if (left > 0) return run();
    if (left === 0 && isDone) await run();
    die();
    return never;
  }
  const look = <T>(run: () => Promise<T>): Promise<T> => (left > 0 ? run() : never);
  const handles = new Set<TraceFile>();
  let isClosed = false;
  const file = (opened: TraceFile): TraceFile => ({
    write: (bytes) => change(() => opened.write(bytes)),
    truncate: (length) => change(() => opened.truncate(length)),
    sync: () => change(() => opened.sync()),
    read: (into, position) => look(() => opened.read(into, position)),
    stat: () => look(() => opened.stat()),
    close: () => {
      handles.delete(opened);
      return opened.close();
    },
  });
  const taken = (opened: TraceFile): TraceFile => {
    handles.add(opened);
    // One that was on its way when the process ended.
    if (isClosed) void opened.close();
    return file(opened);
  };
  const fs: TraceFs = {
    openToRead: (path) => look(async () => taken(await diskFs.openToRead(path))),
    openToAppend: (path) => look(async () => taken(await diskFs.openToAppend(path))),
    create: (path) => change(async () => taken(await diskFs.create(path))),
    readFile: (path) => look(() => diskFs.readFile(path)),
    stat: (path) => look(() => diskFs.stat(path)),
    list: (folder) => look(() => diskFs.list(folder)),
    makeFolder: (path) => change(() => diskFs.makeFolder(path)),
    rename: (from, to) => change(() => diskFs.rename(from, to)),
    remove: (path) => change(() => diskFs.remove(path)),
    syncFolder: (path) => change(() => diskFs.syncFolder(path)),
  };
  const endAt = (at: number, done: boolean) => {
    left = at;
    isDone = done;
  };
  /** The system closes what the process had open. */
  const closeAll = () => {
    isClosed = true;
    return Promise.all([...handles].map((handle) => handle.close()));
  };
  return { fs, died, endAt, closeAll };
}

const meta = (id: string) =>
  JSON.stringify({
    timestamp: "2026-07-18T00:00:00.000Z",
    type: "session_meta",
    payload: {
      ...{ session_id: id, provider: "test", model_id: "scripted", model_context_window: 1000, system_prompt: "" },
      ...{ tools: [], thinking_level: "default", agent_state: "/x", workspace: "/x" },
    },
  });
const upload = () => ({
  chunks: (async function* () {
    yield Buffer.from(`${meta("elsewhere")}\n`);
  })(),
  maxLineBytes: 1_000_000,
  damaged: "refuse" as const,
});

const lives: Record<string, (host: SessionManager, id: string) => Promise<unknown>> = {
  "is made": (host) => host.create({}, null),
  "is imported": (host) => host.importTrace(upload(), null),
  "is forked": (host, id) => host.fork(id, { ordinal: 0 }, null),
  "is deleted": (host, id) => host.remove(id, null),
  "is deleted while it is forked": (host, id) =>
    Promise.all([host.fork(id, { ordinal: 0 }, null), host.remove(id, null)]),
};

test.each(Object.keys(lives))(
  "a process that ends while a Session %s leaves no Workspace without a Session",
  async (name) => {
    for (let at = 1, isOver = false; !isOver; at++) {
      for (const done of [false, true]) {
        const dataDir = tempDir();
        const { fs, died, endAt, closeAll } = mortal();
        const host = await hostOn({ model: model(), dataDir, fs });
        const { id } = await made(host.create({}, null));
        endAt(at, done);
        const lived = lives[name]!(host, id).then(() => true);
        isOver = await Promise.race([lived, died.then(() => false)]);
        await closeAll();
        const next = await hostOn({ model: model(), dataDir });
        const names = (folder: string) => readdirSync(join(dataDir, folder)).sort();
        const wanted = async () => {
          const listed = await next.list({ limit: 10, archived: false }, null);
          if (!listed.ok) throw new Error(listed.message);
          return [...new Set(listed.value.sessions.map(({ workspace }) => basename(workspace)))].sort();
        };
        await expect.poll(() => names("sessions").filter((each) => each.startsWith("."))).toEqual([]);
        expect(names("workspaces"), `change ${at}, ${done ? "done" : "not done"}`).toEqual(await wanted());
        await next.drain(0);
      }
    }
  },
);

test("what is left is removed with no Workspace that a Session works in, or that nobody can tell whose it is", async () => {
  const dataDir = tempDir();
  const first = await hostOn({ model: model(), dataDir });
  const [one, two, three] = [
    await made(first.create({}, null)),
    await made(first.create({}, null)),
    await made(first.create({}, null)),
  ];
  const workspaces = [one, two, three].map((session) => session.view().workspace) as [string, string, string];
  const user = await made(first.create({ workspace: workspaces[0] }, null));
  await first.drain(0);
  const leave = (name: string, record: object) => {
    const folder = join(dataDir, "sessions", name);
    mkdirSync(folder);
    writeFileSync(join(folder, "session.json"), JSON.stringify(record));
  };
  // Deleted, but another works there; its fork that was being deleted; a fork of one whose own files cannot be read.
  const sessions = join(dataDir, "sessions");
  renameSync(join(sessions, one.id), join(sessions, `.gone-${one.id}`));
  leave(".gone-fork", { ...two.record, sessionId: "fork" });
  writeFileSync(join(sessions, three.id, "session.json"), "{");
  writeFileSync(join(sessions, three.id, "trace-000001.jsonl"), "{");
  leave(".new-fork-3", { ...three.record, sessionId: "fork-3" });
  mkdirSync(join(dataDir, "workspaces", "mine"));
  const next = await hostOn({ model: model(), dataDir });
  await expect.poll(() => readdirSync(sessions).filter((name) => name.startsWith("."))).toEqual([]);
  expect([...workspaces, join(dataDir, "workspaces", "mine")].map((path) => existsSync(path))).toEqual([
    true,
    true,
    true,
    true,
  ]);
  expect(await next.find(user.id, null)).toBeDefined();
  await next.drain(0);
});

test("a deleted Session tells whose its Workspace is until a fork of it tells so itself", async () => {
  const dataDir = tempDir();
  const held = gate();
  const reached = gate();
  let isHeld = false;
  const create: TraceFs["create"] = async (path) => {
    if (isHeld && path.includes(".new-")) {
      reached.open();
      await held.opened;
    }
    return diskFs.create(path);
  };
  const host = await hostOn({ model: model(), dataDir, fs: { ...diskFs, create } });
  const { id } = await made(host.create({}, null));
  isHeld = true;
  const forking = host.fork(id, { ordinal: 0 }, null);
  await reached.opened;
  const deleting = host.remove(id, null);
  const names = (folder: string) => readdirSync(join(dataDir, folder));
  await expect.poll(() => names("sessions")).toContain(`.gone-${id}`);
  // Whatever it still does without the fork is done by then: a turn of the disk for each step.
  for (let turn = 0; turn < 50; turn++) await diskFs.list(dataDir);
  expect(names("sessions")).toContain(`.gone-${id}`);
  expect(names("workspaces")).toEqual([id]);
  held.open();
  await Promise.all([forking, deleting]);
  expect(names("sessions").filter((each) => each.startsWith("."))).toEqual([]);
  const listed = await host.list({ limit: 10, archived: false }, null);
  if (!listed.ok) throw new Error(listed.message);
  expect(names("workspaces")).toEqual(listed.value.sessions.map(({ workspace }) => basename(workspace)));
  await host.drain(0);
});
