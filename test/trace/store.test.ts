import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import { StorageError } from "../../src/trace/storage-error.js";
import type { FsyncPolicy, TraceFs } from "../../src/trace/trace-fs.js";
import type { TraceStore } from "../../src/trace/trace-store.js";
import { collectingLog, linesOf, ManualClock, META, MemoryFs, readAll, record, settle } from "./support.js";

let dir = "";
const log = collectingLog();
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "omnid-store-"));
  log.warnings.length = 0;
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await rm(dir, { recursive: true, force: true });
});

const stores: TraceStore[] = [];
async function onDisk(fsync: FsyncPolicy = "off"): Promise<TraceStore> {
  const store = await createTraceStore({ dir, fsync, clock: new ManualClock(), log });
  stores.push(store);
  return store;
}
const inMemory = (fs: TraceFs, fsync: FsyncPolicy = "off", clock = new ManualClock()) =>
  createTraceStore({ dir: "/data", fs, fsync, clock, log });

describe("files and folders", () => {
  test("are 0600 and 0700 under any umask", async () => {
    const before = process.umask(0o277);
    try {
      const store = await onDisk();
      const trace = await store.create("s", [[META()]], { "session.json": "{}" });
      await trace.rotate([META()]);
      await trace.append(Array.from({ length: 3000 }, (_, i) => record(i, "x".repeat(100))));
      await trace.close();
    } finally {
      process.umask(before);
    }
    const folder = join(dir, "sessions", "s");
    const names = await readdir(folder);
    expect(names.sort()).toEqual(["session.json", "trace-000001.jsonl", "trace-000002.jsonl", "trace-index.json"]);
    for (const name of names) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
    for (const path of [folder, join(dir, "sessions")]) expect((await stat(path)).mode & 0o777).toBe(0o700);
  });

  test("an id that would lead out of the sessions folder names no Session", async () => {
    const store = await onDisk();
    await writeFile(join(dir, "trace-000001.jsonl"), `${META()}\n`);
    for (const id of ["..", ".", "../sessions", "a/b", "", ".new-s", "a\0", "x".repeat(129)]) {
      expect(await store.open(id)).toBeUndefined();
      await expect(store.remove(id)).rejects.toThrow("not a session id");
    }
    expect(await store.list()).toEqual([]);
  });
});

describe("creating a Session", () => {
  test("leaves all of it or nothing, whichever call ends the process", async () => {
    const reference = new MemoryFs();
    await (await inMemory(reference, "always")).create("s", [[META(0), record(1)], [META(2)]], {
      "session.json": "{}",
    });
    for (let at = 0; at < reference.calls; at++) {
      for (const done of [false, true]) {
        const fs = new MemoryFs();
        fs.plan = (call) => (call === at ? { kind: "crash", done, part: 0.5 } : undefined);
        const attempt = inMemory(fs, "always").then((store) =>
          store.create("s", [[META(0), record(1)], [META(2)]], { "session.json": "{}" }),
        );
        await expect(attempt).rejects.toThrow();
        const later = fs.afterKill();
        const store = await inMemory(later);
        const ids = await store.list();
        if (ids.length > 0) {
          expect(await linesOf((await store.open("s"))!)).toEqual([META(0), record(1), META(2)]);
          expect(later.file("/data/sessions/s/session.json").bytes.toString()).toBe("{}");
        }
        for await (const { sessionId } of store.sweep()) expect(sessionId).toBe("s");
        expect(later.paths().filter((path) => path.includes("/."))).toEqual([]);
      }
    }
  });

  test("that fails leaves nothing, be it the disk or whoever gives the records", async () => {
    const store = await onDisk();
    async function* broken() {
      yield [META()];
      throw new Error("the client left");
    }
    await expect(store.create("s", broken())).rejects.toThrow("the client left");
    expect(await readdir(join(dir, "sessions"))).toEqual([]);
    const fs = new MemoryFs();
    const full = await inMemory(fs);
    fs.plan = (_, op) => (op === "write" ? { kind: "error", code: "ENOSPC", done: false, part: 0.3 } : undefined);
    await expect(full.create("s", [[META()]])).rejects.toMatchObject({ code: "write_failed", errno: "ENOSPC" });
    expect(fs.paths()).toEqual([]);
    expect(fs.openHandles).toBe(0);
  });

  test("under an id that exists is refused and harms the other not", async () => {
    const store = await onDisk();
    await store.create("s", [[META(), record(1)]]);
    await expect(store.create("s", [[META()]])).rejects.toThrow("exists");
    expect(await linesOf((await store.open("s"))!)).toEqual([META(), record(1)]);
  });
});

