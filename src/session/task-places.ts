// The process's places for running Tasks: a cap that prompts are refused at, and that Tasks in a queue wait for.

import { ok, refuse } from "../result.js";
import type { ClaimTask } from "./session-deps.js";

export class TaskPlaces {
  readonly #max: number | undefined;
  /** Those that wait for a place, in order. */
  readonly #waiting = new Set<() => void>();
  /** Those to whom a place was given that they have not claimed yet: it is theirs and nobody else's. */
  readonly #given = new Set<() => void>();
  #taken = 0;
  #closed = false;

  /** @param max undefined for no cap */
  constructor(max: number | undefined) {
    this.#max = max;
  }

  get taken(): number {
    return this.#taken;
  }

  /** Gives no further place. */
  close(): void {
    this.#closed = true;
    this.#waiting.clear();
  }

  readonly claim = ((options: { force?: true; whenFree?: () => void } = {}) => {
    const { force, whenFree } = options;
    if (force !== true) {
      if (this.#closed) return refuse("shutting_down", "the server is shutting down");
      if (whenFree !== undefined && this.#given.delete(whenFree)) return ok(this.#place());
      if (this.#max !== undefined && this.#taken >= this.#max) {
        if (whenFree !== undefined) this.#waiting.add(whenFree);
        return refuse("too_many_tasks", `${this.#max} Tasks are running`);
      }
    }
    this.#taken += 1;
    return ok(this.#place());
  }) as ClaimTask;

  /** A place that is counted. @returns what gives it back, once */
  #place(): () => void {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#passOn();
    };
  }

  /** A place is free: it goes to the first of those who wait, and not to whoever asks in this very tick. */
  #passOn(): void {
    const [first] = this.#waiting;
    const isOver = this.#max !== undefined && this.#taken > this.#max;
    if (first === undefined || isOver) {
      this.#taken -= 1;
      return;
    }
    this.#waiting.delete(first);
    this.#given.add(first);
    queueMicrotask(() => {
      first();
      // It has nothing to run any more.
      if (this.#given.delete(first)) this.#passOn();
    });
  }
}
