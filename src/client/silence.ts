// A connection may be dead without anyone having said so. This ends it when nothing is heard for too long, counting only
// the time in which something is awaited, so that a slow reader is not taken for a silent server.

import type { ClientClock } from "./client-clock.js";
import { OmnidError } from "./omnid-error.js";

export class Silence {
  readonly #clock: ClientClock;
  readonly #ms: number;
  readonly #end: (reason: OmnidError) => void;

  /** @param end is given the error that the connection ends with */
  constructor(clock: ClientClock, ms: number, end: (reason: OmnidError) => void) {
    this.#clock = clock;
    this.#ms = ms;
    this.#end = end;
  }

  /** Awaits one answer of the other side. */
  async during<T>(answer: Promise<T>): Promise<T> {
    const cancel = this.#clock.after(this.#ms, () => {
      this.#end(new OmnidError("network", `nothing was heard for ${Math.round(this.#ms / 1000)} s`));
    });
    try {
      return await answer;
    } finally {
      cancel();
    }
  }
}
