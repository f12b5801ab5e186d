// How long a provider may say nothing.

import type { Clock } from "../clock.js";
import { type Failure, failure } from "./outcome.js";

/** Signs of life without an event (comments, blank lines, halves) count for this many times the silence limit. */
const LIFE_WITHOUT_EVENTS = 10;

/**
 * Times the provider's silence. It runs only while somebody waits for the provider, on one timer, which is set again when
 * it finds that there was life meanwhile: a token must not cost one of its own.
 */
export class Silence {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOver: () => void;
  /** Waiting time since the last event. */
  #waitedMs = 0;
  #waitingSince: number | undefined;
  #cancelTimer: (() => void) | undefined;
  #isOver = false;

  constructor(clock: Clock, limitMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onOver = onOver;
  }

  /** True once it was too long. `onOver` was called then. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Somebody waits from now on. */
  begin(): void {
    this.#waitingSince = this.#clock.monotonic();
    if (this.#cancelTimer === undefined) this.#arm(this.#mayLast());
  }

  /** Nobody waits any more: the provider moved. */
  end(): void {
    if (this.#waitingSince === undefined) return;
    this.#waitedMs += this.#clock.monotonic() - this.#waitingSince;
    this.#waitingSince = undefined;
  }

  sawEvent(): void {
    this.#waitedMs = 0;
  }

  /** Leaves no timer behind. */
  stop(): void {
    this.#waitingSince = undefined;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  failure(): Failure {
    const kept = this.#waitedMs >= LIFE_WITHOUT_EVENTS * this.#limitMs;
    return failure(
      "timeout",
      kept
        ? `the provider kept the connection alive for ${Math.round(this.#waitedMs)} ms without sending anything`
        : `the provider was silent for ${this.#limitMs} ms`,
    );
  }

  /** How long a wait that begins now may last, in ms. */
  #mayLast(): number {
    return Math.max(0, Math.min(this.#limitMs, LIFE_WITHOUT_EVENTS * this.#limitMs - this.#waitedMs));
  }

  #arm(ms: number): void {
    this.#cancelTimer = this.#clock.after(ms, this.#look);
  }

  readonly #look = (): void => {
    this.#cancelTimer = undefined;
    // The next wait sets it again.
    if (this.#waitingSince === undefined) return;
    const leftMs = this.#waitingSince + this.#mayLast() - this.#clock.monotonic();
    if (leftMs > 0) {
      this.#arm(leftMs);
      return;
    }
    this.#isOver = true;
    this.#onOver();
  };
}
