// Reading by ordinals: right for every window, at the cost of the window, and with an index that is never believed
// against the files.

import { createHash } from "node:crypto";
import fc from "fast-check";
import { beforeEach, describe, expect, test } from "vitest";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import { addRecord, emptyFileIndex, locate } from "../../src/trace/trace-index.js";
import type { Trace } from "../../src/trace/trace-store.js";
import { collectingLog, linesOf, ManualClock, META, MemoryFs, readAll, record } from "./support.js";

const SIDECAR = "/data/sessions/s/trace-index.json";
const FIRST = "/data/sessions/s/trace-000001.jsonl";
let fs = new MemoryFs();
const log = collectingLog();
beforeEach(() => {
  fs = new MemoryFs();
  log.warnings.length = 0;
});

const newStore = () => createTraceStore({ dir: "/data", fs, fsync: "interval", clock: new ManualClock(), log });
const open = async (): Promise<Trace> => (await (await newStore()).open("s"))!;

/** Lines of many sizes in files that begin at the given places. */
function lines(count: number, metas: readonly number[] = []): string[] {
  return Array.from({ length: count }, (_, i) =>
    i === 0 || metas.includes(i) ? META(i) : record(i, "é".repeat((i * 7919) % 1500)),
  );
}

async function made(all: string[]): Promise<void> {
  await (await (await newStore()).create("s", [all])).close();
}

const bytesRead = async (work: () => Promise<unknown>): Promise<number> => {
  const before = fs.log.filter((call) => call.startsWith("read ")).length;
  await work();
  return fs.log.filter((call) => call.startsWith("read ")).length - before;
};

describe("a window", () => {
  test("holds exactly the records of its ordinals, whatever files and marks it crosses", async () => {
    const all = lines(1200, [300, 301, 900]);
    await made(all);
    const trace = await open();
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: -5, max: 1250 }), fc.integer({ min: -5, max: 1250 }), async (from, to) => {
        const records = await readAll(trace, { from, to });
        expect(records.map((one) => one.json)).toEqual(all.slice(Math.max(0, from), Math.max(0, to)));
        expect(records.map((one) => one.ordinal)).toEqual(records.map((_, i) => Math.max(0, from) + i));
      }),
    );
  });

  test("of the last records of a long file is read without the rest of it", async () => {
    await made(lines(20_000));
    const trace = await open();
    expect(await bytesRead(() => linesOf(trace, { from: trace.count - 50 }))).toBe(1);
    expect(await bytesRead(() => linesOf(trace, { from: 10_000, to: 10_050 }))).toBe(1);
    expect(await bytesRead(() => linesOf(trace))).toBeGreaterThan(50);
  });

  test("asks for at most 64 records or about 64 KiB before its first", () => {
    const file = emptyFileIndex("f");
    for (let i = 0, offset = 0; i < 5000; i++, offset += (i * 7919) % 3000) addRecord(file, offset, false);
    for (let from = 0; from < 5000; from++) {
      const [window] = locate([file], from, from + 1);
      expect(from - file.marks[window!.mark]!).toBeLessThan(64);
    }
  });
});

describe("across files", () => {
  test("ordinals go on, and the context begins at the newest session_meta", async () => {
    const store = await newStore();
    const trace = await store.create("s", [[META(0)]]);
    await trace.append([record(1)]);
    await trace.rotate([META(2), record(3)]);
    await trace.append([record(4)]);
    await trace.rotate([META(5)]);
    expect(trace.count).toBe(6);
    expect(trace.contextStart).toBe(5);
    const all = [META(0), record(1), META(2), record(3), record(4), META(5)];
    expect(await linesOf(trace)).toEqual(all);
    await store.close();
    const again = await open();
    expect(again.contextStart).toBe(5);
    expect((await readAll(again)).map(({ ordinal, json }) => [ordinal, json])).toEqual(all.map((line, i) => [i, line]));
    expect(fs.paths().filter((path) => path.includes("trace-0"))).toHaveLength(3);
  });

  test("a session_meta inside imported records begins a new file, so that a download and its import are equal", async () => {
    const all = lines(10, [4, 7]);
    await (await newStore()).create("s", [all.slice(0, 5), all.slice(5)]);
    expect(fs.paths().filter((path) => path.includes("trace-0"))).toEqual([
      FIRST,
      "/data/sessions/s/trace-000002.jsonl",
      "/data/sessions/s/trace-000003.jsonl",
    ]);
    expect((await open()).contextStart).toBe(7);
  });
});

describe("appends and readers at once", () => {
  test("a reader gets what was recorded when it began, and a reader of [a, b) exactly that", async () => {
    const store = await newStore();
    const trace = await store.create("s", [[META(0)]]);
    const all = [META(0)];
    const readers: Promise<void>[] = [];
    for (let i = 1; i < 400; i++) {
      const line = i % 97 === 0 ? META(i) : record(i, "x".repeat((i * 31) % 900));
      all.push(line);
      const write = i % 97 === 0 ? trace.rotate([line]) : trace.append([line]);
      const count = trace.count;
      const from = (i * 13) % count;
      readers.push(linesOf(trace, { from, to: count }).then((got) => expect(got).toEqual(all.slice(from, count))));
      if (i % 5 === 0) await write;
    }
    await Promise.all(readers);
    await trace.append([]);
    await store.close();
    expect(fs.openHandles).toBe(0);
    expect(await linesOf(await open())).toEqual(all);
  });

  test("the count grows in the tick in which the append is done", async () => {
    const trace = await (await newStore()).create("s", [[META(0)]]);
    const seen: number[] = [];
    await Promise.all([1, 2, 3].map((i) => trace.append([record(i), record(i)]).then(() => seen.push(trace.count))));
    expect(seen).toEqual([3, 5, 7]);
  });
});

