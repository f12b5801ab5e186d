// What reaches a Session while it works: steering, what waits and can be taken back, the end of a wait.

import type { App, RouteContext } from "../src/http/context.js";
import { sessionParams } from "../src/http/contracts.js";
import {
  emptyBody,
  queueItemParams,
  queueItemSchema,
  queueSchema,
  skippedSchema,
  steerBody,
  steeredSchema,
} from "../src/http/contracts-queue.js";
import { orThrow } from "../src/http/errors.js";
import { answers, answersToChange, OF_A_SESSION, optionalBody } from "../src/http/openapi.js";
import { useSession } from "./use-session.js";

export function queueRoutes(app: App, { host }: RouteContext): void {
  app.route({
    method: "POST",
    url: "/api/sessions/:id/steer",
    schema: {
      operationId: "steerTask",
      tags: ["Tasks"],
      summary: "Say something into the running Task",
      description:
        "The model gets it as a user message with the next Request of the same Task. After an abort it stays in the queue's list until it is taken back.",
      params: sessionParams,
      body: steerBody,
      ...answersToChange(
        { 202: steeredSchema.describe("Recorded: it will be delivered") },
        ...OF_A_SESSION,
        "not_running",
        "model_unavailable",
        "images_not_supported",
        "file_not_supported",
        "too_many_queued",
      ),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, async (session) =>
        reply.code(202).send(orThrow(await session.steer(request.body.input))),
      ),
  });

  app.route({
    method: "GET",
    url: "/api/sessions/:id/queue",
    schema: {
      operationId: "listQueue",
      tags: ["Tasks"],
      summary: "What waits, the oldest first",
      params: sessionParams,
      ...answers({ 200: queueSchema.describe("Tasks to come and steering not delivered") }, ...OF_A_SESSION),
    },
    handler: (request) => useSession(host, request.params.id, request.owner, (session) => ({ items: session.queue() })),
  });

  app.route({
    method: "DELETE",
    url: "/api/sessions/:id/queue/:itemId",
    schema: {
      operationId: "recallQueueItem",
      tags: ["Tasks"],
      summary: "Take back what waits",
      params: queueItemParams,
      ...answersToChange(
        { 200: queueItemSchema.describe("The item: it will not run") },
        ...OF_A_SESSION,
        "not_pending",
      ),
    },
    handler: (request) =>
      useSession(host, request.params.id, request.owner, async (session) =>
        orThrow(await session.recall(request.params.itemId)),
      ),
  });

  app.route({
    method: "POST",
    url: "/api/sessions/:id/retry-now",
    config: { bodyIsOptional: true },
    schema: {
      operationId: "retryNow",
      tags: ["Tasks"],
      summary: "End the wait for a further try",
      description: "It uses up no try.",
      params: sessionParams,
      body: emptyBody,
      ...optionalBody,
      ...answersToChange({ 200: skippedSchema.describe("Whether there was a wait") }, ...OF_A_SESSION),
    },
    handler: (request) =>
      useSession(host, request.params.id, request.owner, (session) => ({ skipped: session.retryNow() })),
  });
}
