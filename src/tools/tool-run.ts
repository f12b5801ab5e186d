// One run of a tool under an abort signal. The tool is pulled, so it is never ahead of its reader by more than a step;
// the abort is pushed, so it reaches the tool at once even while the reader is busy elsewhere.

import type { Clock } from "../clock.js";
import type { Tool, ToolContext, ToolOutput } from "./tool.js";

const DEFAULT_GRACE_MS = 200;
// A tool that never waits would keep the event loop to itself, timers and aborts included.
const STEPS_PER_TURN = 64;

export type Step =
  | { kind: "text"; text: string }
  | { kind: "end"; output: ToolOutput }
  | { kind: "threw"; error: unknown }
  | { kind: "aborted" };

/** Own it: call `dispose` in a `finally`. */
export class ToolRun {
  readonly #run: AsyncGenerator<string, ToolOutput, void>;
  readonly #own = new AbortController();
  readonly #signal: AbortSignal;
  readonly #clock: Clock;
  readonly #graceMs: number;
  readonly #onAbort: () => void;
  #wake: (() => void) | undefined;
  #pending: Promise<IteratorResult<string, ToolOutput>> | undefined;
  #ended = false;
  #steps = 0;

  constructor(tool: Tool, args: unknown, options: ToolContext) {
    const { signal, clock } = options;
    this.#signal = signal;
    this.#clock = clock;
    this.#graceMs = tool.graceMs ?? DEFAULT_GRACE_MS;
    this.#run = tool.run(args, { ...options, signal: this.#own.signal });
    this.#onAbort = () => {
      this.#own.abort(signal.reason);
      this.#wake?.();
    };
    signal.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The next thing the tool did, or `aborted` as soon as the signal aborts, whatever the tool does. Never rejects. */
  async next(): Promise<Step> {
    if (++this.#steps % STEPS_PER_TURN === 0) await breathe();
    if (this.#signal.aborted) return { kind: "aborted" };
    return new Promise((resolve) => {
      this.#wake = () => resolve({ kind: "aborted" });
      this.#advance().then(
        (step) => resolve(step.done ? { kind: "end", output: step.value } : { kind: "text", text: step.value }),
        (error: unknown) => resolve({ kind: "threw", error }),
      );
    });
  }

  /** After an abort: waits until the tool has ended, at most for its grace. What it still says is dropped. */
  settle(): Promise<void> {
    return new Promise((resolve) => {
      let over = false;
      const finish = () => {
        over = true;
        cancel();
        resolve();
      };
      const cancel = this.#clock.after(this.#graceMs, finish);
      void this.#drain(() => over).then(finish);
    });
  }

  dispose(): void {
    this.#signal.removeEventListener("abort", this.#onAbort);
    this.#own.abort();
    // Runs the tool's `finally` now, or once what it waits for comes; nobody is left to tell if that throws.
    if (!this.#ended) void this.#run.return({}).catch(() => {});
  }

  /** One pull at a time: a pull that an abort overtook is still the one to wait for. */
  #advance(): Promise<IteratorResult<string, ToolOutput>> {
    this.#pending ??= this.#run.next().then(
      (step) => {
        this.#pending = undefined;
        this.#ended = step.done === true;
        return step;
      },
      (error: unknown) => {
        this.#pending = undefined;
        this.#ended = true;
        throw error;
      },
    );
    return this.#pending;
  }

  async #drain(isOver: () => boolean): Promise<void> {
    try {
      while (!isOver() && (await this.#advance()).done !== true) {
        if (++this.#steps % STEPS_PER_TURN === 0) await breathe();
      }
    } catch {
      // It was told to stop and did, in its own way.
    }
  }
}

const breathe = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
