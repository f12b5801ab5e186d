// The reference: for machines, and for people on a page that loads nothing from elsewhere.

import type { RouteOptions } from "fastify";
import { z } from "zod";
import type { App } from "../src/http/context.js";
import { HttpError } from "../src/http/errors.js";
import { answersBeside, content } from "../src/http/openapi.js";
import type { Reference } from "../src/http/reference.js";

const PAGE = "/docs";

/** @param routes all that there are when the first request comes */
export function docsRoutes(app: App, routes: readonly RouteOptions[]): void {
  let made: Promise<Reference> | undefined;
  const reference = (): Promise<Reference> => {
    made ??= import("../src/http/reference.js").then(({ createReference }) => createReference(routes, PAGE));
    return made;
  };
  app.addHook("onClose", async () => {
    await (await made?.catch(() => undefined))?.close(); // A failure was whoever's that asked.
  });

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
    handler: async () => (await reference()).json() as { openapi: string },
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
    handler: async (_request, reply) => {
      return reply.type("application/yaml; charset=utf-8").send((await reference()).yaml());
    },
  });

  for (const url of [PAGE, `${PAGE}/*`]) {
    app.route({
      method: "GET",
      url,
      schema: { hide: true },
      handler: async (request, reply) => {
        const { status, headers, body } = await (await reference()).page(request.raw.url ?? PAGE, request.headers);
        if (status === 404) throw new HttpError("not_found", "there is nothing at this path");
        return reply.code(status).headers(headers).send(body);
      },
    });
  }
}
