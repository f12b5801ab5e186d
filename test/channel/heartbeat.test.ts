import fc from "fast-check";
import { expect, test } from "vitest";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import { idle, ManualClock, manualChannel, message, ReaderSink } from "./support.js";

test("a silent stream carries a ping and one line feed every interval (B9)", () => {
  const { channel, clock } = manualChannel();
  const sink = new ReaderSink("chunked");
  channel.subscribe(sink, { snapshot: idle });
  const before = sink.text;
  clock.advance(15_000);
  expect(sink.text).toBe(`${before}: ping\n`);
  clock.advance(45_000);
  expect(sink.text).toBe(`${before}${": ping\n".repeat(4)}`);
});

test("no silence is longer than the interval, whenever the last bytes went out (B9)", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 40_000 }), { maxLength: 30 }), (pauses) => {
      const { channel, clock, turn } = manualChannel();
      const sink = new ReaderSink();
      channel.subscribe(sink, { snapshot: idle });
      let quietSince = clock.now();
      for (const [n, pause] of pauses.entries()) {
        for (let passed = 0; passed < pause; passed += 100) {
          const length = sink.text.length;
          clock.advance(100);
          if (sink.text.length > length) quietSince = clock.now();
          expect(clock.now() - quietSince).toBeLessThanOrEqual(15_100);
        }
        channel.publish(message(n));
        turn();
        quietSince = clock.now();
      }
    }),
    { numRuns: 30 },
  );
});

test("a stream that carries events gets no ping", () => {
  const { channel, clock, turn } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  for (let n = 0; n < 100; n += 1) {
    clock.advance(10_000);
    channel.publish(message(n));
    turn();
  }
  expect(sink.comments).toEqual([]);
});

test("a reader that is behind gets no ping, and one once it has caught up", () => {
  const { channel, clock, turn } = manualChannel();
  const sink = new ReaderSink();
  channel.subscribe(sink, { snapshot: idle });
  sink.isStalled = true;
  channel.publish(JSON.stringify("x".repeat(70_000)));
  turn();
  clock.advance(59_000);
  expect(sink.comments).toEqual([]);
  sink.drain();
  clock.advance(15_000);
  expect(sink.comments).toEqual([": ping"]);
});

test("one timer serves all streams, and none is left after the last", () => {
  const clock = new ManualClock();
  const wheel = new HeartbeatWheel({ intervalMs: 15_000, clock });
  let beats = 0;
  const members = Array.from({ length: 5_000 }, () => wheel.join(() => (beats += 1)));
  expect(clock.timers).toBe(1);
  clock.advance(15_000);
  expect(beats).toBe(5_000);
  for (const member of members) {
    member.leave();
    member.leave();
  }
  expect(clock.timers).toBe(0);
  wheel.join(() => (beats += 1));
  clock.advance(15_000);
  expect(beats).toBe(5_001);
});

test("a beat may end its own stream or another's", () => {
  const clock = new ManualClock();
  const wheel = new HeartbeatWheel({ intervalMs: 16, clock });
  const beaten: number[] = [];
  const members = [0, 1, 2].map((n) =>
    wheel.join(() => {
      beaten.push(n);
      for (const member of members) member.leave();
    }),
  );
  clock.advance(100);
  expect(beaten).toEqual([0]);
  expect(clock.timers).toBe(0);
});
