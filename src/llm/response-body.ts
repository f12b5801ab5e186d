// The body of an answer while it comes: its bytes, pulled.

import type { Readable } from "node:stream";
import type { Clock } from "../clock.js";

const READ_AHEAD_BYTES = 256 * 1024;
/** How long a finished answer may take to end its body, so that the connection can be used again. */
const LINGER_MS = 1000;

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
