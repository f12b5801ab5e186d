// What a route is given, and what the hooks leave on a request for it.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { FastifyBaseLogger, FastifyInstance, RawServerDefault } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import type { Owner, SessionHost } from "../session/types.js";
import type { IdempotencyKeys } from "./idempotency.js";
import type { Metrics } from "./metrics.js";
import type { Recorder } from "./recorder.js";
import type { StreamSlots } from "./streams.js";

export type App = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  ZodTypeProvider
>;

export interface RouteContext {
  config: Config;
  host: SessionHost;
  clock: Clock;
  metrics: Metrics;
  recorder: Recorder;
  streams: StreamSlots;
  keys: IdempotencyKeys;
}

declare module "fastify" {
  interface FastifyRequest {
    /** Whose request it is; set before any handler runs. */
    owner: Owner;
  }
  interface FastifyContextConfig {
    /** The route also takes `?access_token=`. */
    takesQueryToken?: boolean;
    /** The route may be called without a body. */
    bodyIsOptional?: boolean;
    /** How long the body may take to come, where it is not the usual time. */
    bodyTimeoutMs?: number;
  }
}
