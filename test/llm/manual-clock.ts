import type { Clock } from "../../src/clock.js";
import { AT } from "./support.js";

interface Timer {
  at: number;
  run: () => void;
}

/** Time that moves when a test says so. */
export class ManualClock implements Clock {
  #now = 0;
  #setBackMs = 0;
  #looks = 0;
  #timers = new Set<Timer>();
  #onChange: (() => void)[] = [];

  now(): number {
    return this.monotonic() - this.#setBackMs;
  }

  monotonic(): number {
    this.#looks++;
    this.#changed();
    return this.#now;
  }

  /** Somebody sets the machine's clock. */
  setBack(ms: number): void {
    this.#setBackMs += ms;
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
    this.#changed();
    return () => this.#timers.delete(timer);
  }

  get pending(): number {
    return this.#timers.size;
  }

  /** How often somebody asked for the time since the beginning: twice for each wait that has ended, once for one that lasts. */
  get looks(): number {
    return this.#looks;
  }

  /** Resolves when at least `count` timers are set. */
  async waiting(count = 1): Promise<void> {
    while (this.#timers.size < count) await new Promise<void>((resolve) => this.#onChange.push(resolve));
  }

  /** Resolves when somebody asked for the time `count` times since the beginning. */
  async looked(count: number): Promise<void> {
    while (this.#looks < count) await new Promise<void>((resolve) => this.#onChange.push(resolve));
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.run();
    }
  }

  #changed(): void {
    for (const wake of this.#onChange.splice(0)) wake();
  }
}
