// Records that are passed on as they are stored: the same ones as `read` gives, whatever stands around them, and little
// of them in memory.

import fc from "fast-check";
import { expect, test } from "vitest";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import type { TraceFile } from "../../src/trace/trace-fs.js";
import type { Trace } from "../../src/trace/trace-store.js";
import { textOf } from "../support/sessions.js";
import { collectingLog, ManualClock, META, MemoryFs, readAll, record } from "./support.js";

const FILE = "/data/sessions/s/trace-000001.jsonl";

/** A Trace whose file has these bytes behind its first record. */
async function traceOf(bytes: Buffer, fs = new MemoryFs()): Promise<{ trace: Trace; fs: MemoryFs }> {
  const newStore = () =>
    createTraceStore({ dir: "/data", fs, fsync: "off", clock: new ManualClock(), log: collectingLog() });
  const store = await newStore();
  await (await store.create("s", [[META()]])).close();
  fs.file(FILE).bytes = Buffer.concat([fs.file(FILE).bytes, bytes]);
  return { trace: (await (await newStore()).open("s")) as Trace, fs };
}

async function storedOf(trace: Trace): Promise<{ ordinal: number; json: string; isLong: boolean }[]> {
  const records = [];
  for await (const batch of trace.readStored())
    for (const { ordinal, json } of batch)
      records.push({ ordinal, json: await textOf(json), isLong: typeof json !== "string" });
  return records;
}

const around = fc.constantFrom("", "  ", "\t", "\r", "\u0000", "\u0000".repeat(300_000), "{}}", "\u0000x");
const line = fc.record({
  before: around,
  pad: fc.constantFrom("", "é", "🙂é".repeat(50_000), "x}\u0000{".repeat(60_000), "x".repeat(262_144)),
  damage: fc.constantFrom("none", "none", "none", "invalid UTF-8", "cut"),
  after: around,
});

function bytesOf({ before, pad, damage, after }: typeof line extends fc.Arbitrary<infer L> ? L : never): Buffer {
  const text = Buffer.from(record(0, pad));
  if (damage === "invalid UTF-8" && pad !== "") text[text.length - 6] = 0xff;
  const whole = damage === "cut" ? text.subarray(0, -3) : text;
  return Buffer.concat([Buffer.from(before), whole, Buffer.from(after)]);
}

test("are those that are read, text for text, long or short, with damage of any kind between them", async () => {
  let long = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 8 }), fc.boolean(), async (lines, isOpen) => {
      const bytes = lines.flatMap((each) => [bytesOf(each), Buffer.from("\n")]);
      const { trace, fs } = await traceOf(Buffer.concat(isOpen ? bytes.slice(0, -1) : bytes));
      const stored = await storedOf(trace);
      long += stored.filter(({ isLong }) => isLong).length;
      const read = await readAll(trace);
      expect(stored.map(({ ordinal, json }) => [ordinal, json])).toEqual(read.map((each) => [each.ordinal, each.json]));
      await trace.close();
      expect(fs.openHandles).toBe(0);
    }),
    { numRuns: 100 },
  );
  expect(long).toBeGreaterThan(20);
});

test.each([
  ["short", "é"],
  ["long", "🙂é".repeat(100_000)],
])("a %s one that came with an ordinal of another Trace is given without it, and the file keeps it", async (_, pad) => {
  const json = record(1, pad);
  const placed = [
    json.replace("{", '{"ordinal":7,'),
    json.replace(/}$/, ',"ordinal":7}'),
    json.replace(/}$/, ', "ordinal" : 7 , "after" : "é"}').replace("{", '  {"\\u006frdinal":9,'),
    json.replace("{", '{"later":{"ordinal":7},'),
  ];
  const bytes = Buffer.from(placed.map((line) => `${line}\n`).join(""));
  const { trace, fs } = await traceOf(bytes);
  const stored = await storedOf(trace);
  expect(stored.map(({ ordinal }) => ordinal)).toEqual([0, 1, 2, 3, 4]);
  expect(stored.slice(1).map((each) => each.json)).toEqual([
    json,
    json,
    json.replace(/}$/, ', "after" : "é"}'),
    placed[3],
  ]);
  for (const { isLong } of stored.slice(1)) expect(isLong).toBe(pad.length > 1);
  expect(fs.file(FILE).bytes.subarray(-bytes.length).equals(bytes)).toBe(true);
  await trace.close();
  expect(fs.openHandles).toBe(0);
});

