// Lines of an upload: the same however they are cut, and little of them in memory while their client takes its time.

import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { type UploadedLine, uploadedLines } from "../../src/session/upload-lines.js";
import { upload } from "../support/rich-trace.js";
import { tempDir } from "../support/sessions.js";

const MIB = 1024 * 1024;
const LONG = 3 * MIB;

async function collected(lines: AsyncIterable<UploadedLine[]>): Promise<UploadedLine[]> {
  const all: UploadedLine[] = [];
  // Copied: they are ours until we ask for more.
  for await (const some of lines) for (const line of some) all.push({ ...line, bytes: copyOf(line.bytes) });
  return all;
}

const copyOf = (bytes: Buffer | undefined) => (bytes === undefined ? undefined : Buffer.from(bytes));

test("are those of the text, however it is cut, short, long or longer than the limit", async () => {
  const folder = join(tempDir(), "made", "for", "it");
  const length = fc.oneof(fc.nat(5), fc.nat(5000), fc.constantFrom(MIB - 1, MIB, MIB + 1, 2 * MIB, LONG, LONG + 1));
  await fc.assert(
    fc.asyncProperty(
      fc.array(length, { maxLength: 6 }),
      fc.integer({ min: 1, max: 4 * MIB }),
      async (lengths, seed) => {
        const texts = lengths.map((count, n) => Buffer.alloc(count, `${n}é北`));
        const text = Buffer.concat(texts.flatMap((each, n) => (n === 0 ? [each] : [Buffer.from("\n"), each])));
        const size = Math.max(seed, text.length >> 8);
        const got = await collected(
          uploadedLines(upload(text, size), { maxLineBytes: LONG, scratch: join(folder, "x") }),
        );
        const expected = texts.map((bytes, n) => ({ number: n + 1, bytes, isEnded: n < texts.length - 1 }));
        if (expected.at(-1)?.bytes.length === 0) expected.pop();
        expect(got.length).toBe(expected.length);
        for (const [n, { bytes, ...rest }] of expected.entries()) {
          expect(got[n]).toMatchObject(rest);
          if (bytes.length > LONG) expect(got[n]?.bytes).toBeUndefined();
          else expect(got[n]?.bytes?.equals(bytes)).toBe(true);
        }
        if (existsSync(folder)) expect(readdirSync(folder)).toEqual([]);
      },
    ),
    { numRuns: 40 },
  );
});

/** A client that sends and is then silent until the test is over, and the lines that come of it. */
function silentAfter(pieces: Iterable<Buffer>): { lines: AsyncGenerator<UploadedLine[]>; silent: Promise<void> } {
  let wasTaken = () => {};
  let leave = () => {};
  const silent = new Promise<void>((resolve) => {
    wasTaken = resolve;
  });
  const gone = new Promise<void>((resolve) => {
    leave = resolve;
  });
  const chunks = async function* () {
    yield* pieces;
    wasTaken();
    await gone;
  };
  const lines = uploadedLines(chunks(), { maxLineBytes: 64 * MIB, scratch: join(tempDir(), "x") });
  onTestFinished(async () => {
    leave();
    await lines.return(undefined);
  });
  return { lines, silent };
}

function* pieces(count: number, bytes: number): Generator<Buffer> {
  for (let n = 0; n < count; n++) yield Buffer.alloc(bytes, "x");
}

test("of many that do not end a megabyte each is in memory, in pieces of whatever size", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const inUse = () => {
    collect();
    const { arrayBuffers, heapUsed } = process.memoryUsage();
    return arrayBuffers + heapUsed;
  };
  const before = inUse();
  const clients = Array.from({ length: 12 }, (_, n) =>
    silentAfter(n < 10 ? pieces(160, 64 * 1024) : pieces(300_000, 3)),
  );
  for (const { lines, silent } of clients) {
    void lines.next();
    await silent;
  }
  // Twelve, and what is on its way; whole it would be more than a hundred.
  expect(inUse() - before).toBeLessThan(48 * MIB);
});

test("a long one of a client that stopped in it, or behind it, holds up nobody else's", async () => {
  const one = silentAfter(pieces(40, 64 * 1024));
  void one.lines.next();
  await one.silent;
  const two = silentAfter([...pieces(40, 64 * 1024), Buffer.from("\n")]);
  expect((await two.lines.next()).value).toHaveLength(1);
  void two.lines.next();
  await two.silent;
  const three = silentAfter([...pieces(40, 64 * 1024), Buffer.from("\n")]);
  expect((await three.lines.next()).value?.[0]?.bytes).toHaveLength(40 * 64 * 1024);
});

test("whoever stops taking them holds up nobody else's", async () => {
  for (let n = 0; n < 3; n++) {
    const { lines } = silentAfter([...pieces(40, 64 * 1024), Buffer.from("\n")]);
    await lines.next();
    await lines.return(undefined);
  }
});

test("a disk that takes no long one is told as such", async () => {
  const file = join(tempDir(), "file");
  writeFileSync(file, "");
  const lines = uploadedLines(upload(Buffer.alloc(LONG), 64 * 1024), { maxLineBytes: LONG, scratch: join(file, "x") });
  await expect(collected(lines)).rejects.toMatchObject({ name: "StorageError", errno: "ENOTDIR" });
});
