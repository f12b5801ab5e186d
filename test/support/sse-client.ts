// A strict reader of event streams: bytes in, events out, and every byte that the contract does not allow is a fault.
// It can be cut at any byte, stalled, and resumed with an id.

import { Agent, request as httpRequest, type IncomingMessage } from "node:http";
import { onTestFinished } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { AtEnd } from "./server.js";

// biome-ignore lint/suspicious/noExplicitAny: a server event is whatever came; what it should be is for expectations to say
type Loose = any;

export interface StreamEvent {
  id?: string;
  /** Absent for an OmniMessage. */
  name?: string;
  data: Loose;
}

export interface OpenOptions {
  lastEventId?: string;
  headers?: Record<string, string>;
  method?: "GET" | "POST";
  body?: unknown;
  /** The connection is cut once this many bytes of the stream have come. */
  cutAfterBytes?: number;
  /** Called with each event as it comes. */
  onEvent?: (event: StreamEvent) => void;
  /** Of a Task that waits: what comes between the snapshot and its beginning is not its own. */
  waits?: boolean;
  /** Does not keep what it read; `events` and `messages` stay empty. */
  forgets?: boolean;
  /** When it is closed and checked; left out: at the end of the test. */
  atEnd?: AtEnd;
}

export class SseReader {
  readonly events: StreamEvent[] = [];
  readonly messages: OmniMessage[] = [];
  readonly ids: string[] = [];
  readonly response: IncomingMessage;
  bytes = 0;
  lastEventId: string | undefined;
  /** Resolves when the stream is over, whoever ended it. */
  readonly ended: Promise<void>;
  readonly #parser: EventParser;
  readonly #options: OpenOptions;
  readonly #waiting = new Set<() => void>();
  #fault: Error | undefined;
  #isOver = false;

