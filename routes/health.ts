// Is it alive, is it ready, what are its figures.

import { z } from "zod";
import type { App, RouteContext } from "../src/http/context.js";
import { healthSchema } from "../src/http/contracts.js";
import { HttpError } from "../src/http/errors.js";
import { answersBeside, content } from "../src/http/openapi.js";

export function healthRoutes(app: App, { host, metrics }: RouteContext): void {
  app.route({
    method: "GET",
    url: "/healthz",
    schema: {
      operationId: "getHealth",
      tags: ["Server"],
      summary: "Is it alive?",
      security: [],
      ...answersBeside({ 200: healthSchema.describe("It is") }, "invalid_request"),
    },
    handler: async () => ({ status: "ok" }),
  });

  app.route({
    method: "GET",
    url: "/readyz",
    schema: {
      operationId: "getReadiness",
      tags: ["Server"],
      summary: "Would it take work?",
      description: "Not while it drains, nor while its data directory takes no writes.",
      security: [],
      ...answersBeside({ 200: healthSchema.describe("It would") }, "invalid_request", "shutting_down", "not_ready"),
    },
    handler: async () => {
      if (host.draining) throw new HttpError("shutting_down", "the server is shutting down");
      if (!(await host.ready())) throw new HttpError("not_ready", "the data directory takes no writes");
      return { status: "ok" };
    },
  });

  app.route({
    method: "GET",
    url: "/metrics",
    schema: {
      operationId: "getMetrics",
      tags: ["Server"],
      summary: "Figures for Prometheus",
      ...answersBeside(
        { 200: content("text/plain", z.string(), "Prometheus text format") },
        "unauthorized",
        "host_not_allowed",
        "internal",
      ),
    },
    handler: async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()),
  });
}
