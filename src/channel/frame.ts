// The bytes of the stream: LF only, no BOM, one `data:` line an event, no event without data.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
// HTTP/1.1 chunks are framed here too, so that all readers at one place can share one buffer down to the socket.

import { allocateFrame } from "./frame-memory.js";

const LF = 0x0a;
/** From so many UTF-16 units on a text is worth being encoded in place. */
const LONG = 4096;

/** Bytes for both kinds of connection. Shared between readers: nobody writes to them. */
export class FramedBytes {
  /** One HTTP/1.1 chunk. */
  readonly chunked: Uint8Array;
  readonly #start: number;

  constructor(chunked: Uint8Array, start: number) {
    this.chunked = chunked;
    this.#start = start;
  }

  /** The same bytes without the chunk around them: a window, made only where it is wanted. */
  get plain(): Uint8Array {
    return this.chunked.subarray(this.#start, this.chunked.length - 2);
  }
}

/** A heartbeat: a comment and one line feed. A blank line after it would be an empty message to some readers. */
export const PING = framed([Buffer.from(": ping\n")]);

/** The frame of one OmniMessage. `json` is one line. */
export function messageFrame(id: string, json: string): Uint8Array {
  const head = `id: ${id}\ndata: `;
  if (json.length < LONG) return Buffer.from(`${head}${oneLine(json)}\n\n`);
  // In place: joined to one text first, a long one is copied once more.
  const frame = allocateFrame(head.length + Buffer.byteLength(oneLine(json)) + 2);
  let at = frame.write(head, "latin1");
  at += frame.write(json, at);
  frame[at] = LF;
  frame[at + 1] = LF;
  return frame;
}

/** The frame of one server event; with `id` only where it is the first of a connection or announces a skip. */
export function serverEventFrame(json: string, id?: string): Buffer {
  const idLine = id === undefined ? "" : `id: ${id}\n`;
  return Buffer.from(`${idLine}event: server_event\ndata: ${oneLine(json)}\n\n`);
}

/** The line inside the first event of a connection: how long to wait, in milliseconds, before connecting again. */
export const RETRY: Uint8Array = Buffer.from("retry: 1000\n");

/** Joins whole frames into one buffer that is also one HTTP/1.1 chunk. */
export function framed(frames: readonly Uint8Array[]): FramedBytes {
  let size = 0;
  for (const frame of frames) size += frame.length;
  const head = `${size.toString(16)}\r\n`;
  const chunked = Buffer.allocUnsafe(head.length + size + 2);
  let at = chunked.write(head, "latin1");
  const start = at;
  for (const frame of frames) {
    chunked.set(frame, at);
    at += frame.length;
  }
  chunked[at] = 0x0d;
  chunked[at + 1] = 0x0a;
  return new FramedBytes(chunked, start);
}

/** A line break inside would end the event early for every reader; JSON.stringify never makes one. */
function oneLine(json: string): string {
  if (json.includes("\n") || json.includes("\r")) throw new Error("an event's JSON must be a single line");
  return json;
}
