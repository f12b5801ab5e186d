// The reference: the OpenAPI document, made from the schemas that the routes are held to, and the page that shows it.
//
// It stands in a Fastify of its own that nobody connects to and that is made when the reference is first asked for:
// few servers are ever asked, and what makes it takes a tenth of the start and of the memory.

import swagger, { type FastifyDynamicSwaggerOptions } from "@fastify/swagger";
import swaggerUi from "@fastify/swagger-ui";
import Fastify, { type FastifySchema, type RouteOptions } from "fastify";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { VERSION } from "../version.js";
import { finish, type OpenApiDocument } from "./openapi.js";
import { tidyComponents } from "./openapi-components.js";

export interface Reference {
  json(): unknown;
  yaml(): string;
  /** A file of the page. `path` is what stands in the request, the query included. */
  page(path: string, headers: Readonly<Record<string, unknown>>): Promise<ReferenceFile>;
  close(): Promise<void>;
}

export interface ReferenceFile {
  status: number;
  headers: Record<string, string>;
  body: Buffer;
}

/** Whatever tells of the connection that is not one. */
const OF_CONNECTION = new Set(["connection", "date", "keep-alive", "transfer-encoding"]);

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

// One document is shown here, so there is none to choose. A call that does not end is never shown by the page, which
// waits for the end: it says how to follow a stream instead.
const STREAMS = ["streamSession", "streamEvents"].map((id) => `#operations-Streams-${id} .execute-wrapper`);
const PAGE_STYLE = `
.swagger-ui .topbar { display: none; }
.swagger-ui .info { margin: 32px 0; }
${STREAMS.join(", ")} { padding: 16px 20px; text-align: left; }
${STREAMS.map((each) => `${each} > *`).join(", ")} { display: none; }
${STREAMS.map((each) => `${each}::after`).join(", ")} {
  content: "This does not end, so the page cannot show it. Follow it with curl -N, or as docs/clients.md says.";
}
`;

/** @param routes as they were registered @param prefix the path of the page */
export async function createReference(routes: readonly RouteOptions[], prefix: string): Promise<Reference> {
  const app = Fastify({ exposeHeadRoutes: false });
  // Nothing but files is sent from here, and nothing is taken.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (data) => JSON.stringify(data));
  await app.register(swagger, DOCUMENT);
  for (const { method, url, schema } of routes) {
    if (schema !== undefined && !isHidden(schema)) app.route({ method, url, schema, handler: async () => undefined });
  }
  await app.register(swaggerUi, {
    routePrefix: prefix,
    staticCSP: PAGE_POLICY,
    uiConfig: { validatorUrl: null, tryItOutEnabled: true, persistAuthorization: false },
    theme: { title: "omnid API", css: [{ filename: "omnid.css", content: PAGE_STYLE }] },
  });
  await app.ready();
  return {
    json: () => app.swagger(),
    yaml: () => app.swagger({ yaml: true }),
    page: async (path, headers) => {
      const answer = await app.inject({ method: "GET", url: path, headers: headers as Record<string, string> });
      const kept = Object.entries(answer.headers).filter(([name]) => !OF_CONNECTION.has(name));
      return {
        status: answer.statusCode,
        headers: Object.fromEntries(kept.map(([name, value]) => [name, String(value)])),
        body: answer.rawPayload,
      };
    },
    close: () => app.close(),
  };
}

const isHidden = (schema: FastifySchema): boolean => "hide" in schema && schema.hide === true;

const DOCUMENT: FastifyDynamicSwaggerOptions = {
  openapi: {
    openapi: "3.1.0",
    info: {
      title: "omnid",
      version: VERSION,
      description: "A server for AI agents: prompts in, OmniMessages out, over SSE that never loses one.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/", description: "This server" }],
    tags: [
      { name: "Sessions", description: "One conversation under one model and one Workspace." },
      { name: "Tasks", description: "What one prompt starts." },
      { name: "Approvals", description: "Calls of tools that wait for a person." },
      { name: "Streams", description: "What happens, while it happens." },
      { name: "History", description: "What happened." },
      { name: "Models", description: "What can be talked to." },
      { name: "Server", description: "Health, figures and this document." },
    ],
    components: {
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "Needed while tokens are configured." },
        queryToken: {
          type: "apiKey",
          in: "query",
          name: "access_token",
          description: "On event streams only, for readers that cannot set headers.",
        },
      },
    },
    // A server without tokens asks for none.
    security: [{ bearer: [] }, {}],
  },
  convertConstToEnum: false,
  transform: jsonSchemaTransform,
  transformObject: (document) => {
    const made = jsonSchemaTransformObject(document) as OpenApiDocument;
    for (const item of Object.values(made.paths)) for (const operation of Object.values(item)) finish(operation);
    return tidyComponents(made) as ReturnType<typeof jsonSchemaTransformObject>;
  },
};
