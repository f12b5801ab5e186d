// What was answered. Each request is counted and logged once, when its answer is over or its connection gone; and so is
// each answer to what never became a request.

import type { ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../clock.js";
import type { Metrics } from "./metrics.js";
import { onceOver } from "./once-over.js";

/** Of a request whose connection ended before an answer, as nginx has it. Nobody is ever sent it. */
const NO_ANSWER = 499;

/** An answer that Fastify has no part in. */
export interface BareAnswer {
  status: number;
  /** Absent where the bytes were none that a method could be read from. */
  method?: string | undefined;
  /** Why, in Node's words. */
  reason?: string | undefined;
}

export interface Recorder {
  /** Records a request once it is over. */
  follow(request: FastifyRequest, reply: FastifyReply): void;
  /**
   * Records an answer that goes past Fastify; to a followed request where `response` is that of one.
   * @returns the request id to answer with, which is the one in the log.
   */
  answered(bare: BareAnswer, response?: ServerResponse): string;
}

/** A request that is not recorded yet. */
interface Open {
  requestId: string;
  /** Records it; `bare` is what was written in place of its response. */
  over(bare?: BareAnswer): void;
}

export function createRecorder(parts: {
  clock: Clock;
  newId: () => string;
  log: FastifyBaseLogger;
  metrics: Metrics;
}): Recorder {
  const { clock, newId, log, metrics } = parts;
  const open = new WeakMap<ServerResponse, Open>();
  return {
    follow(request, reply) {
      const startedAt = clock.monotonic();
      const over = (bare?: BareAnswer) => {
        if (open.delete(reply.raw)) record(request, reply, bare, clock.monotonic() - startedAt, metrics);
      };
      open.set(reply.raw, { requestId: request.id, over });
      onceOver(reply.raw, () => over());
    },
    answered(bare, response) {
      const followed = response && open.get(response);
      if (followed) {
        followed.over(bare);
        return followed.requestId;
      }
      const requestId = newId();
      const { status, method, reason } = bare;
      metrics.request({ method: method ?? "unknown", route: "unmatched", status: String(status) }, undefined);
      log.info({ requestId, method, status, reason }, "request");
      return requestId;
    },
  };
}

function record(
  request: FastifyRequest,
  reply: FastifyReply,
  bare: BareAnswer | undefined,
  elapsedMs: number,
  metrics: Metrics,
): void {
  const { method, routeOptions } = request;
  const status = bare?.status ?? statusOf(reply.raw);
  const route = request.is404 ? "unmatched" : (routeOptions.url ?? "unmatched");
  metrics.request({ method, route, status: String(status) }, isEvents(request, reply) ? undefined : elapsedMs / 1000);
  // A server that ends, or is asked whether it is ready, says 503 on purpose.
  const level = status >= 500 && status !== 503 ? "error" : "info";
  const done = bare !== undefined || reply.raw.writableFinished;
  const reason = bare?.reason;
  request.log[level]({ method, path: pathOf(request), status, reason, ms: Math.round(elapsedMs), done }, "request");
}

// Headers count as sent from when Node has them: behind another answer they wait for their turn, which may never come.
function statusOf(response: ServerResponse): number {
  const hasBegun = response.writableFinished || (response.headersSent && response.socket !== null);
  return hasBegun ? response.statusCode : NO_ANSWER;
}

/** How long a stream of events was open says nothing about the server. */
function isEvents(request: FastifyRequest, reply: FastifyReply): boolean {
  return request.method !== "HEAD" && String(reply.getHeader("content-type")).startsWith("text/event-stream");
}

/** The path alone: a query may hold a token. */
export function pathOf(request: FastifyRequest): string {
  const target = (request.raw.url ?? "").replace(/^https?:\/\/[^/?#]*/i, "");
  return target.split(/[?#;]/, 1)[0] || "/";
}
