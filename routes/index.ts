// All routes, in the order of the reference.

import type { RouteOptions } from "fastify";
import type { App, RouteContext } from "../src/http/context.js";
import { approvalRoutes } from "./approvals.js";
import { docsRoutes } from "./docs.js";
import { eventRoutes } from "./events.js";
import { forkRoutes } from "./fork.js";
import { healthRoutes } from "./health.js";
import { historyRoutes } from "./history.js";
import { importRoutes } from "./import.js";
import { modelRoutes } from "./models.js";
import { queueRoutes } from "./queue.js";
import { sessionRoutes } from "./sessions.js";
import { streamRoutes } from "./stream.js";
import { taskRoutes } from "./tasks.js";
import { webRoutes } from "./web.js";

export async function registerRoutes(app: App, context: RouteContext): Promise<void> {
  // What the reference is made of; the hook sees every route from here on.
  const routes: RouteOptions[] = [];
  app.addHook("onRoute", (route) => void routes.push(route));
  sessionRoutes(app, context);
  forkRoutes(app, context);
  await importRoutes(app, context);
  modelRoutes(app, context);
  taskRoutes(app, context);
  queueRoutes(app, context);
  approvalRoutes(app, context);
  streamRoutes(app, context);
  eventRoutes(app, context);
  historyRoutes(app, context);
  healthRoutes(app, context);
  docsRoutes(app, routes);
  await webRoutes(app);
}
