// A server over Sessions in memory on a free port, with every JSON answer held against the schema of its route.

import { randomUUID } from "node:crypto";
import { connect } from "node:net";
import { Writable } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { type Clock, systemClock } from "../../src/clock.js";
import { type Config, loadConfig } from "../../src/config.js";
import type { App } from "../../src/http/context.js";
import { createLog } from "../../src/http/logging.js";
import { createServer } from "../../src/http/server.js";
import { MemoryHost } from "./memory-host.js";

// biome-ignore lint/suspicious/noExplicitAny: an answer is whatever came; what it should be is for expectations to say
export type Loose = any;

export interface RunningServer {
  url: string;
  port: number;
  host: MemoryHost;
  app: App;
  config: Config;
  /** Everything that was logged so far. */
  logged(): string;
  /** Answers that did not fit their schema; the test fails on any. */
  misfits: string[];
}

export function configOf(env: Record<string, string> = {}, files: Record<string, string> = {}): Config {
  const loaded = loadConfig({ PORT: "0", HOME: "/home/nobody", ...env }, (path) => {
    const text = files[path];
    if (text === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
    return text;
  });
  if (!loaded.ok) throw new Error(loaded.problems.join("\n"));
  return loaded.config;
}

/** Starts a server that stops when the test ends. */
export async function startServer(
  env: Record<string, string> = {},
  clock: Clock = systemClock(),
  recovered: () => Promise<void> = async () => {},
): Promise<RunningServer> {
  const config = configOf({ LOG_LEVEL: "debug", ...env });
  const lines: string[] = [];
  const sink = new Writable({
    write(chunk, _encoding, done) {
      lines.push(String(chunk));
      done();
    },
  });
  const host = new MemoryHost({ config, clock, newId: randomUUID });
  const log = createLog(config, sink);
  const app = await createServer({ config, host, clock, newId: randomUUID, log, recovered });
  const misfits: string[] = [];
  app.addHook("onSend", async (request, reply, payload) => {
    const misfit = misfitOf(request, reply, payload);
    if (misfit !== undefined) misfits.push(misfit);
  });
  await app.listen({ host: config.host, port: 0 });
  onTestFinished(async () => {
    host.endStreams();
    app.server.closeAllConnections();
    await app.close();
    if (misfits.length > 0) throw new Error(misfits.join("\n"));
  });
  const { port } = app.server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}`, port, host, app, config, logged: () => lines.join(""), misfits };
}

/** Strict copies of the schemas: a field that the schema does not name is a misfit too, but where it says it is open. */
export function misfitOf(request: FastifyRequest, reply: FastifyReply, payload: unknown): string | undefined {
  const type = String(reply.getHeader("content-type") ?? "");
  if (typeof payload !== "string" || !type.startsWith("application/json") || request.is404) return undefined;
  const where = `${request.method} ${request.routeOptions.url} ${reply.statusCode}`;
  const { response, hide } = (request.routeOptions.schema ?? {}) as {
    response?: Record<string, unknown>;
    hide?: boolean;
  };
  if (hide || request.method === "HEAD") return undefined;
  const declared = response?.[reply.statusCode] as { content?: Record<string, { schema: z.ZodType }> } | z.ZodType;
  if (declared === undefined) return `${where}: no such answer is documented`;
  const schema = declared instanceof z.ZodType ? declared : declared.content?.["application/json"]?.schema;
  if (schema === undefined) return `${where}: the answer is documented as something else than JSON`;
  const value = JSON.parse(payload);
  const parsed = schema.safeParse(value);
  if (!parsed.success) return `${where}: ${z.prettifyError(parsed.error)}`;
  // zod drops what an object schema does not name: what comes back tells what was not named.
  const kept = JSON.stringify(parsed.data).length;
  return kept === JSON.stringify(value).length ? undefined : `${where}: holds fields that its schema does not name`;
}

/** Calls the API with JSON. */
export async function call(
  server: RunningServer,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; headers: Headers; body: Loose; text: string }> {
  const response = await fetch(server.url + path, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
    redirect: "manual",
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text ? JSON.parse(text) : undefined,
    text,
  };
}

/** Makes a Session and returns its id. */
export async function makeSession(server: RunningServer, headers: Record<string, string> = {}): Promise<string> {
  const made = await call(server, "POST", "/api/sessions", {}, headers);
  if (made.status !== 201) throw new Error(`no Session: ${made.text}`);
  return made.body.sessionId;
}

/** Sends bytes as they are and collects what comes back until the server ends the connection. */
export function raw(server: RunningServer, bytes: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(server.port, "127.0.0.1", () => socket.write(bytes));
    let received = "";
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      received += text;
    });
    socket.on("error", reject);
    socket.on("close", () => resolve(received));
  });
}

/** An open event stream, read as it comes. */
export interface OpenStream {
  status: number;
  headers: Headers;
  /** Reads on until `enough` of the text so far, and gives all of it. */
  until(enough: (text: string) => boolean): Promise<string>;
  /** Reads to the end. */
  rest(): Promise<string>;
  close(): void;
}

export async function openStream(
  server: RunningServer,
  path: string,
  options: { headers?: Record<string, string>; method?: string; body?: unknown } = {},
): Promise<OpenStream> {
  const abort = new AbortController();
  const response = await fetch(server.url + path, {
    method: options.method ?? "GET",
    headers: { ...(options.body === undefined ? {} : { "content-type": "application/json" }), ...options.headers },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    signal: abort.signal,
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const read = async (enough: (text: string) => boolean) => {
    while (!enough(text)) {
      const next = await reader?.read();
      if (next === undefined || next.done) break;
      text += next.value;
    }
    return text;
  };
  onTestFinished(() => abort.abort());
  return {
    status: response.status,
    headers: response.headers,
    until: read,
    rest: () => read(() => false),
    close: () => abort.abort(),
  };
}

/** The events of a stream's text, each with its fields as they stand. */
export function eventsIn(text: string): { id?: string; event?: string; data: Loose }[] {
  return text
    .split("\n\n")
    .map((block) => block.split("\n").map((line) => line.split(/: (.*)/s, 2)))
    .filter((fields) => fields.some(([name]) => name === "data"))
    .map((fields) => {
      const found = Object.fromEntries(fields) as Record<string, string>;
      return {
        ...(found.id && { id: found.id }),
        ...(found.event && { event: found.event }),
        data: JSON.parse(found.data!),
      };
    });
}
