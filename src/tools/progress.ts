// Life signs of an output that is being held back: at most two a second, and the last state is never lost.

import type { Clock } from "../clock.js";

const INTERVAL_MS = 500;

/** Calls `report` for `touch`es, at most twice a second: at once, or when the interval since the last one is over. */
export class Progress {
  readonly #clock: Clock;
  readonly #report: () => void;
  #lastAt = Number.NEGATIVE_INFINITY;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, report: () => void) {
    this.#clock = clock;
    this.#report = report;
  }

  touch(): void {
    if (this.#cancel !== undefined) return;
    const wait = this.#lastAt + INTERVAL_MS - this.#clock.monotonic();
    if (wait <= 0) {
      this.#fire();
      return;
    }
    this.#cancel = this.#clock.after(wait, () => {
      this.#cancel = undefined;
      this.#fire();
    });
  }

  /** Nothing is reported after this. */
  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #fire(): void {
    this.#lastAt = this.#clock.monotonic();
    this.#report();
  }
}