describe("the sidecar", () => {
  const all = lines(3000, [1000]);
  const isScanned = (path: string, since: number) =>
    fs.log.slice(since).filter((call) => call === `read ${path}`).length > 1;

  test("makes opening a long Trace cost no scan of it", async () => {
    await made(all);
    const before = fs.log.length;
    const trace = await open();
    expect(isScanned(FIRST, before)).toBe(false);
    expect(trace.count).toBe(3000);
    expect(trace.contextStart).toBe(1000);
    expect(await linesOf(trace)).toEqual(all);
  });

  test("is not kept for a short Trace", async () => {
    await made(lines(5));
    expect(fs.paths()).not.toContain(SIDECAR);
  });

  test("that is older than its file only costs the records since", async () => {
    await made(all);
    const newest = "/data/sessions/s/trace-000002.jsonl";
    const node = fs.file(newest);
    node.bytes = Buffer.concat([node.bytes, Buffer.from(`${record("a")}\n${record("b")}\n{"torn`)]);
    node.mtimeMs++;
    const before = fs.log.length;
    const trace = await open();
    expect(fs.log.slice(before).filter((call) => call === `read ${newest}`)).toHaveLength(2);
    expect(await linesOf(trace, { from: 2999 })).toEqual([all[2999], record("a"), record("b")]);
  });

  test("is not believed about the end of a file whose time of change does not tell that it grew", async () => {
    await made(all);
    const node = fs.file("/data/sessions/s/trace-000002.jsonl");
    node.bytes = Buffer.concat([node.bytes, Buffer.from(`${record("a")}\n`)]);
    expect(await linesOf(await open(), { from: 2999 })).toEqual([all[2999], record("a")]);
  });

  test("missing, damaged, of another version or not ours is made again from the files", async () => {
    const damages: ((text: string) => string)[] = [
      (text) => text.slice(0, -10),
      (text) => text.replace('"records":1000', '"records":1001'),
      (text) => text.replace('"version":1', '"version":2'),
      () => "[]",
      () => "",
    ];
    await made(all);
    const good = fs.file(SIDECAR).bytes.toString();
    for (const damage of damages) {
      fs.file(SIDECAR).bytes = Buffer.from(damage(good));
      expect(await linesOf(await open())).toEqual(all);
      expect(log.warnings.pop()?.message).toMatch(/^trace index is (damaged|unreadable)/);
    }
    await fs.remove(SIDECAR);
    expect(await linesOf(await open())).toEqual(all);
  });

  test("in which an earlier version kept more is taken all the same", async () => {
    await made(all);
    const { version, files } = JSON.parse(fs.file(SIDECAR).bytes.toString()) as { version: number; files: object[] };
    const more = files.map((file) => ({ skipped: 0, ...file }));
    const check = createHash("sha256").update(JSON.stringify(more)).digest("base64url");
    fs.file(SIDECAR).bytes = Buffer.from(JSON.stringify({ version, check, files: more }));
    expect(await bytesRead(open)).toBe(0);
    expect(log.warnings).toEqual([]);
    expect(await linesOf(await open())).toEqual(all);
  });

  test("is not believed when a file was changed, made shorter or put in the place of another", async () => {
    await made(all);
    const node = fs.file(FIRST);
    const whole = node.bytes;
    const edits = [
      // A line taken out of the middle, by an editor.
      Buffer.from(`${all.slice(0, 1000).toSpliced(500, 1).join("\n")}\n`),
      // The same size, other records.
      Buffer.from(whole.toString().replaceAll('"type":"x"', '"type":"y"')),
      whole.subarray(0, 5000),
    ];
    for (const edit of edits) {
      node.bytes = edit;
      node.mtimeMs++;
      const expected = edit
        .toString()
        .split("\n")
        .slice(0, edit === edits[2] ? -1 : undefined)
        .filter(Boolean);
      expect(await linesOf(await open())).toEqual([...expected, ...all.slice(1000)]);
    }
  });

  test("G2: that tells of records which are NULs by now is found out by the reader, and reading goes on without them", async () => {
    await made(all);
    const node = fs.file(FIRST);
    const gone = node.bytes.indexOf(`\n${all[700]}`) + 1;
    node.bytes.fill(0, gone, gone + Buffer.byteLength(`${all[700]}`));
    const trace = await open();
    expect(trace.count).toBe(3000);
    expect((await linesOf(trace)).length).toBeGreaterThan(0);
    expect(trace.count).toBe(2999);
    expect(await linesOf(trace)).toEqual(all.toSpliced(700, 1));
    await trace.append([record("after")]);
    expect(await linesOf(trace, { from: 2999 })).toEqual([record("after")]);
  });

  test("cannot be written: the Trace is closed all the same, and the next opening scans", async () => {
    const trace = await (await newStore()).create("s", [all]);
    fs.plan = (_, op, path) =>
      op === "create" && path.includes("trace-index")
        ? { kind: "error", code: "ENOSPC", done: false, part: 0 }
        : undefined;
    await trace.close();
    fs.plan = () => undefined;
    expect(log.warnings.map((one) => one.message)).toEqual(["trace index not kept; the next opening scans"]);
    expect(await linesOf(await open())).toEqual(all);
  });
});
