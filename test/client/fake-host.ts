// A server of one Session as `fetch` sees it, over the model of a Channel, with every answer in the test's hand.

import type { RawEvent } from "../../src/client/event-stream.js";
import { type Client, type ClientClock, createClient, type View } from "../../src/client/index.js";
import { manualClock } from "../support/manual-clock.js";
import { metaOf } from "../support/messages.js";
import { ModelServer, type Step } from "./model-server.js";

type Answer = () => Response | Promise<Response>;

export class FakeHost {
  readonly model = new ModelServer(metaOf());
  readonly time = manualClock();
  /** Every call, as `GET /messages?limit=400`; a stream with the id that it goes on from. */
  readonly calls: string[] = [];
  readonly client: Client;
  /** What is answered in place of the next answers, in order, but for the queue's. */
  readonly instead: Answer[] = [];
  #stream: ReadableStreamDefaultController<Uint8Array> | undefined;

  constructor() {
    const clock: ClientClock = {
      now: () => this.time.now(),
      after: (ms, run) => this.time.after(ms, run),
      random: () => 1,
    };
    this.client = createClient({
      baseUrl: "http://host",
      clock,
      fetch: (url, init) => this.#answer(String(url), init),
    });
  }

  /** Does a step and sends what a connected reader is sent for it, in one piece. */
  do(...steps: Step[]): void {
    this.write(
      steps
        .flatMap((step) => this.model.take(step))
        .map(frameOf)
        .join(""),
    );
  }

  write(text: string): void {
    this.#stream?.enqueue(new TextEncoder().encode(text));
  }

  /** The stream ends, in order or broken. */
  drop(error?: Error): void {
    if (error === undefined) this.#stream?.close();
    else this.#stream?.error(error);
    this.#stream = undefined;
  }

  /** Lets happen what is due, and then `ms` pass. */
  async pass(ms: number): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    this.time.advance(ms);
  }

  streamsFrom(): string[] {
    return this.calls.filter((call) => call.startsWith("stream")).map((call) => call.slice("stream ".length));
  }

  async #answer(url: string, init: RequestInit = {}): Promise<Response> {
    init.signal?.throwIfAborted();
    const { pathname, searchParams } = new URL(url);
    const what = pathname.replace(/^\/api\/sessions\/session-1\/?/, "") || "session";
    const headers = new Headers(init.headers);
    this.calls.push(what === "stream" ? `stream ${headers.get("last-event-id")}` : what);
    // What waits is read beside the rest.
    const other = what === "queue" ? undefined : this.instead.shift();
    if (other !== undefined) return other();
    const child = /^\/api\/sessions\/([^/]+)\/messages$/.exec(pathname)?.[1];
    if (child !== undefined && child !== "session-1") {
      const records = this.model.childHistory(child, Number(searchParams.get("after") ?? -1) + 1);
      return Response.json({ messages: records, cursor: "1-0" });
    }
    const number = (name: string) => (searchParams.has(name) ? { [name]: Number(searchParams.get(name)) } : {});
    switch (what) {
      case "session":
        return Response.json({ sessionId: "session-1", state: "idle", queued: 0, pendingApprovals: 0 });
      case "messages":
        return Response.json(this.model.history({ ...number("limit"), ...number("before"), ...number("after") }));
      case "approvals":
        return Response.json({ approvals: [] });
      case "queue":
        return Response.json({ items: [] });
      default:
        return this.#open(headers.get("last-event-id") ?? "", init.signal ?? undefined);
    }
  }

  #open(cursor: string, signal: AbortSignal | undefined): Response {
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#stream = controller;
        signal?.addEventListener("abort", () => {
          if (this.#stream === controller) this.drop(signal.reason);
        });
      },
    });
    this.write(this.model.connect(cursor).map(frameOf).join(""));
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  }
}

export const refusal = (status: number, code: string, headers: Record<string, string> = {}): Answer => {
  const body = { error: { code, message: `because of ${code}` } };
  return () => Response.json(body, { status, headers });
};

export function frameOf({ event, id, data }: RawEvent): string {
  return `${id === undefined ? "" : `id: ${id}\n`}${event === undefined ? "" : `event: ${event}\n`}data: ${data}\n\n`;
}

export const isLive = ({ connection }: View): boolean => connection.status === "live";
export const isWaiting = ({ connection }: View): boolean => connection.status === "waiting";
