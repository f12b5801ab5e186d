// A log that cannot be written holds nothing up: its lines are dropped and counted, and told of when it can be again.

import { closeSync, openSync, readFileSync, write } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FileOutput, type WriteToFile } from "../../src/http/log-file.js";
import { manualClock } from "../support/manual-clock.js";
import { temporaryFolder } from "../support/server.js";

/** A file on a disk with room for as many bytes as the test says; a write may go there in part, as on a real one. */
function smallDisk() {
  const path = join(temporaryFolder(), "log");
  const fd = openSync(path, "a");
  onTestFinished(() => closeSync(fd));
  const disk = { room: Number.POSITIVE_INFINITY, writes: 0 };
  const writeToFile: WriteToFile = (_fd, bytes, done) => {
    disk.writes += 1;
    const part = bytes.subarray(0, disk.room);
    if (part.length === 0)
      setImmediate(done, Object.assign(new Error("no space left on device"), { code: "ENOSPC" }), 0);
    else {
      disk.room -= part.length;
      write(fd, part, done);
    }
  };
  const clock = manualClock();
  const records = () =>
    readFileSync(path, "utf8")
      .trimEnd()
      .split("\n")
      .map((text) => JSON.parse(text) as { n?: number; level?: number; msg?: string });
  return { disk, clock, records, output: new FileOutput(fd, clock, writeToFile) };
}

const line = (n: number) => `${JSON.stringify({ n, text: "x".repeat(100) })}\n`;
const size = line(0).length;

test.each([0, 1, size - 1, size, size + 1])(
  "with room for %i bytes more, lines go missing whole, are counted, and the log goes on when there is room",
  async (room) => {
    const { disk, records, output } = smallDisk();
    output.write(line(0));
    await output.flushed(200);
    disk.room = room;
    for (let n = 1; n <= 9; n += 1) output.write(line(n));
    await output.flushed(200);
    output.write(line(9));
    await output.flushed(200);
    disk.room = Number.POSITIVE_INFINITY;
    output.write(line(10));
    output.write(line(11));
    await output.flushed(200);
    const all = records();
    const lines = all.flatMap(({ n }) => (n === undefined ? [] : [n]));
    const told = all.filter(({ msg }) => msg !== undefined);
    expect(told).toMatchObject([{ level: 40, msg: expect.stringMatching(/could not be written \(ENOSPC\)$/) }]);
    const missing = 13 - lines.length;
    expect(told[0]?.msg).toMatch(new RegExp(`^${missing} lines of the log were dropped`));
    expect(all.indexOf(told[0] as object)).toBe(lines.length - 2);
    expect(lines.slice(-2)).toEqual([10, 11]);
    expect(lines.slice(0, -2)).toEqual(Array.from({ length: lines.length - 2 }, (_, n) => n));
  },
);

test("the line that says what is missing can go missing itself, with its count kept", async () => {
  const { disk, records, output } = smallDisk();
  disk.room = 0;
  for (let n = 0; n < 5; n += 1) {
    output.write(line(n));
    await output.flushed(200);
  }
  disk.room = 10;
  output.write(line(5));
  await output.flushed(200);
  disk.room = Number.POSITIVE_INFINITY;
  output.write(line(6));
  await output.flushed(200);
  expect(records()).toMatchObject([
    { msg: expect.stringMatching(/^5 lines /) },
    { msg: expect.stringMatching(/^1 lines /) },
    { n: 6 },
  ]);
});

test("a disk that does not answer is waited for up to a bound, in memory and in time", async () => {
  const clock = manualClock();
  const writes: { bytes: Uint8Array; done: () => void }[] = [];
  const output = new FileOutput(2, clock, (_fd, bytes, done) => {
    writes.push({ bytes, done: () => done(null, bytes.length) });
  });
  for (let n = 0; n < 30_000; n += 1) output.write(line(n));
  expect(writes).toHaveLength(1);
  const end = output.flushed(200);
  clock.advance(200);
  await end;
  writes[0]?.done();
  expect(writes[1]?.bytes.length).toBeLessThan(1.1 * 1024 * 1024);
  expect(Buffer.from(writes[1]?.bytes ?? []).toString()).toMatch(/"\d+ lines of the log were dropped: /);
});
