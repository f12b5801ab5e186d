// How long a provider may say nothing.

import type { Clock } from "../clock.js";
import { type Failure, failure } from "./outcome.js";

/** Signs of life without an event (comments, blank lines, halves) count for this many times the silence limit. */
const LIFE_WITHOUT_EVENTS = 10;

/** Times the provider's silence. It runs only while somebody waits for the provider. */
export class Silence {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOver: () => void;
  /** Waiting time since the last event. */
  #waitedMs = 0;
  #over = false;

  constructor(clock: Clock, limitMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onOver = onOver;
  }

  get isOver(): boolean {
    return this.#over;
  }

  async during<T>(wait: Promise<T>): Promise<T> {
    const from = this.#clock.now();
    const leftMs = Math.min(this.#limitMs, LIFE_WITHOUT_EVENTS * this.#limitMs - this.#waitedMs);
    const cancel = this.#clock.after(Math.max(0, leftMs), () => {
      this.#over = true;
      this.#onOver();
    });
    try {
      return await wait;
    } finally {
      cancel();
      this.#waitedMs += this.#clock.now() - from;
    }
  }

  sawEvent(): void {
    this.#waitedMs = 0;
  }

  failure(): Failure {
    const kept = this.#waitedMs >= LIFE_WITHOUT_EVENTS * this.#limitMs;
    return failure(
      "timeout",
      kept
        ? `the provider kept the connection alive for ${this.#waitedMs} ms without sending anything`
        : `the provider was silent for ${this.#limitMs} ms`,
    );
  }
}
