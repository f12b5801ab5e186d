// Work with an end: what a peer does not do in time is given up.

import type { Clock } from "../clock.js";

/** Runs `work` until it ends, `ms` have passed or one of `signals` aborts; in the last two cases it rejects at once. */
export async function within<T>(
  clock: Clock,
  ms: number,
  signals: readonly AbortSignal[],
  late: string,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const own = new AbortController();
  const stop = new Promise<never>((_, reject) => {
    own.signal.addEventListener("abort", () => reject(own.signal.reason), { once: true });
  });
  const cancel = clock.after(ms, () => own.abort(new Error(`${late} within ${ms / 1_000} s`)));
  const onAbort = () => own.abort(new Error("the connection is over"));
  for (const signal of signals) signal.addEventListener("abort", onAbort, { once: true });
  if (signals.some((signal) => signal.aborted)) onAbort();
  try {
    return await Promise.race([stop, work(own.signal)]);
  } finally {
    cancel();
    for (const signal of signals) signal.removeEventListener("abort", onAbort);
  }
}
