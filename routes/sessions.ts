// Sessions: made, listed, read, changed and removed.

import type { FastifyReply } from "fastify";
import type { App, RouteContext } from "../src/http/context.js";
import {
  createSessionBody,
  listQuery,
  patchSessionBody,
  sessionListSchema,
  sessionParams,
  sessionSchema,
} from "../src/http/contracts.js";
import { idempotencyHeaders } from "../src/http/contracts-headers.js";
import { HttpError, orThrow } from "../src/http/errors.js";
import { idempotencyKey } from "../src/http/idempotency.js";
import { answers, answersToChange, noContent, OF_A_SESSION, optionalBody } from "../src/http/openapi.js";
import type { CreateOptions, CreateSession, Owner, SessionView } from "../src/session/types.js";
import { useSession } from "./use-session.js";

const DEFAULT_PAGE = 50;

/** Answers 201 with a Session that was made. */
export function answerMade(reply: FastifyReply, view: SessionView): FastifyReply {
  return reply
    .code(201)
    .header("location", `/api/sessions/${encodeURIComponent(view.sessionId)}`)
    .send(view);
}

export function sessionRoutes(app: App, { host, keys }: RouteContext): void {
  const create = async (body: CreateSession, owner: Owner, options: CreateOptions = {}): Promise<SessionView> =>
    orThrow(await host.create(body, owner, options)).view();

  const createOnce = async (body: CreateSession, owner: Owner, key: string): Promise<SessionView> => {
    const claim = await keys.claim<SessionView>({ owner, method: "POST", path: "/api/sessions" }, key, body, "settled");
    if (claim.kind === "repeated") return claim.value;
    let made: SessionView | undefined;
    try {
      const beforeRecorded = (sessionId: string) => claim.first.promise({ sessionId, owner });
      made = await create(body, owner, { beforeRecorded });
      return made;
    } finally {
      await claim.first.settle(made);
    }
  };

  app.route({
    method: "POST",
    url: "/api/sessions",
    config: { bodyIsOptional: true },
    schema: {
      operationId: "createSession",
      tags: ["Sessions"],
      summary: "Make a Session",
      description: "Its history has one record at once, the `session_meta`.",
      headers: idempotencyHeaders,
      body: createSessionBody,
      ...optionalBody,
      ...answersToChange(
        { 201: sessionSchema.describe("The Session") },
        "unknown_model",
        "workspace_not_found",
        "not_allowed",
        "idempotency_mismatch",
        "too_many_sessions",
        "storage_failed",
      ),
    },
    handler: async (request, reply) => {
      const key = idempotencyKey(request.headers["idempotency-key"]);
      const body = request.body as CreateSession;
      const view = await (key === undefined ? create(body, request.owner) : createOnce(body, request.owner, key));
      return answerMade(reply, view);
    },
  });

  app.route({
    method: "GET",
    url: "/api/sessions",
    schema: {
      operationId: "listSessions",
      tags: ["Sessions"],
      summary: "List Sessions, the newest activity first",
      querystring: listQuery,
      ...answers(
        { 200: sessionListSchema.describe("A page; `nextCursor` is there while more follow") },
        "invalid_request",
      ),
    },
    handler: async (request) => {
      const { limit = DEFAULT_PAGE, archived = false, cursor, parent } = request.query;
      const query = { limit, archived, ...(cursor && { cursor }), ...(parent && { parent }) };
      return orThrow(await host.list(query, request.owner));
    },
  });

  app.route({
    method: "GET",
    url: "/api/sessions/:id",
    schema: {
      operationId: "getSession",
      tags: ["Sessions"],
      summary: "Read a Session",
      params: sessionParams,
      ...answers({ 200: sessionSchema.describe("The Session") }, ...OF_A_SESSION),
    },
    handler: (request) => useSession(host, request.params.id, request.owner, (session) => session.view()),
  });

  app.route({
    method: "PATCH",
    url: "/api/sessions/:id",
    config: { bodyIsOptional: true },
    schema: {
      operationId: "updateSession",
      tags: ["Sessions"],
      summary: "Change a Session",
      description:
        "A child that works for its parent has its parent's approval mode: another is refused with `task_in_progress` until it is done.",
      params: sessionParams,
      body: patchSessionBody,
      ...optionalBody,
      ...answersToChange({ 200: sessionSchema.describe("The Session as it is now") }, ...OF_A_SESSION),
    },
    handler: (request) =>
      useSession(host, request.params.id, request.owner, async (session) => orThrow(await session.patch(request.body))),
  });

  app.route({
    method: "DELETE",
    url: "/api/sessions/:id",
    schema: {
      operationId: "deleteSession",
      tags: ["Sessions"],
      summary: "Remove a Session",
      description: "A running Task is aborted first and streams end. Its children go with it; a named Workspace stays.",
      params: sessionParams,
      ...answersToChange({ 204: noContent("It is gone") }, "session_not_found", "storage_failed"),
    },
    handler: async (request, reply) => {
      const removed = await host.remove(request.params.id, request.owner);
      if (!removed) throw new HttpError("session_not_found", "there is no such Session");
      return reply.code(204).send();
    },
  });
}
