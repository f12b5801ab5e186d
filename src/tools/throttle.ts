// A bound on how fast something is taken in, so that a peer that floods waits and this process does not work for it.

import type { Clock } from "../clock.js";

export interface ThrottleOptions {
  /** What may come at once, in units of cost. */
  burst: number;
  perSecond: number;
}

/** A bucket that fills with time. It may be overdrawn by one take; the next ones wait until that is paid back. */
export class Throttle {
  readonly #clock: Clock;
  readonly #options: ThrottleOptions;
  #level: number;
  #at: number;

  constructor(clock: Clock, options: ThrottleOptions) {
    this.#clock = clock;
    this.#options = options;
    this.#level = options.burst;
    this.#at = clock.monotonic();
  }

  /** @returns undefined when the caller may go on; otherwise a promise that resolves when it may, or on abort. */
  take(cost: number, signal: AbortSignal): Promise<void> | undefined {
    const { burst, perSecond } = this.#options;
    const now = this.#clock.monotonic();
    this.#level = Math.min(burst, this.#level + ((now - this.#at) * perSecond) / 1_000) - cost;
    this.#at = now;
    return this.#level >= 0 ? undefined : this.#clock.sleep(Math.ceil((-this.#level * 1_000) / perSecond), signal);
  }
}
