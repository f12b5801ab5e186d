// The body of an answer while it comes: its bytes, pulled, and the silence between them.

import type { Readable } from "node:stream";
import type { Clock } from "../clock.js";
import { type Failure, failure } from "./outcome.js";

/** Signs of life without an event (comments, blank lines, halves) count for this many times the silence limit. */
const LIFE_WITHOUT_EVENTS = 10;
const READ_AHEAD_BYTES = 256 * 1024;
/** How long a finished answer may take to end its body, so that the connection can be used again. */
const LINGER_MS = 1000;

/** Times the provider's silence. It runs only while somebody waits for the provider. */
export class Silence {
  readonly #clock: Clock;
  readonly #limitMs: number;
  readonly #onOver: () => void;
  /** Waiting time since the last event. */
  #waitedMs = 0;
  #over = false;

  constructor(clock: Clock, limitMs: number, onOver: () => void) {
    this.#clock = clock;
    this.#limitMs = limitMs;
    this.#onOver = onOver;
  }

  get isOver(): boolean {
    return this.#over;
  }

  async during<T>(wait: Promise<T>): Promise<T> {
    const from = this.#clock.now();
    const leftMs = Math.min(this.#limitMs, LIFE_WITHOUT_EVENTS * this.#limitMs - this.#waitedMs);
    const cancel = this.#clock.after(Math.max(0, leftMs), () => {
      this.#over = true;
      this.#onOver();
    });
    try {
      return await wait;
    } finally {
      cancel();
      this.#waitedMs += this.#clock.now() - from;
    }
  }

  sawEvent(): void {
    this.#waitedMs = 0;
  }

  failure(): Failure {
    const kept = this.#waitedMs >= LIFE_WITHOUT_EVENTS * this.#limitMs;
    return failure(
      "timeout",
      kept
        ? `the provider kept the connection alive for ${this.#waitedMs} ms without sending anything`
        : `the provider was silent for ${this.#limitMs} ms`,
    );
  }
}

/**
 * The body of an answer, pulled. Bytes that arrived before a reset are still given out; the stream itself would drop
 * them. Bound: READ_AHEAD_BYTES plus what the stream holds, then the socket is no longer read.
 */
export class Body {
  readonly #stream: Readable;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #ended = false;
  #isReleased = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(stream: Readable) {
    this.#stream = stream;
    stream.on("data", (chunk: Buffer) => {
      this.#bytes += chunk.length;
      if (this.#isReleased) {
        if (this.#bytes > READ_AHEAD_BYTES) stream.destroy();
        return;
      }
      this.#chunks.push(chunk);
      if (this.#bytes >= READ_AHEAD_BYTES) stream.pause();
      this.#wake?.();
    });
    stream.on("end", () => this.#finish());
    stream.on("error", (error: Error) => this.#finish(error));
    stream.on("close", () => this.#finish(new Error("the connection was closed")));
  }

  /** Everything that came since the last call, or undefined at the end. Throws what broke the connection. */
  async next(): Promise<Buffer | undefined> {
    while (this.#chunks.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#chunks.length > 0) {
      const [first] = this.#chunks;
      const all = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
      this.#chunks = [];
      this.#bytes = 0;
      if (!this.#ended) this.#stream.resume();
      return all;
    }
    if (this.#error !== undefined) throw this.#error;
    return undefined;
  }

  /** Closes the socket, or gives an answer that is all but over a moment to end, so that the connection can be kept. */
  release(clock: Clock, atOnce: boolean): void {
    if (this.#ended) return;
    if (atOnce) {
      this.#stream.destroy();
      return;
    }
    this.#isReleased = true;
    this.#chunks = [];
    this.#stream.resume();
    const cancel = clock.after(LINGER_MS, () => this.#stream.destroy());
    this.#stream.once("close", cancel);
  }

  #finish(error?: Error): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#error = error;
    this.#wake?.();
  }
}
