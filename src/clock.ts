// Time as a dependency. Everything that waits or stamps takes a Clock, so that a test can own time
// (fake timers do not reach AbortSignal.timeout). Only the system clock below touches the real one.

export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds, with fractions, since some instant; never goes back. For durations. */
  monotonic(): number;
  /** The present instant as ISO 8601 UTC with milliseconds. */
  iso(): string;
  /** Resolves after `ms`, or at once when `signal` aborts. Never rejects; the caller looks at the signal. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `run` once after `ms`. The returned function cancels it. The timer does not keep the process alive. */
  after(ms: number, run: () => void): () => void;
}

/** @returns a Clock on the machine's own time. */
export function systemClock(): Clock {
  let stampedAt = 0;
  let stamp = "";
  return {
    now: () => Date.now(),
    monotonic: () => performance.now(),
    iso: () => {
      const now = Date.now();
      // A burst of fragments shares one millisecond: format it once.
      if (now !== stampedAt) {
        stampedAt = now;
        stamp = new Date(now).toISOString();
      }
      return stamp;
    },
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        const done = () => {
          clearTimeout(timer);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, ms);
        signal?.addEventListener("abort", done, { once: true });
      }),
    after: (ms, run) => {
      const timer = setTimeout(run, ms);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}
