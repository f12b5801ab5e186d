import type { Clock } from "../../src/clock.js";
import { AT } from "./support.js";

interface Timer {
  at: number;
  run: () => void;
}

/** Time that moves when a test says so. */
export class ManualClock implements Clock {
  #now = 0;
  #set = 0;
  #timers = new Set<Timer>();
  #onTimer: (() => void)[] = [];

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.now();
  }

  iso(): string {
    return AT;
  }

  async sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return;
    await new Promise<void>((resolve) => {
      const done = () => {
        cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.after(ms, done);
      signal?.addEventListener("abort", done);
    });
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#timers.add(timer);
    this.#set++;
    for (const wake of this.#onTimer.splice(0)) wake();
    return () => this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** How many timers have been set since the beginning. */
  get everSet(): number {
    return this.#set;
  }

  /** Resolves when at least `count` timers are set. */
  async waiting(count = 1): Promise<void> {
    while (this.#timers.size < count) await new Promise<void>((resolve) => this.#onTimer.push(resolve));
  }

  /** Resolves when `count` timers have been set since the beginning. */
  async timersSet(count: number): Promise<void> {
    while (this.#set < count) await new Promise<void>((resolve) => this.#onTimer.push(resolve));
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }
}
