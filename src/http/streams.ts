// The cap on open streams, and the one way to open one. A slot is taken before anything is started and given back when
// the connection is gone, however it went.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Sink } from "../channel/subscription.js";
import { HttpError } from "./errors.js";
import { openSse, SSE_HEADERS } from "./sse.js";

/** Gives a slot back; safe to call twice. */
export type Release = () => void;

export class StreamSlots {
  readonly #max: number | undefined;
  #open = 0;

  constructor(max: number | undefined) {
    this.#max = max;
  }

  get open(): number {
    return this.#open;
  }

  /** @throws HttpError when there is no slot left. A reader that resumes always gets one. */
  admit(resumes: boolean): void {
    if (!resumes && this.#max !== undefined && this.#open >= this.#max) {
      throw new HttpError("too_many_streams", `${this.#max} streams are open, and that is the limit`);
    }
  }

  /** Takes a slot. @throws as `admit`. */
  take(resumes: boolean): Release {
    this.admit(resumes);
    this.#open += 1;
    let held = true;
    return () => {
      if (held) this.#open -= 1;
      held = false;
    };
  }
}

/**
 * Turns the answer into an SSE stream and lets `follow` write to it. Opens nothing for a client that has gone while
 * its request was being looked at.
 */
export function openStream(
  request: FastifyRequest,
  reply: FastifyReply,
  release: Release,
  follow: (sink: Sink) => void,
): void {
  if (reply.raw.destroyed) {
    release();
    reply.hijack();
    return;
  }
  const sink = openSse(request, reply);
  sink.onClose(release);
  try {
    follow(sink);
  } catch (error) {
    // The status has gone out: all that is left is to end the connection, so that the reader comes back.
    request.log.error({ err: error }, "stream failed");
    sink.destroy();
  }
}

/** Where a reader resumes; an empty id is no id. The header is the newer one: a reconnecting reader repeats its URL. */
export function resumePoint(
  request: FastifyRequest,
  query: { lastEventId?: string | undefined; last_event_id?: string | undefined } = {},
): string | undefined {
  const header = request.headers["last-event-id"];
  return (typeof header === "string" && header) || query.lastEventId || query.last_event_id || undefined;
}

/** True for what may be the id of a place: a reader that sends something else does not resume anything. */
export const isPlace = (id: string | undefined): boolean => id !== undefined && /^\d+-\d+$/.test(id);

/** True when the client would rather have an event stream than JSON. */
export function prefersEventStream(accept: string | undefined): boolean {
  const qualities = new Map<string, number>();
  for (const range of (accept ?? "").toLowerCase().split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim());
    const q = parameters.find((parameter) => parameter.startsWith("q="));
    qualities.set(type, q === undefined ? 1 : Number(q.slice(2)) || 0);
  }
  return (qualities.get("text/event-stream") ?? 0) > (qualities.get("application/json") ?? 0);
}

/** Answers HEAD on a stream: its headers, and no stream. */
export function answerHead(reply: FastifyReply): FastifyReply {
  return reply.headers(SSE_HEADERS).send();
}
