// `fetch` for an MCP server that is spoken to over HTTP: what comes back is bounded in size, rate and number, and what
// shows that the server is gone is told. The SDK's transport itself reads whatever comes.

import { ReadableStream } from "node:stream/web";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Clock } from "../clock.js";
import { MAX_MESSAGE_BYTES, MESSAGE_COST, RATE } from "./mcp-limits.js";
import { Throttle } from "./throttle.js";

/** Answers that a server may hold open at once. One that never ends cancelled calls is connected to anew. */
const MAX_OPEN = 256;
/** The SDK opens a stream that broke again as soon as the server likes. */
const STREAM_RATE = { burst: 3, perSecond: 0.5 };
const LINES_PER_TURN = 64;
const NEWLINE = 10;
const CARRIAGE_RETURN = 13;

export interface GuardOptions {
  clock: Clock;
  /** The server is gone, or breaks the rules. */
  onLost(reason: string): void;
  /** It may be gone. */
  onDoubt(): void;
  /** Aborts when the connection is closed. */
  signal: AbortSignal;
}

/** @returns a `fetch` that belongs to one connection. */
export function guardedFetch({ clock, onLost, onDoubt, signal }: GuardOptions): FetchLike {
  const throttle = new Throttle(clock, RATE);
  const streams = new Throttle(clock, STREAM_RATE);
  let open = 0;
  return async (url, init) => {
    const isStream = (init?.method ?? "GET") === "GET";
    if (isStream) await streams.take(1, signal);
    if (open >= MAX_OPEN) {
      onLost(`it holds ${open} answers open`);
      throw new Error("too many answers are open");
    }
    open += 1;
    let isOpen = true;
    const release = () => {
      if (isOpen) open -= 1;
      isOpen = false;
    };
    try {
      const response = await fetch(url, init);
      if (response.body === null) {
        release();
        return response;
      }
      const { status, statusText, headers } = response;
      const isEvents = /^text\/event-stream\b/i.test(headers.get("content-type") ?? "");
      const pieces = bounded(response.body as ReadableStream<Uint8Array>, { isEvents, throttle, signal, onLost });
      return new Response(streamOf(pieces, release) as never, { status, statusText, headers });
    } catch (error) {
      release();
      if (init?.signal?.aborted !== true) {
        if (isStream) onDoubt();
        // The request that failed is answered with its own error first: only it knows that it did not arrive.
        else setImmediate(() => onLost(unreachable(error)));
      }
      throw error;
    }
  };
}

/** Why a request of ours has no answer. */
export const unreachable = (error: unknown): string => `it cannot be reached: ${networkFault(error)}`;

/** What the network said, without the address. */
export function networkFault(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  if (typeof cause !== "object" || cause === null) return "unknown error";
  if ("code" in cause && typeof cause.code === "string") return cause.code;
  return cause instanceof Error ? cause.name : "unknown error";
}

interface Bounds {
  isEvents: boolean;
  throttle: Throttle;
  signal: AbortSignal;
  onLost(reason: string): void;
}

async function* bounded(body: ReadableStream<Uint8Array>, bounds: Bounds): AsyncGenerator<Uint8Array, void, void> {
  const { isEvents, throttle, signal, onLost } = bounds;
  const refuse = (reason: string) => {
    onLost(reason);
    return new Error(reason);
  };
  const events = new EventSizes();
  let total = 0;
  for await (const chunk of body) {
    // Batches left the protocol; a large one would be worked through in one go.
    if (!isEvents && total === 0 && firstVisible(chunk) === 0x5b) throw refuse("it answered with a batch");
    total += chunk.length;
    for (const { piece, lines } of isEvents ? events.pieces(chunk) : [{ piece: chunk, lines: 0 }]) {
      if ((isEvents ? events.largest : total) > MAX_MESSAGE_BYTES) {
        throw refuse(`it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`);
      }
      // An event has two lines at least.
      await throttle.take(piece.length + (lines * MESSAGE_COST) / 2, signal);
      if (lines >= LINES_PER_TURN) await new Promise((resolve) => setImmediate(resolve));
      yield piece;
    }
  }
}

function firstVisible(chunk: Uint8Array): number | undefined {
  return chunk.find((byte) => byte > 0x20);
}

/** Cuts an event stream so that few events are worked on in one go, and measures the events. */
class EventSizes {
  /** The size of the largest event so far. */
  largest = 0;
  #event = 0;
  #line = 0;

  *pieces(chunk: Uint8Array): Generator<{ piece: Uint8Array; lines: number }, void, void> {
    let begin = 0;
    let from = 0;
    let lines = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const length = end - from - (end > from && chunk[end - 1] === CARRIAGE_RETURN ? 1 : 0);
      this.#grow(length);
      if (this.#line === 0) this.#event = 0;
      this.#line = 0;
      from = end + 1;
      lines += 1;
      if (lines < LINES_PER_TURN) continue;
      yield { piece: chunk.subarray(begin, from), lines };
      begin = from;
      lines = 0;
    }
    this.#grow(chunk.length - from);
    if (begin < chunk.length) yield { piece: chunk.subarray(begin), lines };
  }

  #grow(length: number): void {
    this.#line += length;
    this.#event += length;
    this.largest = Math.max(this.largest, this.#event);
  }
}

/** A stream that asks for the next piece when it is read, not before. `onEnd` is called once or more at its end. */
function streamOf(pieces: AsyncGenerator<Uint8Array, void, void>, onEnd: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next();
          if (done !== true) return controller.enqueue(value);
          onEnd();
          controller.close();
        } catch (error) {
          onEnd();
          throw error;
        }
      },
      async cancel() {
        onEnd();
        await pieces.return();
      },
    },
    { highWaterMark: 0 },
  );
}
