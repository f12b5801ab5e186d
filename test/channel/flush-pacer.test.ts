// The pace of a Channel's flushes: with the turn while they are cheap, at half of the loop's time when they are not.

import fc from "fast-check";
import { expect, test } from "vitest";
import { FlushPacer } from "../../src/channel/flush-pacer.js";
import { ManualClock, manualChannel, message, ReaderSink, range, seqs } from "./support.js";

/** Resolves after what `setImmediate` holds now. */
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("a flush that costs little is followed by the next one in the next turn", async () => {
  const clock = new ManualClock();
  const pacer = new FlushPacer(clock);
  pacer.run(() => clock.advance(0.1));
  let flushes = 0;
  pacer.schedule(() => {
    flushes += 1;
  });
  await turn();
  expect(flushes).toBe(1);
  expect(clock.timers).toBe(0);
});

test("after a costly flush the next one waits as long as that one took, and not longer", async () => {
  const clock = new ManualClock();
  const pacer = new FlushPacer(clock);
  pacer.run(() => clock.advance(4));
  let flushes = 0;
  pacer.schedule(() => {
    flushes += 1;
  });
  await turn();
  clock.advance(3);
  expect(flushes).toBe(0);
  clock.advance(1);
  expect(flushes).toBe(1);
});

test("a stream with more time between two messages than a flush takes is never held", async () => {
  const clock = new ManualClock();
  const pacer = new FlushPacer(clock);
  pacer.run(() => clock.advance(4));
  clock.advance(4);
  let flushes = 0;
  pacer.schedule(() => {
    flushes += 1;
  });
  await turn();
  expect(flushes).toBe(1);
});

test("no message is held for more than 10 ms, however long a flush took", async () => {
  const clock = new ManualClock();
  const pacer = new FlushPacer(clock);
  pacer.run(() => clock.advance(900));
  let flushes = 0;
  pacer.schedule(() => {
    flushes += 1;
  });
  clock.advance(10);
  expect(flushes).toBe(1);
});

test("under a producer that never stops, each rest is as long as the flush before it, up to its bound", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.25, max: 20, noNaN: true }), { minLength: 2, maxLength: 50 }), (costs) => {
      // A flush takes time itself, so this clock only keeps what is due and the test runs it.
      let now = 0;
      let due: { at: number; run: () => void } | undefined;
      const pacer = new FlushPacer({
        monotonic: () => now,
        after: (ms, run) => {
          due = { at: now + ms, run };
        },
      });
      let endedAt: number | undefined;
      let done = 0;
      const flush = () => {
        if (endedAt !== undefined) {
          const restMs = now - endedAt;
          const costMs = Math.min(costs[done - 1] as number, 10);
          expect(restMs).toBeGreaterThan(costMs - 0.51);
          expect(restMs).toBeLessThan(costMs + 1);
        }
        pacer.run(() => {
          now += costs[done] as number;
        });
        done += 1;
        endedAt = now;
        if (done < costs.length) pacer.schedule(flush);
      };
      flush();
      while (due !== undefined && done < costs.length) {
        now = due.at;
        due.run();
      }
      expect(done).toBe(costs.length);
    }),
  );
});

test("what is published while a Channel rests comes complete and in order, to those who join meanwhile too", () => {
  const clock = new ManualClock();
  const { channel } = manualChannel({ pace: new FlushPacer(clock) });
  const early = new ReaderSink();
  channel.subscribe(early, { snapshot: () => ({ events: [] }) });
  for (let n = 1; n <= 20; n += 1) channel.publish(message(n));
  const late = new ReaderSink();
  channel.subscribe(late, { snapshot: () => ({ events: [] }), lastEventId: `${channel.headId.split("-")[0]}-5` });
  channel.end();
  expect(seqs(early.events)).toEqual(range(1, 20));
  expect(seqs(late.events)).toEqual(range(6, 20));
});
