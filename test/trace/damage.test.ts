// Real files, damaged in the ways that crashes, full disks and editors do.

import { appendFile, mkdtemp, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { toLine } from "../../src/protocol/message.js";
import { CHUNK_BYTES, parseRecord, readLines } from "../../src/trace/jsonl-reader.js";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import type { TraceFile } from "../../src/trace/trace-fs.js";
import type { TraceStore } from "../../src/trace/trace-store.js";
import { collectingLog, linesOf, ManualClock, META, record } from "./support.js";

let dir = "";
const log = collectingLog();
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "omnid-trace-"));
  log.warnings.length = 0;
});
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await rm(dir, { recursive: true, force: true });
});

const stores: TraceStore[] = [];
async function newStore(): Promise<TraceStore> {
  const store = await createTraceStore({ dir, fsync: "off", clock: new ManualClock(), log });
  stores.push(store);
  return store;
}
const file = (number = 1) => join(dir, "sessions", "s", `trace-00000${number}.jsonl`);

async function made(lines: string[]): Promise<void> {
  const store = await newStore();
  await (await store.create("s", [lines])).close();
}

async function reopened() {
  const trace = await (await newStore()).open("s");
  return trace!;
}

describe("a torn end", () => {
  test("G3: cut at any byte of the last record, only that record is lost, and the next one stands on a line of its own", async () => {
    const first = [META(), record(1, "北🙂é")];
    const last = record(2, "北🙂é\u2028");
    const whole = Buffer.byteLength(last);
    const start = Buffer.byteLength(`${first.join("\n")}\n`);
    await made([...first, last]);
    const bytes = await readFile(file());
    for (let cut = 0; cut <= whole; cut++) {
      await writeFile(file(), bytes.subarray(0, start + cut));
      const before = await reopened();
      // All of the record but its line feed: it is whole, and may have been acknowledged before the power went.
      const kept = cut === whole ? [...first, last] : first;
      expect(await linesOf(before)).toEqual(kept);
      await before.append([record(3)]);
      await before.close();
      const after = await reopened();
      expect(await linesOf(after)).toEqual([...kept, record(3)]);
      expect((await readFile(file(), "utf8")).split("\n")).toEqual([...kept, record(3), ""]);
    }
  });

  test("reading a Trace with a torn end changes no byte of it", async () => {
    await made([META(), record(1)]);
    await appendFile(file(), '{"timestamp":"20');
    const before = await readFile(file());
    const trace = await reopened();
    await linesOf(trace);
    await trace.close();
    expect(await readFile(file())).toEqual(before);
    expect(log.warnings.map((one) => one.message)).toContain("dropped a torn last line of a trace");
  });

  test("the download ends before it", async () => {
    await made([META(), record(1)]);
    await appendFile(file(), '{"timestamp":"20');
    const chunks: Buffer[] = [];
    for await (const chunk of (await reopened()).openTrace()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe(`${META()}\n${record(1)}\n`);
  });

  test("a record of an older file that lost its line feed does not share a line with the next file's first in a download", async () => {
    await made([META(0), record(1), META(1), record(2)]);
    const bytes = await readFile(file(1));
    await truncate(file(1), bytes.length - 1);
    const chunks: Buffer[] = [];
    for await (const chunk of (await reopened()).openTrace()) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe(`${[META(0), record(1), META(1), record(2)].join("\n")}\n`);
  });
});

describe("damage before the end", () => {
  const good = [META(), record(1), record(2), record(3), record(4)];
  const damages: [string, (lines: string[], at: number) => string[]][] = [
    ["half a line", (lines, at) => lines.with(at, lines[at]!.slice(0, 20))],
    ["an empty line", (lines, at) => lines.with(at, "")],
    ["a run of NULs", (lines, at) => lines.with(at, "\0".repeat(600_000))],
    ["binary noise", (lines, at) => lines.with(at, '\u0001{"}\ufffd{{')],
    ["JSON that is no record", (lines, at) => lines.with(at, '{"type":"model_msg","payload":[]}')],
    ["an array", (lines, at) => lines.with(at, "[1]")],
    ["a type nobody knows", (lines, at) => lines.with(at, '{"type":"other","payload":{}}')],
  ];
  for (const [name, damage] of damages) {
    test(`G1, G2: ${name} as first, middle or last line is skipped and reported, and every other record is kept`, async () => {
      for (const at of [0, 2, 4]) {
        log.warnings.length = 0;
        await rm(join(dir, "sessions"), { recursive: true, force: true });
        await made(good);
        await writeFile(file(), `${damage([...good], at).join("\n")}\n`);
        const trace = await reopened();
        expect(await linesOf(trace)).toEqual(good.toSpliced(at, 1));
        expect(trace.count).toBe(4);
        expect(log.warnings).toMatchObject([{ details: { lines: 1 } }]);
        await trace.append([record(5)]);
        await trace.close();
        expect(await linesOf(await reopened())).toEqual([...good.toSpliced(at, 1), record(5)]);
      }
    });
  }

  test("G2: a record that follows a run of NULs on the same line is kept", async () => {
    await made(good);
    await writeFile(file(), `${good[0]}\n{"torn\0\0\0\0${good[1]}\n${good[2]}\0\0\n`);
    expect(await linesOf(await reopened())).toEqual(good.slice(0, 3));
  });

  test("when the first line of the newest file is damaged, the context begins with the record after it", async () => {
    await made([META(0), record(1), META(1), record(2), record(3)]);
    await writeFile(file(2), `xx${await readFile(file(2), "utf8")}`);
    const trace = await reopened();
    expect(trace.contextStart).toBe(2);
    expect(await linesOf(trace, { from: trace.contextStart })).toEqual([record(2), record(3)]);
  });

  test("a payload of a type that we do not know is a record", async () => {
    const line = '{"type":"event_msg","timestamp":"x","later":1,"payload":{"type":"of_a_later_version"}}';
    await made([META(), line]);
    expect(await linesOf(await reopened())).toEqual([META(), line]);
  });
});

describe("lines", () => {
  test("B1: U+2028, U+2029 and U+0085 inside a record split nothing, escaped by us or raw from elsewhere", async () => {
    const text = "a\u2028b\u2029c\u0085d\re";
    const ours = toLine({ type: "event_msg", timestamp: "t", payload: { text } });
    const raw = `{"type":"event_msg","timestamp":"t","payload":{"text":"a\u2028b\u2029c\u0085d"}}`;
    await made([META(), ours, raw]);
    expect(await linesOf(await reopened())).toEqual([META(), ours, raw]);
    expect(ours).not.toMatch(/[\u2028\u2029\u0085]/);
  });

  test("a line break inside a line that is to be recorded is refused and nothing of its group is written", async () => {
    const store = await newStore();
    const trace = await store.create("s", [[META()]]);
    await expect(trace.append([record(1), "{\n}"])).rejects.toThrow("one line");
    await trace.append([record(2)]);
    expect(await linesOf(trace)).toEqual([META(), record(2)]);
    await store.close();
  });

  test("are the same wherever the reads of the file end", async () => {
    const piece = fc.oneof(
      fc.constant(Buffer.from("\n")),
      fc.constant(Buffer.from(record(1, "é\u2028"))),
      fc.constant(Buffer.from(record(2))),
      fc.constant(Buffer.alloc(7)),
      fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes)),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(piece),
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }),
        async (pieces, reads) => {
          const bytes = Buffer.concat(pieces);
          const seen: string[] = [];
          for await (const lines of readLines(served(bytes, reads), 0, bytes.length)) {
            for (const line of lines) {
              const json = parseRecord(line.bytes)?.json;
              if (json !== undefined) seen.push(json);
              expect(bytes.subarray(line.offset, line.end).includes("\n")).toBe(!line.isOpen);
            }
          }
          const expected: string[] = [];
          let start = 0;
          for (let end = 0; end <= bytes.length; end++) {
            if (end < bytes.length && bytes[end] !== 10) continue;
            const json = parseRecord(bytes.subarray(start, end))?.json;
            if (json !== undefined) expected.push(json);
            start = end + 1;
          }
          expect(seen).toEqual(expected);
        },
      ),
    );
  });

  test("a line longer than many reads is joined once", async () => {
    const long = record(1, "x".repeat(CHUNK_BYTES * 8));
    await made([META(), long, record(2)]);
    expect(await linesOf(await reopened())).toEqual([META(), long, record(2)]);
  });
});

/** A file whose reads give as few bytes as the list says, over and over. */
function served(bytes: Buffer, reads: readonly number[]): TraceFile {
  let turn = 0;
  const none = () => Promise.reject(new Error("only reads"));
  return {
    read: async (into, position) => {
      const most = reads[turn++ % reads.length]!;
      return bytes.copy(into, 0, position, Math.min(bytes.length, position + most));
    },
    write: none,
    truncate: none,
    sync: none,
    stat: none,
    close: none,
  };
}
