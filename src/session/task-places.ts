// The process's places for running Tasks: a cap that prompts are refused at, and that Tasks in a queue wait for.

import { ok, refuse } from "../result.js";
import type { ClaimTask } from "./session-deps.js";

export class TaskPlaces {
  readonly #max: number | undefined;
  /** Those that wait for a place, in order. */
  readonly #waiting = new Set<() => void>();
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
    if (options.force !== true) {
      if (this.#closed) return refuse("shutting_down", "the server is shutting down");
      if (this.#max !== undefined && this.#taken >= this.#max) {
        if (options.whenFree !== undefined) this.#waiting.add(options.whenFree);
        return refuse("too_many_tasks", `${this.#max} Tasks are running`);
      }
    }
    this.#taken += 1;
    let given = true;
    return ok(() => {
      if (!given) return;
      given = false;
      this.#taken -= 1;
      this.#callWaiting();
    });
  }) as ClaimTask;

  /** A place is free: those who wait try for it in their order; who gets none waits on. */
  #callWaiting(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const whenFree of waiting) queueMicrotask(whenFree);
  }
}
