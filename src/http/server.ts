// The HTTP server: everything that holds for every request stands here, in the order in which it happens. Ids and the
// Host check, CORS, then Origin, token and drain, then the route. Whatever goes wrong is answered in one shape.

import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import Fastify, { type FastifyBaseLogger, type FastifyReply, type FastifyRequest, LogController } from "fastify";
import type { Logger } from "pino";
import { registerRoutes } from "../../routes/index.js";
import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import type { SessionHost } from "../session/types.js";
import { createAccess } from "./access.js";
import { answerBadRequest, answerConnect } from "./bad-request.js";
import { limitBodies } from "./body-deadline.js";
import type { App, RouteContext } from "./context.js";
import { errorBody, HttpError, refusalOf, statusOf } from "./errors.js";
import { answerHalfOpen } from "./half-open.js";
import { IdempotencyKeys } from "./idempotency.js";
import { createLog } from "./logging.js";
import { createMetrics, type Metrics } from "./metrics.js";
import { createRecorder, pathOf, type Recorder } from "./recorder.js";
import { answerBeforeBody, bodyIsOver } from "./rest-of-body.js";
import { createRouteTable, type RouteTable } from "./route-table.js";
import { StreamSlots } from "./streams.js";
import { inTurn } from "./turn.js";
import { acceptOnlyJson, refuseFields, validatorCompiler } from "./validation.js";

export interface ServerParts {
  config: Config;
  host: SessionHost;
  clock: Clock;
  newId: () => string;
  log?: Logger;
  /** Left out: keys that end with the process. */
  keys?: IdempotencyKeys;
  /** Given when other layers add figures of their own. */
  metrics?: Metrics;
  /** Whoever asks for Sessions waits for it: what an earlier process left is in order then. Must not reject. */
  recovered?: () => Promise<void>;
}

const MAX_PARAM_LENGTH = 1024;
const CORS_MAX_AGE_S = 600;

/** Builds the server; the caller listens and closes. */
export async function createServer(parts: ServerParts): Promise<App> {
  const { config, clock, newId } = parts;
  const log: FastifyBaseLogger = parts.log ?? createLog(config);
  const metrics = parts.metrics ?? createMetrics();
  const recorder = createRecorder({ clock, newId, log, metrics });
  const app: App = Fastify({
    loggerInstance: log,
    logController: new LogController({ disableRequestLogging: true, requestIdLogLabel: "requestId" }),
    bodyLimit: config.bodyLimit,
    // See body-deadline.ts; the headers have Node's own limit.
    requestTimeout: 0,
    genReqId: (request) => requestId(request, newId),
    return503OnClosing: false,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    // Our own check answers a missing Host in the one shape.
    http: { requireHostHeader: false },
    // Fastify loads compilers of its own unless it is given others: ours are set below, before any route.
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    clientErrorHandler: (error, socket) => answerBadRequest(error, socket as Socket, { clock, recorder }),
    frameworkErrors: (error, request, reply) => {
      recorder.follow(request, reply);
      reply.header("x-request-id", request.id);
      answerError(error, request, reply);
    },
  }).withTypeProvider();

  app.setValidatorCompiler(validatorCompiler);
  // Answers are ours, built to their types; the tests hold each against its schema.
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  acceptOnlyJson(app);

  const context: RouteContext = {
    ...parts,
    metrics,
    recorder,
    streams: new StreamSlots(config.maxStreams),
    keys: parts.keys ?? new IdempotencyKeys(clock),
  };
  metrics.gauge("omnid_streams", "Open event streams", () => context.streams.open);

  const table = createRouteTable(app);
  // First of all: a plugin keeps the error handler that stood when it was registered.
  app.setErrorHandler(answerError);
  await addHooks(app, context, { table, recovered: parts.recovered });
  answerExpectations(app, clock, recorder);
  answerConnect(app.server, { clock, recorder });
  answerHalfOpen(app.server);
  app.setNotFoundHandler((request) => refuseUnknown(request, table));
  await registerRoutes(app, context);
  return app;
}

