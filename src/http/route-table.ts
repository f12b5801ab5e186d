// Which methods a path knows, for 405 and OPTIONS. Filled by Fastify's own onRoute hook, so it cannot fall behind.

import type { FastifyInstance } from "fastify";

export interface RouteTable {
  /** @returns the methods that this path takes, in a fixed order; empty for an unknown path. */
  methodsOf(path: string): string[];
}

/** Watches the routes that are registered from now on. */
export function createRouteTable(app: FastifyInstance): RouteTable {
  const routes = new Map<string, { pattern: RegExp; methods: Set<string> }>();
  app.addHook("onRoute", ({ url, method }) => {
    if (url === "*") return;
    const route = routes.get(url) ?? { pattern: patternOf(url), methods: new Set<string>() };
    for (const each of [method].flat()) route.methods.add(each);
    routes.set(url, route);
  });
  return {
    methodsOf(path) {
      const found = new Set<string>();
      for (const { pattern, methods } of routes.values()) {
        if (pattern.test(path)) for (const method of methods) found.add(method);
      }
      if (found.size > 0) found.add("OPTIONS");
      return [...found].sort();
    },
  };
}

function patternOf(url: string): RegExp {
  const parts = url.split("/").map((part) => {
    if (part.startsWith(":")) return "[^/]+";
    return part === "*" ? ".*" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${parts.join("/")}$`);
}
