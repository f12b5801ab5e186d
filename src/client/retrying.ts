// Keeps something connected for as long as it is wanted: tries, waits longer after each failure, with jitter, so that
// many readers do not come back in the same moment, and is woken by whoever knows better.

import type { ClientClock } from "./client-clock.js";
import { OmnidError } from "./omnid-error.js";

export interface Backoff {
  /** The pause after the first failure. */
  baseMs: number;
  /** The longest pause. */
  maxMs: number;
}

export const BACKOFF: Backoff = { baseMs: 500, maxMs: 15_000 };
/** The longest wait that the other side can ask for. Its clock, or ours, may be wrong by years. */
const MAX_ASKED_MS = 300_000;
/** A connection that lived this long was a good one. */
const GOOD_MS = 5_000;

/** How a try ended. `again` goes on at once, `over` never. */
export type Outcome =
  | { next: "again" }
  | { next: "over" }
  /** `minMs`: what the other side asked for; counts up to five minutes. */
  | { next: "wait"; error?: unknown; minMs?: number };

export interface Wait {
  /** Failures in a row, from 1. */
  attempt: number;
  retryAt: number;
  error: unknown;
}

export class Retrying {
  readonly #clock: ClientClock;
  readonly #backoff: Backoff;
  readonly #signal: AbortSignal;
  readonly #wakes = new Set<() => void>();

  constructor(clock: ClientClock, signal: AbortSignal, backoff: Backoff = BACKOFF) {
    this.#clock = clock;
    this.#signal = signal;
    this.#backoff = backoff;
  }

  /** Ends the present wait, if there is one. */
  readonly retryNow = (): void => {
    for (const wake of this.#wakes) wake();
  };

  /** Runs `attempt` again and again. Never rejects: what `attempt` throws is a failure. */
  async run(attempt: () => Promise<Outcome>, onWait: (wait: Wait) => void): Promise<void> {
    let failures = 0;
    while (!this.#signal.aborted) {
      const beganAt = this.#clock.now();
      const outcome = await attempt().catch((error: unknown): Outcome => ({ next: "wait", error }));
      if (outcome.next === "over" || this.#signal.aborted) return;
      if (outcome.next === "again") continue;
      failures = this.#clock.now() - beganAt > GOOD_MS ? 1 : failures + 1;
      const asked = Math.max(heeded(outcome.minMs), heeded(retryAfterMs(outcome.error)));
      const ms = Math.max(asked, backoffMs(failures, this.#backoff, this.#clock.random()));
      onWait({ attempt: failures, retryAt: this.#clock.now() + ms, error: outcome.error });
      await this.pause(ms);
    }
  }

  /** Resolves after `ms`, on `retryNow`, or when all is over. */
  pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        cancel();
        this.#wakes.delete(done);
        this.#signal.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.#clock.after(ms, done);
      this.#wakes.add(done);
      this.#signal.addEventListener("abort", done, { once: true });
      if (this.#signal.aborted) done();
    });
  }
}

/** Doubling from `baseMs` to `maxMs`, between half and all of it. */
export function backoffMs(failures: number, { baseMs, maxMs }: Backoff, random: number): number {
  return Math.round(Math.min(maxMs, baseMs * 2 ** Math.min(failures - 1, 20)) * (0.5 + random / 2));
}

const retryAfterMs = (error: unknown): number => (error instanceof OmnidError ? (error.retryAfter ?? 0) * 1000 : 0);

/** What was asked for is another program's word: what is no number asks for nothing. */
const heeded = (askedMs: number | undefined): number =>
  Number.isFinite(askedMs) ? Math.min(Number(askedMs), MAX_ASKED_MS) : 0;
