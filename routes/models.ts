// The models that this server knows, usable or not.

import type { App, RouteContext } from "../src/http/context.js";
import { modelListSchema } from "../src/http/contracts.js";
import { answers } from "../src/http/openapi.js";

export function modelRoutes(app: App, { host }: RouteContext): void {
  app.route({
    method: "GET",
    url: "/api/models",
    schema: {
      operationId: "listModels",
      tags: ["Models"],
      summary: "List the models",
      ...answers({
        200: modelListSchema.describe("The models, and the one that a Session gets unless it names another"),
      }),
    },
    handler: async () => host.models(),
  });
}