describe("removing a Session", () => {
  test("is not undone by writes under way or later, and is not seen half done", async () => {
    const store = await onDisk();
    const trace = await store.create("s", [[META()]]);
    await writeFile(join(store.folder("s"), "scratch.txt"), "x");
    const writes = [trace.append([record(1)]), trace.rotate([META()]), trace.append([record(2)])];
    const removed = store.remove("s");
    await Promise.allSettled([...writes, removed]);
    await removed;
    await expect(trace.append([record(3)])).rejects.toBeInstanceOf(StorageError);
    await expect(trace.rotate([META()])).rejects.toBeInstanceOf(StorageError);
    expect(await readdir(join(dir, "sessions"))).toEqual([]);
    expect(await store.open("s")).toBeUndefined();
    await store.remove("s");
  });

  test("that a crash interrupted is finished at the next start", async () => {
    await (await onDisk()).create("s", [[META()]]);
    await mkdir(join(dir, "sessions", ".gone-t"));
    await writeFile(join(dir, "sessions", ".gone-t", "trace-000001.jsonl"), "x");
    const next = await onDisk();
    expect(await next.list()).toEqual(["s"]);
    const left: string[] = [];
    for await (const { sessionId, folder } of next.sweep()) {
      left.push(sessionId);
      expect(await readdir(folder)).toEqual(["trace-000001.jsonl"]);
    }
    expect(left).toEqual(["t"]);
    expect(await readdir(join(dir, "sessions"))).toEqual(["s"]);
  });
});

describe("an open Trace", () => {
  test("is one object until it is closed, and a later opening waits for the closing", async () => {
    const store = await onDisk();
    const trace = await store.create("s", [[META()]]);
    expect(await store.open("s")).toBe(trace);
    const write = trace.append([record(1)]);
    const closed = trace.close();
    const [again, twin] = await Promise.all([store.open("s"), store.open("s")]);
    expect(again).not.toBe(trace);
    expect(twin).toBe(again);
    await Promise.all([write, closed]);
    expect(await linesOf(again!)).toEqual([META(), record(1)]);
    await expect(trace.append([record(2)])).rejects.toMatchObject({ code: "closed" });
  });

  test("holds a descriptor only while it is written to", async () => {
    const fs = new MemoryFs();
    const clock = new ManualClock();
    const store = await inMemory(fs, "interval", clock);
    const trace = await store.create("s", [[META()]]);
    expect(fs.openHandles).toBe(0);
    await trace.append([record(1)]);
    expect(fs.openHandles).toBe(1);
    clock.advance(60_000);
    await settle();
    expect(fs.openHandles).toBe(0);
    await trace.append([record(2)]);
    expect(await linesOf(trace)).toEqual([META(), record(1), record(2)]);
    await store.close();
    expect(fs.openHandles).toBe(0);
    expect(clock.pending).toBe(0);
  });

  test("is written with one write for a group, also for one of megabytes", async () => {
    const fs = new MemoryFs();
    const trace = await (await inMemory(fs)).create("s", [[META()]]);
    const before = fs.log.length;
    await trace.append([record(1, "x".repeat(3_000_000)), record(2), record(3)]);
    expect(fs.log.slice(before).filter((call) => call.startsWith("write "))).toHaveLength(1);
  });

  test("reports a full disk, and goes on when there is room again", async () => {
    const fs = new MemoryFs();
    const trace = await (await inMemory(fs)).create("s", [[META()]]);
    fs.plan = (_, op) => (op === "write" ? { kind: "error", code: "ENOSPC", done: false, part: 0.5 } : undefined);
    const [one, two] = await Promise.allSettled([trace.append([record(1)]), trace.append([record(2)])]);
    for (const result of [one, two]) {
      expect(result).toMatchObject({ status: "rejected", reason: { name: "StorageError", errno: "ENOSPC" } });
      expect(String((result as PromiseRejectedResult).reason.message)).not.toContain("/data");
    }
    fs.plan = () => undefined;
    await trace.append([record(3)]);
    expect(trace.count).toBe(2);
    expect(await linesOf(trace)).toEqual([META(), record(3)]);
  });
});

