// Prompts: started, looked at, aborted. A started Task belongs to the Session, not to the connection that started it.

import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { App, RouteContext } from "../src/http/context.js";
import { acceptedSchema, sessionParams, submitBody, taskParams, taskSchema } from "../src/http/contracts.js";
import { submitHeaders } from "../src/http/contracts-headers.js";
import { abortBody, emptyBody } from "../src/http/contracts-queue.js";
import { channelEvent } from "../src/http/contracts-stream.js";
import { HttpError, orThrow } from "../src/http/errors.js";
import { type First, idempotencyKey } from "../src/http/idempotency.js";
import { answers, answersToChange, noContent, OF_A_SESSION, optionalBody } from "../src/http/openapi.js";
import { isPlace, openStream, prefersEventStream, type Release, resumePoint } from "../src/http/streams.js";
import type { HostedSession } from "../src/session/types.js";
import { useSession } from "./use-session.js";

type Accepted = z.infer<typeof acceptedSchema>;
type Submit = z.infer<typeof submitBody>;

export function taskRoutes(app: App, context: RouteContext): void {
  const { host } = context;

  app.route({
    method: "POST",
    url: "/api/sessions/:id/tasks",
    schema: {
      operationId: "submitTask",
      tags: ["Tasks"],
      summary: "Say something",
      description:
        "Starts a Task. With `Accept: text/event-stream` the answer is this Task's own stream instead, which ends with it.",
      params: sessionParams,
      headers: submitHeaders,
      body: submitBody,
      ...answersToChange(
        {
          200: {
            description: "The Task's stream",
            content: { "text/event-stream": { schema: channelEvent } },
          },
          202: acceptedSchema.describe("Recorded: it will run"),
        },
        ...OF_A_SESSION,
        "task_in_progress",
        "model_unavailable",
        "workspace_missing",
        "images_not_supported",
        "file_not_supported",
        "too_many_queued",
        "idempotency_mismatch",
        "too_many_tasks",
        "too_many_streams",
      ),
    },
    handler: async (request, reply) => {
      const key = idempotencyKey(request.headers["idempotency-key"]);
      const wantsStream = prefersEventStream(request.headers.accept);
      const resumes = wantsStream && isPlace(resumePoint(request));
      if (wantsStream) context.streams.admit(resumes);
      const work = (session: HostedSession) => {
        const release = wantsStream ? context.streams.take(resumes) : undefined;
        return answerSubmit({ request, reply, session, body: request.body, key, release }, context);
      };
      return useSession(host, request.params.id, request.owner, work, { resumes });
    },
  });

  app.route({
    method: "GET",
    url: "/api/sessions/:id/tasks/:taskId",
    schema: {
      operationId: "getTask",
      tags: ["Tasks"],
      summary: "How a Task stands",
      params: taskParams,
      ...answers({ 200: taskSchema.describe("The Task") }, ...OF_A_SESSION, "task_not_found"),
    },
    handler: (request) =>
      useSession(host, request.params.id, request.owner, (session) => {
        const task = session.task(request.params.taskId);
        if (task === undefined) throw new HttpError("task_not_found", "the Session has no such Task");
        return task;
      }),
  });

  app.route({
    method: "POST",
    url: "/api/sessions/:id/abort",
    config: { bodyIsOptional: true },
    schema: {
      operationId: "abortTask",
      tags: ["Tasks"],
      summary: "End the running Task",
      description:
        "Answers once the abort is accepted; a `task_state` says when it is done. The next Task that waits then starts, unless `clearQueue` takes back all that waits.",
      params: sessionParams,
      body: abortBody,
      ...optionalBody,
      ...answersToChange({ 202: noContent("It will end"), 204: noContent("Nothing was running") }, ...OF_A_SESSION),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, async (session) => {
        const wasRunning = orThrow(await session.abort(request.body));
        return reply.code(wasRunning ? 202 : 204).send();
      }),
  });

  app.route({
    method: "POST",
    url: "/api/sessions/:id/compact",
    config: { bodyIsOptional: true },
    schema: {
      operationId: "compactSession",
      tags: ["Tasks"],
      summary: "Put a summary in place of the conversation",
      description:
        "For the model; the history keeps all. The state is `compacting` meanwhile; an abort ends it, and then the old context stays.",
      params: sessionParams,
      body: emptyBody,
      ...optionalBody,
      ...answersToChange(
        { 202: noContent("It has begun") },
        ...OF_A_SESSION,
        "nothing_to_compact",
        "task_in_progress",
        "model_unavailable",
        "too_many_tasks",
      ),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, async (session) => {
        orThrow(await session.compact());
        return reply.code(202).send();
      }),
  });
}

interface Submission {
  request: FastifyRequest;
  reply: FastifyReply;
  session: HostedSession;
  body: Submit;
  key: string | undefined;
  /** The slot of the stream that was asked for; absent when JSON was. */
  release: Release | undefined;
}

async function answerSubmit(submission: Submission, { keys }: RouteContext): Promise<FastifyReply> {
  const { request, reply, session, body, key, release } = submission;
  try {
    if (key === undefined) return await submit(submission, undefined);
    const path = `/api/sessions/${session.id}/tasks`;
    const until = release === undefined ? "settled" : "assigned";
    const claim = await keys.claim<Accepted>({ owner: request.owner, method: "POST", path }, key, body, until);
    if (claim.kind === "first") return await submit(submission, claim.first);
    if (release === undefined) return accept(reply, session, claim.value);
    followTask(submission, release, claim.value.taskId);
    return reply;
  } catch (error) {
    release?.();
    throw error;
  }
}

async function submit(submission: Submission, first: First<Accepted> | undefined): Promise<FastifyReply> {
  const { request, reply, session, body, release } = submission;
  let result: Awaited<ReturnType<HostedSession["submit"]>> | undefined;
  try {
    const { input, thinkingLevel, whenBusy } = body;
    result = await session.submit(input, {
      ...(thinkingLevel && { thinkingLevel }),
      ...(whenBusy && { whenBusy }),
      ...(first && { hasKey: true }),
      beforeRecorded: async (task) => {
        const itemId = task.steerId ?? task.taskId;
        await first?.promise({ sessionId: session.id, owner: request.owner, itemId }, task);
      },
      onAssigned: (task) => {
        first?.assign(task);
        if (release !== undefined) followTask(submission, release, task.taskId);
      },
    });
  } finally {
    await first?.settle(result?.ok === true ? result.value : undefined);
  }
  if (!reply.sent) {
    const task = orThrow(result);
    release?.();
    return accept(reply, session, task);
  }
  // The stream is open and tells the rest, a failure to record included.
  if (!result.ok) request.log.warn({ code: result.code }, "a Task that had been assigned was refused");
  return reply;
}

function followTask({ request, reply, session }: Submission, release: Release, taskId: string): void {
  const lastEventId = resumePoint(request);
  openStream(request, reply, release, (sink) =>
    session.follow(sink, { untilTask: taskId, ...(lastEventId && { lastEventId }) }),
  );
}

function accept(reply: FastifyReply, session: HostedSession, accepted: Accepted): FastifyReply {
  const location = `/api/sessions/${encodeURIComponent(session.id)}/tasks/${encodeURIComponent(accepted.taskId)}`;
  return reply.code(202).header("location", location).send(accepted);
}
