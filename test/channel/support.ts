// A Channel with time and the event loop in the test's hands, and a Sink that reads what a client would.

import assert from "node:assert/strict";
import { Channel, type ChannelOptions, type ChannelStat } from "../../src/channel/channel.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import type { Sink } from "../../src/channel/subscription.js";

export interface SseEvent {
  id?: string;
  event?: string;
  retry?: string;
  data: string;
}

/** Splits a stream's text into events and comments; throws on what a strict reader would stumble over. */
export function parseStream(text: string): { events: SseEvent[]; comments: string[]; rest: string } {
  const events: SseEvent[] = [];
  const comments: string[] = [];
  let open: Partial<SseEvent> = {};
  const lines = text.split("\n");
  const rest = lines.pop() as string;
  for (const line of lines) {
    if (line.startsWith(":")) comments.push(line);
    else if (line === "") {
      assert(open.data !== undefined, `an event without data: ${JSON.stringify(open)}`);
      events.push(open as SseEvent);
      open = {};
    } else {
      const match = /^(id|event|retry|data): (.*)$/s.exec(line);
      assert(match, `not a field: ${line}`);
      const [, field, value] = match as unknown as [string, keyof SseEvent, string];
      assert(!(field in open), `${field} twice in one event`);
      open[field] = value;
    }
  }
  return { events, comments, rest };
}

/** One HTTP/1.1 chunk, as a Sink with that framing gets it. */
function unchunk(bytes: Uint8Array): string {
  const buffer = Buffer.from(bytes);
  const headEnd = buffer.indexOf("\r\n");
  const size = Number.parseInt(buffer.toString("latin1", 0, headEnd), 16);
  assert.equal(buffer.length, headEnd + 2 + size + 2, "one write is one whole chunk");
  assert.equal(buffer.toString("latin1", buffer.length - 2), "\r\n");
  return buffer.toString("utf8", headEnd + 2, buffer.length - 2);
}

export class ReaderSink implements Sink {
  readonly framing: "chunked" | "plain";
  readonly writes: Uint8Array[] = [];
  /** `onEvent` sees each event at the moment it is written. */
  onEvent: (event: SseEvent) => void = () => {};
  text = "";
  queuedBytes = 0;
  isStalled = false;
  /** What the next write leaves in the queue beside its own bytes, once the reader has stalled. */
  backlog = 0;
  state: "open" | "ended" | "destroyed" = "open";
  #unread = "";
  #resume = () => {};
  #closed = () => {};

  constructor(framing: "chunked" | "plain" = "plain") {
    this.framing = framing;
  }

  write(bytes: Uint8Array): boolean {
    assert.equal(this.state, "open", "nothing is written after the end");
    this.writes.push(bytes);
    const text = this.framing === "chunked" ? unchunk(bytes) : Buffer.from(bytes).toString();
    assert(text.endsWith("\n"), "a write ends at the end of a line");
    this.text += text;
    // An event may begin in the write before: `retry` goes out alone.
    this.#unread += text;
    const whole = this.#unread.lastIndexOf("\n\n") + 2;
    const read = whole < 2 ? "" : this.#unread.slice(0, whole);
    this.#unread = this.#unread.slice(read.length);
    for (const event of parseStream(read).events) this.onEvent(event);
    if (this.isStalled) this.queuedBytes += bytes.length + this.backlog;
    return this.queuedBytes === 0;
  }

  onDrain(resume: () => void): void {
    this.#resume = resume;
  }

  onClose(closed: () => void): void {
    this.#closed = closed;
  }

  end(): void {
    assert.equal(this.state, "open");
    this.state = "ended";
  }

  destroy(): void {
    this.state = "destroyed";
  }

  /** The reader reads everything again. */
  drain(): void {
    this.isStalled = false;
    this.backlog = 0;
    this.readOnce();
  }

  /** The reader takes what is queued, and no more after it. */
  readOnce(): void {
    if (this.queuedBytes === 0) return;
    this.queuedBytes = 0;
    this.#resume();
  }

  /** The reader goes away. */
  drop(): void {
    this.state = "destroyed";
    this.#closed();
  }

  get events(): SseEvent[] {
    return parseStream(this.text).events;
  }

  get comments(): string[] {
    return parseStream(this.text).comments;
  }
}

/** Time that stands still until a test moves it. */
export class ManualClock {
  #now = 1_000_000;
  #setBackMs = 0;
  #timers: { at: number; run: () => void }[] = [];

  now(): number {
    return this.#now - this.#setBackMs;
  }

  monotonic(): number {
    return this.#now;
  }

  /** Somebody sets the machine's clock. */
  setBack(ms: number): void {
    this.#setBackMs += ms;
  }

  after(ms: number, run: () => void): () => void {
    const timer = { at: this.#now + ms, run };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  get timers(): number {
    return this.#timers.length;
  }

  advance(ms: number): void {
    const until = this.#now + ms;
    for (;;) {
      const next = this.#timers.filter((timer) => timer.at <= until).sort((a, b) => a.at - b.at)[0];
      if (!next) break;
      this.#timers = this.#timers.filter((other) => other !== next);
      this.#now = next.at;
      next.run();
    }
    this.#now = until;
  }
}

export const EPOCH = 1_785_035_422_531;

/** A Channel whose flushes wait for `turn()`. */
export function manualChannel(options: Partial<ChannelOptions> = {}) {
  const clock = new ManualClock();
  const heartbeat = new HeartbeatWheel({ intervalMs: 15_000, clock });
  const stats: ChannelStat[] = [];
  let flushes: (() => void)[] = [];
  const channel = new Channel({
    epoch: EPOCH,
    maxEvents: 10_000,
    maxBytes: 8_388_608,
    heartbeat,
    pace: { schedule: (flush) => flushes.push(flush), run: (flush) => flush() },
    onStat: (stat) => stats.push(stat),
    ...options,
  });
  const turn = () => {
    const due = flushes;
    flushes = [];
    for (const flush of due) flush();
  };
  return { channel, clock, heartbeat, stats, turn };
}

export const taskState = (fields: object = {}) => JSON.stringify({ type: "task_state", state: "idle", ...fields });
export const idle = () => ({ events: [taskState()] });
export const message = (n: number) => JSON.stringify({ type: "model_msg", n });
export const seqOf = (event: SseEvent) => Number(event.id?.split("-")[1]);
/** The messages among events, by number. */
export const seqs = (events: readonly SseEvent[]) => events.filter((event) => !event.event).map(seqOf);
export const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => first + i);
