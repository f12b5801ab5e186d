// A Clock that stands still until it is told to go on.

import type { Clock } from "../../src/clock.js";

export interface ManualClock extends Clock {
  /** Moves on, running what falls due on the way, in order. */
  advance(ms: number): void;
}

export function manualClock(startAt = Date.parse("2026-01-02T03:04:05.000Z")): ManualClock {
  let now = startAt;
  let timers: { at: number; run: () => void }[] = [];
  const after = (ms: number, run: () => void) => {
    const timer = { at: now + ms, run };
    timers.push(timer);
    return () => {
      timers = timers.filter((each) => each !== timer);
    };
  };
  return {
    now: () => now,
    monotonic: () => now,
    iso: () => new Date(now).toISOString(),
    after,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        after(ms, resolve);
        signal?.addEventListener("abort", () => resolve(), { once: true });
      }),
    advance(ms) {
      const end = now + ms;
      for (;;) {
        const due = timers.filter((timer) => timer.at <= end).sort((a, b) => a.at - b.at)[0];
        if (due === undefined) break;
        timers = timers.filter((timer) => timer !== due);
        now = due.at;
        due.run();
      }
      now = end;
    },
  };
}
