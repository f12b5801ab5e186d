// A log that nobody reads holds nothing up: bounded, and told of when somebody reads again.

import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { streamOutput } from "../../src/http/log-output.js";
import { manualClock } from "../support/manual-clock.js";

/** A pipe whose reader reads when it is told to. */
function pipe() {
  const read: string[] = [];
  let take: (() => void) | undefined;
  const stream = new Writable({
    decodeStrings: false,
    write: (chunk: string, _encoding, done) => {
      take = () => {
        read.push(chunk);
        done();
      };
    },
  });
  const readAll = async () => {
    while (stream.writableLength > 0) {
      take?.();
      await new Promise(setImmediate);
    }
  };
  return { stream, read, readAll };
}

const line = (n: number) => `${JSON.stringify({ n, text: "x".repeat(1000) })}\n`;

test("lines that nobody reads wait up to a bound, and above it are dropped whole and counted", async () => {
  const { stream, read, readAll } = pipe();
  const output = streamOutput(stream, manualClock());
  for (let n = 0; n < 3000; n += 1) output.write(line(n));
  expect(stream.writableLength).toBeLessThan(1.1 * 1024 * 1024);
  await readAll();
  output.write(line(3000));
  await readAll();
  const records = read.map((text) => JSON.parse(text) as { n?: number; level?: number; msg?: string });
  const kept = records.length - 2;
  expect(records.slice(0, kept).map(({ n }) => n)).toEqual(Array.from({ length: kept }, (_, n) => n));
  expect(records.at(-2)).toMatchObject({ level: 40, msg: expect.stringContaining(`${3000 - kept} lines`) });
  expect(records.at(-1)).toMatchObject({ n: 3000 });
});

test.each([1, 30, 300])("the end waits for the reader of %i lines, and not for long", async (count) => {
  const clock = manualClock();
  const { stream, readAll } = pipe();
  const output = streamOutput(stream, clock);
  for (let n = 0; n < count; n += 1) output.write(line(n));
  let isOver = false;
  const stuck = output.flushed(200).then(() => {
    isOver = true;
  });
  await new Promise(setImmediate);
  expect(isOver).toBe(false);
  clock.advance(200);
  await stuck;
  const read = output.flushed(200);
  await readAll();
  await read;
});

test("a reader that is gone is no error, and what is said then is dropped", async () => {
  const { stream } = pipe();
  const output = streamOutput(stream, manualClock());
  stream.destroy(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  await new Promise(setImmediate);
  output.write(line(1));
  await output.flushed(200);
});
