// A Session of another's history.

import type { App, RouteContext } from "../src/http/context.js";
import { sessionParams, sessionSchema } from "../src/http/contracts.js";
import { forkBody } from "../src/http/contracts-fork.js";
import { HttpError, orThrow } from "../src/http/errors.js";
import { answersToChange, OF_A_SESSION } from "../src/http/openapi.js";
import { answerMade } from "./sessions.js";

export function forkRoutes(app: App, { host }: RouteContext): void {
  app.route({
    method: "POST",
    url: "/api/sessions/:id/fork",
    schema: {
      operationId: "forkSession",
      tags: ["Sessions"],
      summary: "Fork a Session",
      description:
        "A new Session in the same Workspace, under the same model or another, whose history is this one's up to and including a record. It may end with a Prompt or with outputs that the model has not been given: its next prompt goes out together with them.",
      params: sessionParams,
      body: forkBody,
      ...answersToChange(
        { 201: sessionSchema.describe("The new Session") },
        ...OF_A_SESSION,
        "unknown_model",
        "ordinal_not_committed",
        "task_in_progress",
      ),
    },
    handler: async (request, reply) => {
      const { ordinal, provider, modelId } = request.body;
      const model = provider === undefined || modelId === undefined ? {} : { provider, modelId };
      const forked = await host.fork(request.params.id, { ordinal, ...model }, request.owner);
      if (forked === undefined) throw new HttpError("session_not_found", "there is no such Session");
      return answerMade(reply, orThrow(forked).view());
    },
  });
}
