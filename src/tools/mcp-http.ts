// `fetch` for an MCP server that is spoken to over HTTP: what comes back is bounded in size, rate and number, and what
// shows that the server is gone is told. The SDK's transport itself reads whatever comes.
//
// Invariant: nothing is asked of another origin than the configured one, so the configured headers go nowhere else. The
// SDK follows redirects within it by itself.

import { ReadableStream } from "node:stream/web";
import type { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Clock } from "../clock.js";
import { HeldBytes } from "./held-bytes.js";
import { dataOf, EventCutter } from "./mcp-events.js";
import { MAX_MESSAGE_BYTES, MESSAGE_COST, RATE } from "./mcp-limits.js";
import type { MessageGuard } from "./mcp-message.js";
import { Throttle } from "./throttle.js";

/** Answers that a server may hold open at once. One that never ends cancelled calls is connected to anew. */
const MAX_OPEN = 256;
/** The SDK opens a stream that broke again as soon as the server likes. */
const STREAM_RATE = { burst: 3, perSecond: 0.5 };
const LINES_PER_TURN = 64;

export interface GuardOptions {
  clock: Clock;
  guard: MessageGuard;
  /** The server is gone, or breaks the rules. */
  onLost(reason: string): void;
  /** It may be gone. */
  onDoubt(): void;
  /** Aborts when the connection is closed. */
  signal: AbortSignal;
}

/** The SDK's transport to an address, over a `fetch` that belongs to it alone. */
export async function httpTransport(
  address: string,
  headers: Readonly<Record<string, string>>,
  options: GuardOptions,
): Promise<StreamableHTTPClientTransport> {
  const sdk = await import("@modelcontextprotocol/sdk/client/streamableHttp.js");
  const url = new URL(address);
  const transport = new sdk.StreamableHTTPClientTransport(url, {
    requestInit: { headers: { ...headers } },
    fetch: guardedFetch(url.origin, options),
  });
  const send = transport.send.bind(transport);
  transport.send = (message, more) => {
    for (const one of [message].flat()) options.guard.sent(one);
    return send(message, more);
  };
  return transport;
}

function guardedFetch(origin: string, options: GuardOptions): FetchLike {
  const { clock, onLost, onDoubt, signal } = options;
  const throttle = new Throttle(clock, RATE);
  const streams = new Throttle(clock, STREAM_RATE);
  let open = 0;
  return async (url, init) => {
    if (new URL(url).origin !== origin) throw new Error("it leads to another origin");
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
      const response = await fetch(url, { ...init, redirect: "manual" });
      if (response.body === null) {
        release();
        return response;
      }
      const { status, statusText, headers } = response;
      const body = response.body as ReadableStream<Uint8Array>;
      // What is read as a stream whatever it is, and what says that it is one.
      const isEvents =
        response.ok && (isStream || /^\s*text\/event-stream\s*(?:;|$)/i.test(headers.get("content-type") ?? ""));
      const bounds = { ...options, throttle };
      const pieces = isEvents ? events(body, bounds) : whole(body, response.ok, bounds);
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

type Bounds = Pick<GuardOptions, "guard" | "signal" | "onLost"> & { throttle: Throttle };
type Pieces = AsyncGenerator<Uint8Array, void, void>;

/** @throws what it tells: the server breaks the rules. */
function breach(reason: string, { onLost }: Bounds): never {
  onLost(reason);
  throw new Error(reason);
}

/** Some write a message in many lines. */
const MAX_EVENT_LINES = 10_000;
const TOO_MANY_LINES = `it sent an event of more than ${MAX_EVENT_LINES} lines`;
const TOO_LONG = `it sent a message of more than ${MAX_MESSAGE_BYTES} bytes`;

/** A body that is one message, or the text of a failure. */
async function* whole(body: ReadableStream<Uint8Array>, isMessage: boolean, bounds: Bounds): Pieces {
  const held = new HeldBytes();
  for await (const chunk of body) {
    held.add(chunk);
    if (held.length > MAX_MESSAGE_BYTES) breach(TOO_LONG, bounds);
    await bounds.throttle.take(chunk.length, bounds.signal);
  }
  const bytes = held.take();
  // Batches left the protocol; a large one would be worked through in one go.
  if (isMessage && firstVisible(bytes) === 0x5b) breach("it answered with a batch", bounds);
  yield isMessage ? admitted(bytes, bytes, bounds) : bytes;
}

/** An event stream, few events in one go. */
async function* events(body: ReadableStream<Uint8Array>, bounds: Bounds): Pieces {
  const { throttle, signal } = bounds;
  const cutter = new EventCutter();
  for await (const chunk of body) {
    await throttle.take(chunk.length, signal);
    const due = new HeldBytes();
    let lines = 0;
    for (const cut of cutter.cut(chunk)) {
      if (cut.event.length > MAX_MESSAGE_BYTES) breach(TOO_LONG, bounds);
      if (cut.lines > MAX_EVENT_LINES) breach(TOO_MANY_LINES, bounds);
      due.add(readable(cut.event, bounds));
      lines += cut.lines;
      if (lines < LINES_PER_TURN) continue;
      // An event has two lines at least.
      await throttle.take((lines * MESSAGE_COST) / 2, signal);
      await new Promise((resolve) => setImmediate(resolve));
      yield due.take();
      lines = 0;
    }
    if (cutter.held > MAX_MESSAGE_BYTES) breach(TOO_LONG, bounds);
    if (cutter.lines > MAX_EVENT_LINES) breach(TOO_MANY_LINES, bounds);
    if (due.length === 0) continue;
    await throttle.take((lines * MESSAGE_COST) / 2, signal);
    yield due.take();
  }
  const rest = cutter.rest();
  if (rest.length > 0) yield readable(rest, bounds);
}

function readable(event: Buffer, bounds: Bounds): Uint8Array {
  const data = dataOf(event);
  if (data === "unclear") return breach("it ends the lines of events with carriage returns", bounds);
  return admitted(data, event, bounds, (json) => Buffer.concat([Buffer.from("data: "), json, Buffer.from("\n\n")]));
}

/** What carries the message, or what is to be read in its place. */
function admitted(
  json: Buffer,
  carrier: Buffer,
  bounds: Bounds,
  wrap: (instead: Buffer) => Buffer = (instead) => instead,
): Uint8Array {
  const admission = bounds.guard.admit(json);
  if (admission.kind === "breach") return breach(admission.reason, bounds);
  return admission.kind === "instead" ? wrap(admission.json) : carrier;
}

function firstVisible(bytes: Uint8Array): number | undefined {
  return bytes.find((byte) => byte > 0x20);
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
