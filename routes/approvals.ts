// Calls that wait for a person, and the person's answer.

import type { App, RouteContext } from "../src/http/context.js";
import { approvalListSchema, approvalParams, decideBody, sessionParams } from "../src/http/contracts.js";
import { orThrow } from "../src/http/errors.js";
import { answers, answersToChange, noContent, OF_A_SESSION } from "../src/http/openapi.js";
import { useSession } from "./use-session.js";

export function approvalRoutes(app: App, { host }: RouteContext): void {
  app.route({
    method: "GET",
    url: "/api/sessions/:id/approvals",
    schema: {
      operationId: "listApprovals",
      tags: ["Approvals"],
      summary: "Calls that wait for a decision, the children's included",
      params: sessionParams,
      ...answers({ 200: approvalListSchema.describe("At most one of each Session") }, ...OF_A_SESSION),
    },
    handler: (request) =>
      useSession(host, request.params.id, request.owner, (session) => ({ approvals: session.approvals() })),
  });

  app.route({
    method: "POST",
    url: "/api/sessions/:sessionId/approvals/:toolCallId",
    schema: {
      operationId: "decideApproval",
      tags: ["Approvals"],
      summary: "Allow or deny a call",
      description:
        "Answers once the decision is in the Trace. The first decision wins; a child's is given at the child.",
      params: approvalParams,
      body: decideBody,
      ...answersToChange(
        { 204: noContent("The decision is recorded") },
        ...OF_A_SESSION,
        "approval_not_found",
        "approval_already_decided",
      ),
    },
    handler: async (request, reply) => {
      const { sessionId, toolCallId } = request.params;
      const { decision, reason } = request.body;
      return useSession(host, sessionId, request.owner, async (session) => {
        orThrow(await session.decide(toolCallId, { decision, ...(reason !== undefined && { reason }) }));
        return reply.code(204).send();
      });
    },
  });
}
