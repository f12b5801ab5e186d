// Memory of frames that is used again: it belongs to one frame at a time.

import { expect, test } from "vitest";
import { messageFrame } from "../../src/channel/frame.js";
import { allocateFrame, releaseFrame } from "../../src/channel/frame-memory.js";
import { manualChannel, ReaderSink } from "./support.js";

const KB = 1024;
const kept: Uint8Array[] = [];

/** Memory that no other test can have released: of a size that is asked for here only. */
const fresh = (bytes: number): Buffer => {
  const frame = allocateFrame(bytes);
  kept.push(frame);
  return frame;
};

test("what was released is used for the next frame of about its size, and by nobody else meanwhile", () => {
  const first = fresh(20 * KB);
  const second = fresh(20 * KB);
  expect(second.buffer).not.toBe(first.buffer);
  releaseFrame(first);
  const third = fresh(19 * KB);
  expect(third.buffer).toBe(first.buffer);
  expect(third.length).toBe(19 * KB);
  expect(fresh(20 * KB).buffer).not.toBe(first.buffer);
});

test.each([4 * KB, 4 * KB + 1, 5000, 8 * KB, 20_003, 64 * KB, 65_537, 256 * KB])(
  "%i bytes waste at most an eighth",
  (n) => {
    const frame = fresh(n);
    expect(frame.length).toBe(n);
    expect(frame.buffer.byteLength).toBeLessThanOrEqual(n * 1.125);
  },
);

test("what is kept is bounded: of 100 large frames that were released most are given to the collector", () => {
  const frames = Array.from({ length: 100 }, () => fresh(100 * KB));
  for (const frame of frames) releaseFrame(frame);
  const memory = new Set<unknown>(frames.map(({ buffer }) => buffer));
  const again = Array.from({ length: 100 }, () => allocateFrame(100 * KB)).filter(({ buffer }) => memory.has(buffer));
  expect(again.length).toBeGreaterThan(0);
  expect(again.length).toBeLessThanOrEqual((2 * 1024 * KB) / (100 * KB));
});

test("bytes that were made elsewhere are never used for a frame", () => {
  const foreign = Buffer.from(new ArrayBuffer(12 * KB));
  releaseFrame(foreign);
  expect(fresh(12 * KB).buffer).not.toBe(foreign.buffer);
});

test("a short and a long frame are framed alike, whatever the text", () => {
  for (const text of ["é", "abc", "日本", "😀", "\u2028", "\ud800"]) {
    for (const count of [1, 4000 / text.length, 9000]) {
      const json = JSON.stringify({ text: text.repeat(count) });
      expect(Buffer.from(messageFrame("3-17", json)).equals(Buffer.from(`id: 3-17\ndata: ${json}\n\n`))).toBe(true);
    }
  }
});

test("what a reader was given stays as it is when its messages are evicted and their memory is used again", () => {
  const { channel, turn } = manualChannel({ maxBytes: 30 * KB });
  const sinks = [new ReaderSink("chunked"), new ReaderSink("plain")];
  for (const sink of sinks) channel.subscribe(sink, { snapshot: () => ({ events: [], over: false }) });
  const sent = Array.from({ length: 20 }, (_, n) => JSON.stringify({ n, text: String(n % 10).repeat(9 * KB) }));
  for (const json of sent) {
    channel.publish(json);
    turn();
  }
  // Read at the end, from the very bytes that were handed to the connection.
  for (const { writes, framing } of sinks) {
    const text = Buffer.concat(writes).toString();
    for (const json of sent) expect(text).toContain(`data: ${json}\n\n`);
    expect(framing === "plain" || text.includes("\r\n")).toBe(true);
  }
});

test("frames that were joined for readers that catch up stay whole when the frames before were released", () => {
  const { channel } = manualChannel();
  const json = (n: number) => JSON.stringify({ n, text: "x".repeat(n % 64 === 0 ? 5 * KB : 8) });
  for (let n = 1; n <= 512; n += 1) channel.publish(json(n));
  const follow = () => {
    const sink = new ReaderSink();
    channel.subscribe(sink, {
      lastEventId: channel.headId.replace(/\d+$/, "0"),
      snapshot: () => ({ events: [], over: false }),
    });
    return sink;
  };
  const first = follow();
  // Whatever joining released is written over now.
  for (let n = 0; n < 64; n += 1) fresh(5 * KB + 64).fill(0x21);
  for (const sink of [first, follow()]) {
    expect(sink.events.map(({ data }) => data)).toEqual(Array.from({ length: 512 }, (_, n) => json(n + 1)));
  }
});
