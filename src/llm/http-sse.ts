// One POST and the events of its answer. This file alone knows undici and the SSE parser. It decides nothing about
// protocols: it turns bytes into events, silence and broken sockets into a Failure, and it always closes what it opened.
//
// Whatever is not server-sent events (a JSON body in place of a stream, a bare error in the middle of one) is kept
// aside and handed over as an event of its own when it parses as JSON.

import { StringDecoder } from "node:string_decoder";
import { createParser, type EventSourceParser } from "eventsource-parser";
import type { Agent, Dispatcher } from "undici";
import type { Clock } from "../clock.js";
import { type Failure, failure, httpFailure, networkFailure } from "./outcome.js";
import { Body } from "./response-body.js";
import { Silence } from "./silence.js";
import type { HttpCall, WireEvent } from "./wire/wire.js";

type Http = { request: typeof import("undici").request; dispatcher: Agent };
let http: Promise<Http> | undefined;

const MAX_ERROR_BYTES = 65_536;
/** The longest event, and the longest body that is no event stream, in characters. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

export interface EventStreamOptions {
  clock: Clock;
  signal: AbortSignal;
  /** Longest silence, in ms, before headers as well as between reads. */
  silenceMs: number;
}

/**
 * Sends the call and yields the events of its answer, one array for each read of the network, never empty.
 * @returns nothing when the provider ended the body (or the signal aborted), otherwise why the events stopped.
 */
export async function* readEvents(
  call: HttpCall,
  options: EventStreamOptions,
): AsyncGenerator<readonly WireEvent[], Failure | undefined, void> {
  const { clock, signal } = options;
  const socket = new AbortController();
  const onAbort = () => socket.abort();
  signal.addEventListener("abort", onAbort, { once: true });
  const silence = new Silence(clock, options.silenceMs, onAbort);
  let body: Body | undefined;
  try {
    if (signal.aborted) return undefined;
    const answer = await silence.during(send(call, socket.signal));
    body = new Body(answer.body);
    if (answer.statusCode < 200 || answer.statusCode >= 300) {
      const text = await readText(body, silence);
      return httpFailure({ status: answer.statusCode, headers: answer.headers, body: text }, clock.now());
    }
    return yield* events(body, silence);
  } catch (cause) {
    if (signal.aborted) return undefined;
    return silence.isOver ? silence.failure() : networkFailure(cause);
  } finally {
    signal.removeEventListener("abort", onAbort);
    body?.release(clock, signal.aborted);
  }
}

async function send(call: HttpCall, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
  http ??= loadHttp();
  const { request, dispatcher } = await http;
  return request(call.url, { method: "POST", headers: call.headers, body: call.body, signal, dispatcher });
}

/** At the first call: loading it takes as long as a sixth of the server's start, and a quarter of its memory then. */
async function loadHttp(): Promise<Http> {
  const { Agent, request } = await import("undici");
  // Silence is timed by our clock, and only while we wait: undici's own timers would also run while our reader is slow.
  // No limit on connections: one stream holds one for minutes.
  const dispatcher = new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 15_000 } });
  return { request, dispatcher };
}

async function* events(body: Body, silence: Silence): AsyncGenerator<readonly WireEvent[], Failure | undefined, void> {
  const reader = new EventReader();
  let any = false;
  for (;;) {
    const chunk = await silence.during(body.next());
    const found = chunk === undefined ? reader.end() : reader.push(chunk);
    if (found.length > 0) {
      any = true;
      silence.sawEvent();
      yield found;
    }
    if (reader.overflow) return failure("malformed", `an event is longer than ${MAX_EVENT_CHARS} characters`);
    if (chunk === undefined) break;
  }
  if (any || reader.strange === "") return undefined;
  return failure("malformed", `the answer is not an event stream: ${reader.strange}`);
}

/** An error body, cut at a cap. When it breaks off, what was read is what there is: the status says enough. */
async function readText(body: Body, silence: Silence): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    while (bytes < MAX_ERROR_BYTES) {
      const chunk = await silence.during(body.next());
      if (chunk === undefined) break;
      chunks.push(chunk);
      bytes += chunk.length;
    }
  } catch {
    // Silence or a reset within an error body: the refusal itself stands.
  }
  return Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES).toString("utf8");
}

// --- events --------------------------------------------------------------------------------------------------------

/** Bytes to events. Time is linear in the bytes, whatever the line ends and however they are cut. */
export class EventReader {
  // Five times as fast as TextDecoder for what providers send; the byte order mark is ours to drop then.
  readonly #decoder = new StringDecoder("utf8");
  readonly #parser: EventSourceParser;
  #found: WireEvent[] = [];
  #strayLines: string[] = [];
  #strayChars = 0;
  #strange = "";
  #afterCr = false;
  #isStart = true;
  #isTail = false;
  #overflow = false;

  constructor() {
    this.#parser = createParser({
      maxBufferSize: MAX_EVENT_CHARS,
      onEvent: ({ event, data }) => this.#event(event, data),
      onError: (error) => {
        if (error.type === "max-buffer-size-exceeded") this.#overflow = true;
        else if (error.type === "unknown-field" && error.line !== undefined) this.#stray(error.line);
      },
    });
  }

  /** True once an event or a body outgrew its limit; nothing more is read then. */
  get overflow(): boolean {
    return this.#overflow;
  }

  /** The beginning of what was neither an event nor JSON. */
  get strange(): string {
    return this.#strange;
  }

  push(bytes: Buffer): WireEvent[] {
    this.#feed(this.#decoder.write(bytes));
    return this.#take();
  }

  /** The end of the body. Text without its blank line is a truncated event and is dropped, `[DONE]` alone excepted. */
  end(): WireEvent[] {
    this.#feed(this.#decoder.end());
    this.#isTail = true;
    this.#feed("\n\n");
    this.#flushStray();
    return this.#take();
  }

  #feed(decoded: string): void {
    const text = this.#isStart && decoded.startsWith("\uFEFF") ? decoded.slice(1) : decoded;
    if (decoded !== "") this.#isStart = false;
    if (text === "" || this.#overflow) return;
    // One kind of line end: the parser looks for the other kind through the whole rest at every line.
    let lines = this.#afterCr && text.startsWith("\n") ? text.slice(1) : text;
    this.#afterCr = text.endsWith("\r");
    if (lines.includes("\r")) lines = lines.replace(/\r\n?/g, "\n");
    if (lines !== "") this.#parser.feed(lines);
  }

  #event(event: string | undefined, data: string): void {
    if (this.#isTail && data.trim() !== "[DONE]") return;
    this.#flushStray();
    this.#found.push(event === undefined ? { data } : { event, data });
  }

  #stray(line: string): void {
    this.#strayChars += line.length;
    if (this.#strayChars > MAX_EVENT_CHARS) this.#overflow = true;
    else this.#strayLines.push(line);
  }

  #flushStray(): void {
    if (this.#strayLines.length === 0) return;
    const data = this.#strayLines.join("\n");
    this.#strayLines = [];
    this.#strayChars = 0;
    if (isJson(data)) this.#found.push({ data });
    else this.#strange ||= data.trim().slice(0, 500);
  }

  #take(): WireEvent[] {
    const found = this.#found;
    this.#found = [];
    return found;
  }
}

function isJson(text: string): boolean {
  const first = text.trimStart()[0];
  if (first !== "{" && first !== "[") return false;
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false; // the answer to the question
  }
}
