// The wait before a further try of a Request: shown in `task_state.retry`, and ended early by whoever is impatient.

import type { Clock } from "../clock.js";
import type { TaskDeps } from "../engine/run.js";
import type { RetryView } from "./task-state.js";

export class RetryWait {
  readonly #clock: Clock;
  readonly #onChange: () => void;
  #current: { view: RetryView; skip: AbortController } | undefined;

  constructor(clock: Clock, onChange: () => void) {
    this.#clock = clock;
    this.#onChange = onChange;
  }

  get view(): RetryView | undefined {
    return this.#current?.view;
  }

  readonly wait: TaskDeps["waitToRetry"] = async ({ attempt, at, status }, signal) => {
    const skip = new AbortController();
    this.#current = { view: { attempt, retryAt: new Date(at).toISOString(), status }, skip };
    this.#onChange();
    await this.#clock.sleep(Math.max(0, at - this.#clock.now()), AbortSignal.any([signal, skip.signal]));
    this.#current = undefined;
    this.#onChange();
  };

  /** Ends the wait at once; no try is used up. @returns false when there is none. */
  skip(): boolean {
    const isWaiting = this.#current !== undefined && !this.#current.skip.signal.aborted;
    this.#current?.skip.abort();
    return isWaiting;
  }
}