test("a long one is read from the disk as it is taken, and the file is let go however that ends", async () => {
  const { trace, fs } = await traceOf(Buffer.from(`${record(1, "x".repeat(5_000_000))}\n`));
  const reads = () => fs.log.filter((call) => call.startsWith("read ")).length;
  const batches = trace.readStored();
  await batches.next();
  const { value } = await batches.next();
  const json = value?.[0]?.json;
  if (json === undefined || typeof json === "string") throw new Error("in one piece");
  const before = reads();
  const pieces = json[Symbol.asyncIterator]();
  await pieces.next();
  await pieces.next();
  expect(reads()).toBe(before + 2);
  fs.plan = (_call, op) => (op === "read" ? { kind: "error", code: "EIO", done: false, part: 0 } : undefined);
  await expect(pieces.next()).rejects.toThrow("EIO");
  await batches.return();
  await trace.close();
  expect(fs.openHandles).toBe(0);
});

/** Notes who reads where: the number of the opening, and the position. */
class WatchedFs extends MemoryFs {
  readonly reads: { reader: number; position: number }[] = [];
  onRead: (position: number) => void = () => {};
  #readers = 0;

  override async openToRead(path: string): Promise<TraceFile> {
    const file = await super.openToRead(path);
    const reader = this.#readers++;
    return {
      ...file,
      read: (into, position) => {
        this.reads.push({ reader, position });
        this.onRead(position);
        return file.read(into, position);
      },
    };
  }
}

test("long lines are put together one at a time, and one whose reader leaves holds up no other", async () => {
  const fs = new WatchedFs();
  const { trace } = await traceOf(Buffer.from(`${record(1, "x".repeat(5_000_000))}\n`), fs);
  fs.reads.length = 0;
  const readers = Array.from({ length: 10 }, async (_, index) => {
    const batches = trace.readStored();
    await batches.next();
    const next = batches.next();
    // It is asked to end while it waits for its turn, or in its turn.
    if (index % 2 === 0) void batches.return();
    const { value } = await next;
    await batches.return();
    return value?.length;
  });
  expect(await Promise.all(readers)).toEqual(readers.map(() => 1));
  const inTurn = fs.reads.filter(({ position }) => position > 1_500_000).map(({ reader }) => reader);
  const turns = inTurn.filter((reader, index) => reader !== inTurn[index - 1]);
  expect(turns.toSorted((a, b) => a - b)).toEqual(readers.map((_, index) => index + (turns[0] as number)));
  await trace.close();
  expect(fs.openHandles).toBe(0);
});

test("for whoever has left nothing is read any more, in his turn, before it or after it", async () => {
  const fs = new WatchedFs();
  const { trace } = await traceOf(Buffer.from(`${record(1, "x".repeat(5_000_000))}\n`), fs);
  fs.reads.length = 0;
  const gone = new AbortController();
  // One of them has its turn by then.
  fs.onRead = (position) => {
    if (position > 1_500_000) gone.abort();
  };
  const leave = Array.from({ length: 10 }, async () => {
    let records = 0;
    for await (const batch of trace.readStored({}, gone.signal)) records += batch.length;
    return records;
  });
  const stays = trace.readStored({ from: 1 });
  const staysNext = stays.next();
  // The first record, which they had already.
  expect(await Promise.all(leave)).toEqual(leave.map(() => 1));
  expect((await staysNext).value).toHaveLength(1);
  await stays.return();
  const inTurn = new Set(fs.reads.filter(({ position }) => position > 1_500_000).map(({ reader }) => reader));
  expect(inTurn.size).toBeLessThanOrEqual(2);
  await trace.close();
  expect(fs.openHandles).toBe(0);
});
