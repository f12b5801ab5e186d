// The reference: for machines, and for people on a page that loads nothing from elsewhere.

import swaggerUi from "@fastify/swagger-ui";
import { z } from "zod";
import type { App } from "../src/http/context.js";
import { answersBeside, content } from "../src/http/openapi.js";

// The page sets styles on its elements; its scripts are files of ours.
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

export async function docsRoutes(app: App): Promise<void> {
  app.route({
    method: "GET",
    url: "/openapi.json",
    schema: {
      operationId: "getOpenApiJson",
      tags: ["Server"],
      summary: "This document as JSON",
      security: [],
      ...answersBeside({ 200: z.looseObject({ openapi: z.string() }).describe("The document") }, "host_not_allowed"),
    },
    handler: async () => app.swagger(),
  });

  app.route({
    method: "GET",
    url: "/openapi.yaml",
    schema: {
      operationId: "getOpenApiYaml",
      tags: ["Server"],
      summary: "This document as YAML",
      security: [],
      ...answersBeside({ 200: content("application/yaml", z.string(), "The document") }, "host_not_allowed"),
    },
    handler: async (_request, reply) => reply.type("application/yaml; charset=utf-8").send(app.swagger({ yaml: true })),
  });

  await app.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: PAGE_POLICY,
    uiConfig: { url: "/openapi.json", validatorUrl: null, tryItOutEnabled: true, persistAuthorization: false },
  });
}