async function addHooks(
  app: App,
  context: RouteContext,
  { table, recovered }: { table: RouteTable; recovered: ServerParts["recovered"] },
): Promise<void> {
  const { config, host, clock, recorder } = context;
  const access = createAccess(config);
  app.decorateRequest("owner", null);

  // First, and in the turn in which the request came: bad bytes may be right behind it.
  app.addHook("onRequest", (request, reply, done) => {
    recorder.follow(request, reply);
    inTurn(request.raw, reply.raw, done);
  });
  limitBodies(app, clock, recorder);
  answerBeforeBody(app, clock);

  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
    reply.header("x-content-type-options", "nosniff");
    if (!/^\/(healthz|readyz)$/.test(request.routeOptions.url ?? "")) access.checkHost(request.raw);
  });

  if (config.corsOrigins.length > 0) await registerCors(app, config.corsOrigins);

  app.addHook("onRequest", async (request, reply) => {
    access.checkOrigin(request.raw);
    if (request.method === "OPTIONS") return answerOptions(request, reply, table);
    const route = request.is404 ? pathOf(request) : (request.routeOptions.url ?? "");
    const isApi = route === "/api" || route.startsWith("/api/");
    if (isApi || route === "/metrics") {
      const query = request.routeOptions.config.takesQueryToken ? (request.query as Record<string, unknown>) : {};
      const token = query.access_token;
      request.owner = access.authenticate(request.raw, typeof token === "string" ? token : undefined);
    }
    if (request.is404) refuseUnknown(request, table);
    if (isApi || route === "/readyz") await recovered?.();
    if (isApi && host.draining) {
      throw new HttpError("shutting_down", "the server is shutting down", { headers: { connection: "close" } });
    }
  });

  app.addHook("preValidation", async (request) => {
    const { config, schema } = request.routeOptions;
    if (request.body === undefined && config.bodyIsOptional) request.body = {};
    if (request.body !== undefined && schema?.body === undefined) refuseFields(request.body);
  });
}

async function registerCors(app: App, origins: readonly string[]): Promise<void> {
  const { default: cors } = await import("@fastify/cors");
  const listed = new Set<string | undefined>(origins);
  await app.register(cors, {
    origin: (origin, done) => done(null, listed.has(origin)),
    methods: ["GET", "HEAD", "POST", "PATCH", "DELETE"],
    allowedHeaders: ["Authorization", "Content-Type", "Last-Event-ID", "Idempotency-Key", "X-Request-Id"],
    exposedHeaders: ["x-request-id", "retry-after", "location"],
    maxAge: CORS_MAX_AGE_S,
    strictPreflight: false,
  });
}

function answerOptions(request: FastifyRequest, reply: FastifyReply, table: RouteTable): FastifyReply {
  const methods = table.methodsOf(pathOf(request));
  if (methods.length === 0) throw new HttpError("not_found", "there is nothing at this path");
  return reply.code(204).header("allow", methods.join(", ")).send();
}

function refuseUnknown(request: FastifyRequest, table: RouteTable): never {
  const methods = table.methodsOf(pathOf(request));
  // A path that takes the method and has nothing there: a file of the documentation that does not exist.
  if (methods.length === 0 || methods.includes(request.method)) {
    throw new HttpError("not_found", "there is nothing at this path");
  }
  const allow = methods.join(", ");
  throw new HttpError("method_not_allowed", `this path takes ${allow}`, { headers: { allow } });
}

function answerError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const refusal = refusalOf(error);
  if (refusal === undefined) request.log.error({ err: error }, "request failed");
  const { code, message, details, headers } =
    refusal ?? new HttpError("internal", "something failed inside the server; its log has this request id");
  // A frame of its own: the type provider would hold the answer against the schema of the route.
  reply.code(statusOf(code)).headers(headers).type("application/json; charset=utf-8");
  reply.serializer(JSON.stringify).send(errorBody(code, message, details));
}

/** Node would answer a bare 417 to an expectation that nobody can meet. */
function answerExpectations(app: App, clock: Clock, recorder: Recorder): void {
  app.server.on("checkExpectation", async (request, response) => {
    const status = statusOf("expectation_failed");
    const requestId = recorder.answered({ status, method: request.method });
    const body = JSON.stringify(errorBody("expectation_failed", "this server meets no expectation but 100-continue"));
    response.writeHead(status, {
      "content-type": "application/json; charset=utf-8",
      "content-length": Buffer.byteLength(body),
      "x-request-id": requestId,
    });
    response.write(body);
    await bodyIsOver(request, response, clock);
    response.end();
  });
}

function unused(): never {
  throw new Error("every route is compiled by the compilers that are set");
}

// What a client sends is taken over only when it could not be anything but an id.
function requestId(request: IncomingMessage, newId: () => string): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(given) ? given : newId();
}
