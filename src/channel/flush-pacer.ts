// When a Channel delivers what was published: at the end of the loop's turn, unless the flush before it was costly. Then
// the Channel rests for as long as that flush took, and what is published meanwhile goes out in one write for each reader.
//
// So delivery takes at most about half of the event loop however many readers there are, and costs fewer writes the faster
// the producer is; the price is a delay that no reader could tell from the flush itself. A stream that leaves more time
// between two messages than a flush takes is never held.

/** Decides when the flushes of one Channel come. */
export interface FlushPace {
  /** Runs `flush` once, when the present turn is over or later. */
  schedule(flush: () => void): void;
  /** Runs `flush` now, and looks at what it takes. */
  run(flush: () => void): void;
}

/** Time, as a pace needs it. */
export interface PaceClock {
  /** Milliseconds, with fractions, since some instant; never goes back. */
  monotonic(): number;
  after(ms: number, run: () => void): unknown;
}

/** A flush below this is nobody's trouble: a few dozen sockets. */
const CHEAP_MS = 0.2;
/** The longest rest: a reader sees a message this much later at most. */
const MAX_REST_MS = 10;

/** A flush in each turn in which something was published. */
export const EACH_TURN: FlushPace = { schedule: setImmediate, run: (flush) => flush() };

export class FlushPacer implements FlushPace {
  readonly #clock: PaceClock;
  #restUntil = Number.NEGATIVE_INFINITY;

  constructor(clock: PaceClock) {
    this.#clock = clock;
  }

  schedule(flush: () => void): void {
    const restMs = this.#restUntil - this.#clock.monotonic();
    if (restMs <= 0) setImmediate(flush);
    else this.#clock.after(Math.max(1, Math.round(restMs)), flush);
  }

  run(flush: () => void): void {
    const startedAt = this.#clock.monotonic();
    flush();
    const endedAt = this.#clock.monotonic();
    const costMs = endedAt - startedAt;
    if (costMs >= CHEAP_MS) this.#restUntil = endedAt + Math.min(costMs, MAX_REST_MS);
  }
}
