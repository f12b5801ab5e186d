// One POST and the events of its answer. This file alone knows undici and the SSE parser. It decides nothing about
// protocols: it turns bytes into events, silence and broken sockets into a Failure, and it always closes what it opened.
//
// Whatever is not server-sent events (a JSON body in place of a stream, a bare error in the middle of one) is kept
// aside and handed over as an event of its own when it parses as JSON.

import { StringDecoder } from "node:string_decoder";
import { createParser, type EventSourceParser } from "eventsource-parser";
import type { Agent } from "undici";
import type { Clock } from "../clock.js";
import { HttpAnswer } from "./http-answer.js";
import { type Failure, failure, httpFailure, networkFailure } from "./outcome.js";
import { Silence } from "./silence.js";
import type { HttpCall, WireEvent } from "./wire/wire.js";

let agent: Promise<Agent> | undefined;

const MAX_ERROR_BYTES = 65_536;
/** The longest event, and the longest body that is no event stream, in characters. */
const MAX_EVENT_CHARS = 32 * 1024 * 1024;

export interface EventStreamOptions {
  clock: Clock;
  signal: AbortSignal;
  /** Longest silence, in ms, before headers as well as between reads. */
  silenceMs: number;
}

/** One call and the events of its answer. It is sent with the first `next`; whoever made it calls `close`. */
export class EventStream {
  readonly #call: HttpCall;
  readonly #options: EventStreamOptions;
  readonly #answer = new HttpAnswer();
  readonly #silence: Silence;
  readonly #reader = new EventReader();
  readonly #cancel = () => this.#answer.cancel();
  #isSent = false;
  #isOver = false;
  #any = false;
  #failure: Failure | undefined;

  constructor(call: HttpCall, options: EventStreamOptions) {
    this.#call = call;
    this.#options = options;
    this.#silence = new Silence(options.clock, options.silenceMs, this.#cancel);
    options.signal.addEventListener("abort", this.#cancel, { once: true });
  }

  /** Why there are no more events; undefined when the provider ended the body, or the signal aborted. */
  get failure(): Failure | undefined {
    return this.#failure;
  }

  /** The events of one read of the network, never empty; undefined when there are no more. Never rejects. */
  async next(): Promise<readonly WireEvent[] | undefined> {
    try {
      if (!this.#isSent) await this.#send();
      while (!this.#isOver) {
        await this.#wait();
        this.#silence.end();
        const found = this.#read(this.#answer.take());
        if (found.length === 0) continue;
        this.#any = true;
        this.#silence.sawEvent();
        return found;
      }
    } catch (cause) {
      this.#end(this.#silence.isOver ? this.#silence.failure() : networkFailure(cause));
    }
    return undefined;
  }

  /** Gives the connection back, or up. */
  close(): void {
    const { clock, signal } = this.#options;
    this.#isOver = true;
    this.#silence.stop();
    signal.removeEventListener("abort", this.#cancel);
    this.#answer.release(clock, signal.aborted);
  }

  async #send(): Promise<void> {
    this.#isSent = true;
    if (this.#options.signal.aborted) return this.#end();
    const { url, headers, body } = this.#call;
    const { origin, pathname, search } = new URL(url);
    agent ??= createAgent();
    const dispatcher = await agent;
    // Loading it takes a moment, in which whoever asked may have left: then nothing is sent.
    if (this.#isOver || this.#options.signal.aborted) return this.#end();
    dispatcher.dispatch({ origin, path: pathname + search, method: "POST", headers, body }, this.#answer);
    let head = this.#answer.takeHead();
    while (head === undefined) {
      await this.#wait();
      this.#silence.end();
      head = this.#answer.takeHead();
    }
    if (head.statusCode >= 200 && head.statusCode < 300) return;
    const refusal = { status: head.statusCode, headers: head.headers, body: await this.#text() };
    this.#end(httpFailure(refusal, this.#options.clock.now()));
  }

  /** Nothing to wait for where something is here. The silence ends with `end`: no promise for that. */
  #wait(): Promise<void> | undefined {
    const moved = this.#answer.moved();
    if (moved !== undefined) this.#silence.begin();
    return moved;
  }

  #read(chunk: Buffer | undefined): WireEvent[] {
    const reader = this.#reader;
    const found = chunk === undefined ? reader.end() : reader.push(chunk);
    if (reader.overflow) this.#end(failure("malformed", `an event is longer than ${MAX_EVENT_CHARS} characters`));
    else if (chunk === undefined) {
      const isStrange = !this.#any && found.length === 0 && reader.strange !== "";
      this.#end(isStrange ? failure("malformed", `the answer is not an event stream: ${reader.strange}`) : undefined);
    }
    return found;
  }

  #end(reason?: Failure): void {
    this.#isOver = true;
    if (!this.#options.signal.aborted) this.#failure = reason;
  }

  /** An error body, cut at a cap. When it breaks off, what was read is what there is: the status says enough. */
  async #text(): Promise<string> {
    const chunks: Buffer[] = [];
    let bytes = 0;
    try {
      while (bytes < MAX_ERROR_BYTES) {
        await this.#wait();
        this.#silence.end();
        const chunk = this.#answer.take();
        if (chunk === undefined) break;
        chunks.push(chunk);
        bytes += chunk.length;
      }
    } catch {
      // Silence or a reset within an error body: the refusal itself stands.
    }
    return Buffer.concat(chunks).subarray(0, MAX_ERROR_BYTES).toString("utf8");
  }
}

/** At the first call: loading it takes as long as a sixth of the server's start, and a quarter of its memory then. */
async function createAgent(): Promise<Agent> {
  const { Agent } = await import("undici");
  // Silence is timed by our clock, and only while we wait: undici's own timers would also run while our reader is slow.
  // No limit on connections: one stream holds one for minutes.
  return new Agent({ headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 15_000 } });
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