describe("fsync", () => {
  const syncs = (fs: MemoryFs) => fs.log.filter((call) => call.startsWith("sync")).length;
  async function counting(fsync: FsyncPolicy) {
    const fs = new MemoryFs();
    const clock = new ManualClock();
    const store = await inMemory(fs, fsync, clock);
    const trace = await store.create("s", [[META()]]);
    clock.advance(1000);
    await settle();
    const start = syncs(fs);
    return { fs, clock, store, trace, since: () => syncs(fs) - start };
  }

  const forced = (fs: MemoryFs, file: number) => fs.file(`/data/sessions/s/trace-00000${file}.jsonl`).synced.toString();
  async function seconds(clock: ManualClock, count: number) {
    for (let second = 1; second <= count; second++) {
      clock.advance(1000);
      await settle();
    }
  }

  test("`always` forces each group, `off` none", async () => {
    for (const [fsync, expected] of [
      ["always", 3],
      ["off", 0],
    ] as const) {
      const { trace, clock, since } = await counting(fsync);
      for (const i of [1, 2, 3]) await trace.append([record(i)]);
      clock.advance(5000);
      await settle();
      expect(since()).toBe(expected);
    }
  });

  test("`interval` forces once a second while there is something to force, and sets no timer otherwise", async () => {
    const { trace, clock, since } = await counting("interval");
    for (const i of [1, 2, 3]) await trace.append([record(i)]);
    expect(since()).toBe(0);
    clock.advance(1000);
    await settle();
    expect(since()).toBe(1);
    clock.advance(5000);
    await settle();
    expect(since()).toBe(1);
    await trace.append([record(4)]);
    await trace.close();
    expect(since()).toBe(2);
    expect(clock.pending).toBe(0);
  });

  test("`interval` forces what was acknowledged also where a torn end behind it could not be cut off", async () => {
    const { trace, clock, fs } = await counting("interval");
    await trace.append([record(1)]);
    fs.plan = (_, op) =>
      ["write", "truncate"].includes(op) ? { kind: "error", code: "EIO", done: false, part: 0.5 } : undefined;
    await expect(trace.append([record(2)])).rejects.toMatchObject({ errno: "EIO" });
    expect(fs.openHandles).toBe(0);
    fs.plan = () => undefined;
    log.warnings.length = 0;
    await seconds(clock, 1);
    expect(forced(fs, 1)).toContain(`${META()}\n${record(1)}\n`);
    await seconds(clock, 40);
    expect([log.warnings, clock.pending, fs.openHandles]).toEqual([[], 0, 0]);
  });

  test.each(["sync", "syncFolder"])(
    "`interval` goes on trying while the disk refuses a %s, also once the file is closed, and says so once",
    async (refused) => {
      const { trace, clock, fs } = await counting("interval");
      await trace.append([record(1)]);
      await trace.rotate([META(2)]);
      await trace.append([record(3)]);
      fs.plan = (_, op) => (op === refused ? { kind: "error", code: "EIO", done: false, part: 0 } : undefined);
      log.warnings.length = 0;
      await seconds(clock, 60);
      expect(fs.openHandles).toBe(0);
      expect(log.warnings.map(({ message }) => message)).toEqual([expect.stringContaining("forcing a trace")]);
      fs.plan = () => undefined;
      fs.log.length = 0;
      await seconds(clock, 1);
      expect(fs.log).toContain("syncFolder /data/sessions/s");
      expect([forced(fs, 1), forced(fs, 2)]).toEqual([`${META()}\n${record(1)}\n`, `${META(2)}\n${record(3)}\n`]);
      expect([log.warnings.length, clock.pending, fs.openHandles]).toEqual([2, 0, 0]);
    },
  );

  test("`interval` owes nothing to a Session that was deleted", async () => {
    const { trace, clock, store } = await counting("interval");
    await trace.rotate([META(2)]);
    log.warnings.length = 0;
    await store.remove("s");
    expect([log.warnings, clock.pending]).toEqual([[], 0]);
  });
});