  constructor(response: IncomingMessage, options: OpenOptions) {
    this.response = response;
    this.#options = options;
    this.lastEventId = options.lastEventId;
    this.#parser = new EventParser(options.lastEventId, options.waits);
    response.on("data", (bytes: Buffer) => this.#take(bytes));
    this.ended = new Promise((resolve) => {
      response.once("close", () => {
        this.#isOver = true;
        for (const look of this.#waiting) look();
        resolve();
      });
    });
    // A cut connection is an error of Node's; here it is an end like any other.
    response.on("error", () => {});
  }

  /** Resolves with the first event, from number `from` on, that `test` accepts. Rejects when the stream ends before. */
  until(test: (event: StreamEvent) => boolean, from = 0): Promise<StreamEvent> {
    let next = from;
    return new Promise((resolve, reject) => {
      const settle = (done: () => void) => {
        this.#waiting.delete(look);
        done();
      };
      const look = () => {
        if (this.#fault !== undefined) return settle(() => reject(this.#fault));
        for (; next < this.events.length; next++) {
          const event = this.events[next] as StreamEvent;
          if (test(event)) return settle(() => resolve(event));
        }
        if (this.#isOver) settle(() => reject(new Error(`the stream ended after ${this.events.length} events`)));
      };
      this.#waiting.add(look);
      look();
    });
  }

  /** Resolves at the `task_state` that ends the Task (any, when not named). */
  untilEnded(taskId?: string, from = 0): Promise<StreamEvent> {
    return this.until(
      ({ data }) => data.ended !== undefined && (taskId ?? data.ended.taskId) === data.ended.taskId,
      from,
    );
  }

  /** Resolves at a message whose payload is of that type. */
  untilPayload(type: string, test: (payload: Loose) => boolean = () => true, from = 0): Promise<StreamEvent> {
    return this.until(({ data, name }) => name === undefined && data.payload.type === type && test(data.payload), from);
  }

  serverEvents(type: string): Loose[] {
    return this.events
      .filter(({ name, data }) => name === "server_event" && data.type === type)
      .map(({ data }) => data);
  }

  /** Stops taking bytes; the kernel's buffers fill and the server has to wait. */
  stall(): void {
    this.response.pause();
  }

  resume(): void {
    this.response.resume();
  }

  close(): void {
    this.response.destroy();
  }

  /** Throws what was wrong with the bytes, if anything was. */
  check(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }

  #take(bytes: Buffer): void {
    const { cutAfterBytes } = this.#options;
    const room = cutAfterBytes === undefined ? bytes.length : cutAfterBytes - this.bytes;
    if (room <= 0) return;
    const taken = bytes.subarray(0, room);
    this.bytes += taken.length;
    try {
      for (const event of this.#parser.push(taken)) this.#keep(event);
    } catch (error) {
      this.#fault ??= error as Error;
    }
    if (cutAfterBytes !== undefined && this.bytes >= cutAfterBytes) this.close();
    for (const look of this.#waiting) look();
  }

  #keep(event: StreamEvent): void {
    if (event.id !== undefined) this.lastEventId = event.id;
    this.#options.onEvent?.(event);
    if (this.#options.forgets === true) return;
    this.events.push(event);
    if (event.name !== undefined) return;
    this.ids.push(event.id as string);
    this.messages.push(event.data);
  }
}

/** Holds the bytes of one connection to the framing that the contract promises. Throws at the first thing that is wrong. */
class EventParser {
  readonly #utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  /** What came of a line whose end has not. */
  #rest: Buffer[] = [];
  #fields = new Map<string, string>();
  #isFirst = true;
  /** The place of the last event that had one. */
  #epoch: string | undefined;
  #seq = 0;

  /** The next message may have any later number. */
  #mayLeap: boolean;

  constructor(lastEventId: string | undefined, mayLeap = false) {
    this.#stand(lastEventId);
    this.#mayLeap = mayLeap;
  }

  *push(bytes: Buffer): Generator<StreamEvent> {
    if (bytes.includes(0x0d)) throw new Error("a carriage return in the stream");
    this.#rest.push(bytes);
    if (!bytes.includes(0x0a)) return;
    const all = Buffer.concat(this.#rest);
    let from = 0;
    for (let at = all.indexOf(0x0a); at >= 0; at = all.indexOf(0x0a, from)) {
      const line = this.#utf8.decode(all.subarray(from, at));
      from = at + 1;
      if (line === "") yield this.#event();
      else this.#line(line);
    }
    this.#rest = [all.subarray(from)];
  }

  #line(line: string): void {
    if (/[\u0085\u2028\u2029]/.test(line)) throw new Error("an unescaped line breaker");
    if (line === ": ping" && this.#fields.size === 0) return;
    const [, name, value] = /^(retry|id|event|data): (\S.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw new Error(`an unknown line: ${line.slice(0, 80)}`);
    if (this.#fields.has(name)) throw new Error(`two lines of ${name} in one event`);
    this.#fields.set(name, value);
  }

  #event(): StreamEvent {
    const fields = this.#fields;
    const isFirst = this.#isFirst;
    this.#fields = new Map();
    this.#isFirst = false;
    const shape = [...fields.keys()].join(" ");
    if (!/^(retry )?(id )?(event )?data$/.test(shape)) throw new Error(`an event of the shape "${shape}"`);
    if (isFirst !== fields.has("retry")) throw new Error(`retry: belongs to the first event and no other: ${shape}`);
    const id = fields.get("id");
    const name = fields.get("event");
    const data = JSON.parse(fields.get("data") as string) as Loose;
    if (id !== undefined && !/^\d{1,16}-\d{1,16}$/.test(id)) throw new Error(`an id of the form ${id}`);
    if (name === undefined) this.#numbered(id);
    else this.#unnumbered(name, id, data, isFirst);
    return { ...(id === undefined ? {} : { id }), ...(name === undefined ? {} : { name }), data };
  }

  /** A message: the very next number, unless nothing is known of what was before. */
  #numbered(id: string | undefined): void {
    if (id === undefined) throw new Error("a message without an id");
    const [epoch, seq] = id.split("-");
    const isNext = epoch === this.#epoch && Number(seq) === this.#seq + 1;
    const isLeap = this.#mayLeap && epoch === this.#epoch && Number(seq) > this.#seq;
    if (this.#epoch !== undefined && !isNext && !isLeap) throw new Error(`${id} after ${this.#epoch}-${this.#seq}`);
    this.#mayLeap = false;
    this.#stand(id);
  }

  #unnumbered(name: string, id: string | undefined, data: Loose, isFirst: boolean): void {
    if (name !== "server_event") throw new Error(`an event named ${name}`);
    const isResync = data.type === "resync_required";
    if ((id !== undefined) !== (isFirst || isResync)) throw new Error(`${data.type} ${id ? "with" : "without"} an id`);
    if (id === undefined) return;
    // Nothing was replayed, so the snapshot stands where the reader said that it stood.
    if (!isResync && this.#epoch !== undefined && id !== `${this.#epoch}-${this.#seq}`) {
      throw new Error(`a snapshot at ${id} for a reader at ${this.#epoch}-${this.#seq}`);
    }
    this.#stand(id);
  }

  #stand(id: string | undefined): void {
    const [, epoch, seq] = /^(\d+)-(\d+)$/.exec(id ?? "") ?? [];
    if (epoch === undefined) return;
    this.#epoch = epoch;
    this.#seq = Number(seq);
  }
}

/** Opens a stream and resolves once its headers are there. Anything but 200 is refused. */
export function openSse(url: string, options: OpenOptions = {}): Promise<SseReader> {
  const { method = "GET", body, lastEventId, headers = {} } = options;
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      {
        method,
        agent: new Agent(),
        headers: {
          accept: "text/event-stream",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
          ...headers,
        },
      },
      (response) => {
        if (response.statusCode === 200) {
          const reader = new SseReader(response, options);
          (options.atEnd ?? onTestFinished)(async () => {
            reader.close();
            reader.check();
          });
          return resolve(reader);
        }
        response.setEncoding("utf8");
        let text = "";
        response.on("data", (more) => {
          text += more;
        });
        response.on("end", () => reject(new Error(`${response.statusCode} ${text}`)));
      },
    );
    request.on("error", reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
