import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import * as contracts from "../src/http/contracts.js";
import * as events from "../src/http/contracts-stream.js";
import { refuse } from "../src/result.js";
import { StorageError } from "../src/trace/storage-error.js";
import { type Loose, makeSession, startServer } from "./support/http-server.js";

const PATHS_WITHOUT_WORDS = /^\/(docs|$)|^\*$|\.(html|css|js|svg|png|ico|woff2|webmanifest)$/;

async function made() {
  const { app } = await startServer();
  const ask = async (url: string) => (await app.inject({ url, headers: { host: "localhost" } })).payload;
  return { document: JSON.parse(await ask("/openapi.json")) as Loose, yaml: await ask("/openapi.yaml"), app };
}

describe("the document", () => {
  test("the committed file is what the routes say now: npm run openapi", async () => {
    expect((await made()).yaml).toBe(await readFile("openapi.yaml", "utf8"));
  });

  test("its version is the package's", async () => {
    expect((await made()).document.info.version).toBe(JSON.parse(await readFile("package.json", "utf8")).version);
  });

  test("every route stands in it and everything in it is a route", async () => {
    const { document, app } = await made();
    const documented = new Set<string>();
    for (const [path, item] of Object.entries<Loose>(document.paths)) {
      for (const method of Object.keys(item)) {
        const url = path.replaceAll(/\{(\w+)\}/g, ":$1");
        documented.add(nameless(`${method.toUpperCase()} ${url}`));
        expect([url, app.hasRoute({ method: method.toUpperCase() as "GET", url })]).toEqual([url, true]);
      }
    }
    const existing = routesOf(app.printRoutes({ commonPrefix: false })).filter(
      ({ method, url }) => method !== "HEAD" && method !== "OPTIONS" && !PATHS_WITHOUT_WORDS.test(url),
    );
    expect(existing.length).toBeGreaterThan(15);
    for (const { method, url } of existing) expect([...documented]).toContain(nameless(`${method} ${url}`));
    expect(existing).toHaveLength(documented.size);
  });

  test("every operation has a name of its own, a summary, a tag and an error, and every answer a description", async () => {
    const { document } = await made();
    const names = new Set<string>();
    for (const [path, item] of Object.entries<Loose>(document.paths)) {
      for (const [method, operation] of Object.entries<Loose>(item)) {
        const where = `${method} ${path}`;
        expect([where, names.has(operation.operationId)]).toEqual([where, false]);
        names.add(operation.operationId);
        expect([where, operation.summary?.length > 3, operation.tags?.length]).toEqual([where, true, 1]);
        expect([where, Object.keys(operation.responses).some((status) => status.startsWith("4"))]).toEqual([
          where,
          true,
        ]);
        for (const [status, answer] of Object.entries<Loose>(operation.responses)) {
          expect([where, status, answer.description]).not.toEqual([where, status, "Default Response"]);
          if (Number(status) < 400) continue;
          const media = answer.content["application/json"];
          expect([where, status, media.schema]).toEqual([where, status, { $ref: "#/components/schemas/Error" }]);
          expect(Object.keys(media.examples).length).toBeGreaterThan(0);
        }
        expect(JSON.stringify(operation)).not.toContain("x-omnid");
      }
    }
  });

  test("the protocol's payloads and the streams' events are components, and every reference leads somewhere", async () => {
    const { document } = await made();
    const { schemas } = document.components;
    for (const name of [
      "OmniMessage",
      "TextPayload",
      "PartialToolCallOutputPayload",
      "TokenUsagePayload",
      "TaskStateEvent",
      "ResyncRequiredEvent",
      "ShutdownEvent",
      "SessionDeletedEvent",
    ]) {
      expect(Object.keys(schemas)).toContain(name);
    }
    const text = JSON.stringify(document);
    const references = new Set([...text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map((match) => match[1]));
    expect([...references].sort()).toEqual(Object.keys(schemas).sort());
    expect(Object.keys(schemas).filter((name) => name.endsWith("Input"))).toEqual([]);
  });
});

describe("on a disk that refuses", () => {
  const unreadable = (): never => {
    throw new StorageError("read_failed", "a trace could not be read");
  };
  const unwritable = async () => refuse("storage_failed", "a record could not be written");

  /** A host of one Session that does nothing for which the disk is needed. @param isRead what there is can be read */
  async function refusing(isRead: boolean) {
    const server = await startServer();
    const id = await makeSession(server);
    const { host } = server;
    Object.assign(host, { create: unwritable, fork: unwritable, importTrace: unwritable, remove: unreadable });
    if (!isRead) Object.assign(host, { use: unreadable });
    const session = host.sessions.get(id) as object;
    for (const call of ["patch", "submit", "steer", "compact", "recall", "decide", "abort"])
      Object.assign(session, { [call]: unwritable });
    return { server, id };
  }

  const bodies: Loose = {
    steerTask: { input: "hello" },
    submitTask: { input: "hello" },
    decideApproval: { decision: "allow" },
    forkSession: { ordinal: 0 },
    importSession: "{}",
  };

  /** The status alone: a stream that is opened has no end. */
  async function statusOf(url: string, method: string, operationId: string): Promise<number> {
    const leave = new AbortController();
    const body = bodies[operationId];
    const type = typeof body === "string" ? "application/x-ndjson" : "application/json";
    const { status } = await fetch(url, {
      method,
      signal: leave.signal,
      redirect: "manual",
      ...(body && { headers: { "content-type": type }, body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
    leave.abort();
    return status;
  }

  test("every call answers what is documented of it, and 507 is documented where it comes and nowhere else", async () => {
    const { document } = await made();
    const documented = new Set<string>();
    const found = new Set<string>();
    for (const isRead of [true, false]) {
      const { server, id } = await refusing(isRead);
      for (const [path, item] of Object.entries<Loose>(document.paths)) {
        const url = server.url + path.replaceAll(/\{(id|sessionId)\}/g, id).replaceAll(/\{\w+\}/g, "call-1");
        for (const [method, { operationId, responses }] of Object.entries<Loose>(item)) {
          const status = String(await statusOf(url, method.toUpperCase(), operationId));
          expect([operationId, Object.keys(responses)]).toEqual([operationId, expect.arrayContaining([status])]);
          if (status === "507") found.add(operationId);
          if ("507" in responses) documented.add(operationId);
        }
      }
    }
    expect([...documented].sort()).toEqual([...found].sort());
    expect(found.size).toBeGreaterThan(15);
  });
});

test("every example of a component fits its schema", () => {
  let examples = 0;
  for (const schema of Object.values({ ...contracts, ...events })) {
    if (!(schema instanceof z.ZodType)) continue;
    for (const example of (schema.meta()?.examples ?? []) as unknown[]) {
      examples += 1;
      expect(schema.safeParse(example)).toMatchObject({ success: true });
    }
  }
  expect(examples).toBeGreaterThan(7);
});

/** The table does not tell the names of two parameters at one place apart. */
function nameless(route: string): string {
  return route.replaceAll(/:[^/]+/g, ":");
}

/** Fastify's own table: a tree of paths, each with its methods. */
function routesOf(table: string): { method: string; url: string }[] {
  const above: { depth: number; path: string }[] = [];
  return table.split("\n").flatMap((line) => {
    const match = /^([│├└─\s]*)(\S+)(?: \(([A-Z, ]+)\))?$/.exec(line);
    if (match === null) return [];
    const [, indent = "", part = "", methods] = match;
    while (above.length > 0 && above.at(-1)!.depth >= indent.length) above.pop();
    const path = (above.at(-1)?.path ?? "") + part;
    above.push({ depth: indent.length, path });
    return methods === undefined ? [] : methods.split(", ").map((method) => ({ method, url: path }));
  });
}
