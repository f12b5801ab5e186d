// Those who want to hear of changes. They are the caller's code: one that throws keeps neither the others from hearing nor
// what they listen to from going on.

/** Given what the caller's own function threw. */
export type OnError = (error: unknown) => void;

export class Listeners {
  readonly #listeners = new Set<() => void>();
  readonly #onError: OnError | undefined;

  constructor(onError: OnError | undefined) {
    this.#onError = onError;
  }

  /** @returns how to stop */
  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Never throws. */
  tell(): void {
    for (const listener of this.#listeners) guarded(listener, this.#onError);
  }

  clear(): void {
    this.#listeners.clear();
  }
}

/** Calls the caller's `run`; never throws. Without `onError` the console has it: thrown later, it would end a process. */
export function guarded(run: () => void, onError: OnError | undefined): void {
  try {
    run();
  } catch (error) {
    report(error, onError);
  }
}

function report(error: unknown, onError: OnError | undefined): void {
  try {
    if (onError === undefined) console.error(error);
    else onError(error);
  } catch (other) {
    console.error(other);
  }
}
