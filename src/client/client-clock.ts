// Time and chance as the client needs them, in a browser as in Node. Tests bring their own.

export interface ClientClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `ms`, at the latest when the platform's timers end; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** From 0 to 1, for jitter. */
  random(): number;
}

/** Timers count in 32 bits: one that is set for longer is due at once. Nothing here waits for 24 days. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const platformClock: ClientClock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, Math.min(ms, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};
