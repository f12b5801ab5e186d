// Time and chance as the client needs them, in a browser as in Node. Tests bring their own.

export interface ClientClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Calls `run` once after `ms`; the returned function cancels it. */
  after(ms: number, run: () => void): () => void;
  /** From 0 to 1, for jitter. */
  random(): number;
}

export const platformClock: ClientClock = {
  now: () => Date.now(),
  after: (ms, run) => {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
  random: () => Math.random(),
};