describe("a large Trace", () => {
  test("G10: is opened, read and downloaded in many turns of the event loop, none of which takes more than its share", async () => {
    const big = Array.from({ length: 4000 }, (_, i) => record(i, "x".repeat(1500)));
    const store = await onDisk();
    await (await store.create("s", [[META()], ...Array.from({ length: 5 }, () => big)])).close();
    await rm(join(dir, "sessions", "s", "trace-index.json"));
    const bytes = (await stat(join(dir, "sessions", "s", "trace-000001.jsonl"))).size;
    const shares = bytes / (256 * 1024);
    const turnsOf = async (work: () => Promise<unknown>): Promise<number> => {
      let isDone = false;
      const done = work().finally(() => {
        isDone = true;
      });
      let turns = 0;
      while (!isDone) {
        await turn();
        turns++;
      }
      await done;
      return turns;
    };
    expect(await turnsOf(() => store.open("s"))).toBeGreaterThan(shares);
    const trace = (await store.open("s"))!;
    expect(trace.count).toBe(20_001);
    expect(await turnsOf(() => readAll(trace))).toBeGreaterThan(shares);
    const download = async () => {
      let size = 0;
      for await (const chunk of trace.openTrace()) size += (chunk as Buffer).length;
      expect(size).toBe(bytes);
    };
    expect(await turnsOf(download)).toBeGreaterThan(shares);
    for await (const batch of trace.read()) {
      expect(batch.reduce((sum, one) => sum + one.json.length, 0)).toBeLessThan(512 * 1024);
    }
  });
});

describe("a download", () => {
  test("is the files byte for byte up to what was recorded when it was asked for", async () => {
    const store = await onDisk();
    const trace = await store.create("s", [[META(0), record(1, "北🙂")]]);
    await trace.rotate([META(2)]);
    const stream = trace.openTrace();
    await trace.append([record(3)]);
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(chunk);
    const first = await readFile(join(store.folder("s"), "trace-000001.jsonl"));
    expect(Buffer.concat(chunks)).toEqual(Buffer.concat([first, Buffer.from(`${META(2)}\n`)]));
  });

  test("that its reader leaves holds no descriptor, and one that nobody reads reads little", async () => {
    const fs = new MemoryFs();
    const trace = await (await inMemory(fs)).create("s", [[META(), record(1, "x".repeat(5_000_000))]]);
    const stream = trace.openTrace();
    const before = fs.log.length;
    await new Promise((resolve) => stream.once("readable", resolve));
    await settle();
    expect(fs.log.slice(before).filter((call) => call.startsWith("read ")).length).toBeLessThan(5);
    expect(fs.openHandles).toBe(1);
    const closed = new Promise((resolve) => stream.once("close", resolve));
    stream.destroy();
    await closed;
    await settle();
    expect(fs.openHandles).toBe(0);
  });
});

test("a data directory that takes no write says so, and says otherwise when it does again", async () => {
  const fs = new MemoryFs();
  const store = await inMemory(fs);
  expect(await store.isWritable()).toBe(true);
  fs.plan = (_, op) => (op === "write" ? { kind: "error", code: "ENOSPC", done: false, part: 0 } : undefined);
  expect(await store.isWritable()).toBe(false);
  fs.plan = () => undefined;
  expect(await store.isWritable()).toBe(true);
  expect(await store.list()).toEqual([]);
  expect(fs.paths()).toEqual([]);
});

test("many who ask at once whether a data directory takes writes are told the same, and leave nothing in it", async () => {
  const store = await onDisk();
  const answers = await Promise.all(Array.from({ length: 20 }, () => store.isWritable()));
  expect(new Set(answers)).toEqual(new Set([true]));
  expect(await readdir(join(dir, "sessions"))).toEqual([]);
  expect(log.warnings).toEqual([]);
});
