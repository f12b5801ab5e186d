// Hands every step to every reader, one at a time: `offer` resolves when all of them have asked for the next one, which
// is when they are done with this. So there is no queue to grow: who follows slowly slows what feeds it, and the server's
// own buffer holds the rest.

interface Reader<T> {
  waiting: ((result: IteratorResult<T, void>) => void) | undefined;
  /** Says that what was handed over last is done with. */
  done: () => void;
  /** Offered and not handed over yet. One, or as many as offer at the same time. */
  held: { value: T; done: () => void }[];
}

export class Steps<T> {
  readonly #readers = new Set<Reader<T>>();
  #isOver = false;

  get isRead(): boolean {
    return this.#readers.size > 0;
  }

  async offer(value: T): Promise<void> {
    await Promise.all([...this.#readers].map((reader) => give(reader, value)));
  }

  /** Ends every reader; what they have not taken is dropped. */
  end(): void {
    this.#isOver = true;
    for (const reader of this.#readers) this.#leave(reader);
  }

  /** A reader from now on. It must be read or returned: until then nothing goes on. */
  read(): AsyncIterator<T, void, void> {
    const reader: Reader<T> = { waiting: undefined, done: () => {}, held: [] };
    if (!this.#isOver) this.#readers.add(reader);
    return {
      next: () => {
        reader.done();
        const first = reader.held.shift();
        if (first !== undefined) {
          reader.done = first.done;
          return Promise.resolve({ done: false, value: first.value });
        }
        if (!this.#readers.has(reader)) return Promise.resolve({ done: true, value: undefined });
        return new Promise((resolve) => {
          reader.waiting = resolve;
        });
      },
      return: () => {
        this.#leave(reader);
        return Promise.resolve({ done: true, value: undefined });
      },
    };
  }

  #leave(reader: Reader<T>): void {
    this.#readers.delete(reader);
    reader.done();
    for (const { done } of reader.held.splice(0)) done();
    reader.waiting?.({ done: true, value: undefined });
    reader.waiting = undefined;
  }
}

function give<T>(reader: Reader<T>, value: T): Promise<void> {
  return new Promise((done) => {
    const { waiting } = reader;
    if (waiting === undefined) return void reader.held.push({ value, done });
    reader.waiting = undefined;
    reader.done = done;
    waiting({ done: false, value });
  });
}
