// A call that is made again while its failure passes: a connection that was cut, a proxy's answer, a server that starts
// or has too much to do. What the server refuses for good is thrown at once.

import { platformClock } from "../client/client-clock.js";
import { OmnidError } from "../client/index.js";
import { BACKOFF, backoffMs } from "../client/retrying.js";
import { systemClock } from "../clock.js";

export interface RetryOptions {
  signal: AbortSignal;
  /** After as many tries the failure counts; as many as it takes unless given. */
  maxTries?: number;
  /** Whether another try may help; `isPassing` unless given. */
  isPassing?: (error: unknown) => boolean;
  /** Called before each wait. `failures` is in a row, from 1. */
  onWait?: (error: unknown, waitMs: number, failures: number) => void;
}

/** @throws what `attempt` throws where another try does not help, or the reason of the signal. */
export async function retried<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, maxTries = Number.POSITIVE_INFINITY, isPassing: mayPass = isPassing, onWait } = options;
  const clock = systemClock();
  for (let failures = 1; ; failures += 1) {
    try {
      return await attempt();
    } catch (error) {
      if (signal.aborted || failures >= maxTries || !mayPass(error)) throw error;
      const askedMs = error instanceof OmnidError ? (error.retryAfter ?? 0) * 1000 : 0;
      const waitMs = Math.max(askedMs, backoffMs(failures, BACKOFF, platformClock.random()));
      onWait?.(error, waitMs, failures);
      await clock.sleep(waitMs, signal);
      signal.throwIfAborted();
    }
  }
}

/** No whole answer, one that says later, or one of a server that has a fault of its own. */
export const isPassing = (error: unknown): boolean =>
  error instanceof OmnidError &&
  (error.code === "network" || error.code === "unreadable" || error.status === 429 || error.status >= 500);
