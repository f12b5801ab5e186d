// The merge point of a Task. The model stream, the approvals and every tool are producers; one consumer commits what
// they say in arrival order. `emit` returns when the messages are committed, so each producer has one batch in flight
// and "the decision is recorded before the tool starts" is `await emit(decision)`.

import type { OmniMessage } from "../protocol/message.js";

/** Commits a batch in order; `undefined` when nothing in it had to be waited for. */
export type Commit = (batch: readonly OmniMessage[]) => Promise<void> | undefined;

/** What a producer calls; wait for it when it returns a promise. Rejects once the record cannot be written. */
export type Emit = (messages: readonly OmniMessage[]) => Promise<void> | undefined;

interface Waiting {
  messages: readonly OmniMessage[];
  resolve: () => void;
  reject: (error: unknown) => void;
}

/**
 * Merges producers into one total order. What arrived while a commit was under way goes into the next one together, so
 * several producers share a write. After a failed commit every emit rejects with its error: a later message must not
 * be recorded where an earlier one is missing. Bound: one batch a producer.
 */
export class MergeQueue {
  readonly #commit: Commit;
  #waiting: Waiting[] = [];
  #draining = false;
  #failure: { error: unknown } | undefined;
  readonly #failed = new AbortController();

  constructor(commit: Commit) {
    this.#commit = commit;
  }

  /** Aborts with the error of the failed commit: for producers that have nothing to say, and wait. */
  get failed(): AbortSignal {
    return this.#failed.signal;
  }

  readonly emit: Emit = (messages) => {
    if (messages.length === 0) return undefined;
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error);
    if (!this.#draining) return this.#direct(messages);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ messages, resolve, reject });
    });
  };

  /** Nothing is under way: fragments, which nothing waits for, pass without a promise. */
  #direct(messages: readonly OmniMessage[]): Promise<void> | undefined {
    const pending = this.#commit(messages);
    if (pending === undefined) return undefined;
    this.#draining = true;
    return pending.then(
      () => this.#next(),
      (error: unknown) => {
        this.#fail(error);
        throw error;
      },
    );
  }

  #next(): void {
    if (this.#waiting.length === 0) {
      this.#draining = false;
      return;
    }
    void this.#drain();
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#waiting;
      this.#waiting = [];
      try {
        const pending = this.#commit(group.flatMap((entry) => entry.messages));
        if (pending !== undefined) await pending;
      } catch (error) {
        for (const entry of group) entry.reject(error);
        this.#fail(error);
        return;
      }
      for (const entry of group) entry.resolve();
    }
    this.#draining = false;
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    this.#draining = false;
    const group = this.#waiting;
    this.#waiting = [];
    for (const entry of group) entry.reject(error);
    this.#failed.abort(error);
  }
}
