// One answer as undici hands it over: its head, then its bytes, pulled. A handler of the dispatcher rather than a stream:
// between the socket and the decoder of a token nothing else has to run.

import type { Clock } from "../clock.js";

const READ_AHEAD_BYTES = 256 * 1024;
/** How long a finished answer may take to end its body, so that the connection can be used again. */
const LINGER_MS = 1000;

/** What a handler may do to its connection. */
export interface Controller {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

export interface Head {
  readonly statusCode: number;
  readonly headers: Record<string, string | string[] | undefined>;
}

/**
 * Bytes that arrived before a reset are still given out. Bound: READ_AHEAD_BYTES and one read of the socket, which is not
 * read beyond that.
 */
export class HttpAnswer {
  #controller: Controller | undefined;
  #head: Head | undefined;
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isPaused = false;
  #isEnded = false;
  #isReleased = false;
  #error: Error | undefined;
  #wake: (() => void) | undefined;
  #cancelLinger: (() => void) | undefined;

  /** Undefined until it has come. @throws what broke the connection before it came. */
  takeHead(): Head | undefined {
    if (this.#head === undefined && this.#isEnded) throw this.#error ?? new Error("the answer has no head");
    return this.#head;
  }

  /** Resolves when something comes; undefined when something is here to take already. One waits at a time. */
  moved(): Promise<void> | undefined {
    if (this.#chunks.length > 0 || this.#isEnded) return undefined;
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  /** Everything that came since the last call, or undefined at the end. @throws what broke the connection. */
  take(): Buffer | undefined {
    if (this.#chunks.length > 0) {
      const [first] = this.#chunks;
      const all = this.#chunks.length === 1 && first !== undefined ? first : Buffer.concat(this.#chunks);
      this.#chunks = [];
      this.#bytes = 0;
      this.#goOn();
      return all;
    }
    if (this.#error !== undefined) throw this.#error;
    return undefined;
  }

  /** Gives it up, also one that has not begun. */
  cancel(): void {
    const reason = new Error("the connection was closed");
    if (!this.#isEnded) this.#controller?.abort(reason);
    this.#finish(reason);
  }

  /** Closes the socket, or gives an answer that is all but over a moment to end, so that the connection can be kept. */
  release(clock: Clock, atOnce: boolean): void {
    if (this.#isEnded) return;
    if (atOnce || this.#head === undefined) {
      this.cancel();
      return;
    }
    this.#isReleased = true;
    this.#chunks = [];
    this.#bytes = 0;
    this.#cancelLinger = clock.after(LINGER_MS, () => this.cancel());
    this.#goOn();
  }

  // --- called by undici ----------------------------------------------------------------------------------------------

  onRequestStart(controller: Controller): void {
    this.#controller = controller;
    if (this.#isEnded) controller.abort(this.#error ?? new Error("nobody waits for the answer"));
  }

  onResponseStart(_controller: Controller, statusCode: number, headers: Head["headers"]): void {
    if (statusCode < 200) return;
    this.#head = { statusCode, headers };
    this.#wake?.();
  }

  onResponseData(controller: Controller, chunk: Buffer): void {
    if (this.#isEnded) return;
    this.#bytes += chunk.length;
    if (this.#isReleased) {
      if (this.#bytes > READ_AHEAD_BYTES) this.cancel();
      return;
    }
    this.#chunks.push(chunk);
    if (this.#bytes >= READ_AHEAD_BYTES) {
      this.#isPaused = true;
      controller.pause();
    }
    this.#wake?.();
  }

  onResponseEnd(): void {
    this.#finish();
  }

  onResponseError(_controller: Controller, error: Error): void {
    this.#finish(error);
  }

  #goOn(): void {
    if (!this.#isPaused) return;
    this.#isPaused = false;
    if (!this.#isEnded) this.#controller?.resume();
  }

  #finish(error?: Error): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#error = error;
    this.#cancelLinger?.();
    this.#wake?.();
  }
}
