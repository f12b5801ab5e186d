// The ways to fan one event out to many readers that are compared: ours, the plainest one, and three libraries.
// Each gets its data as a string that is serialised once; what it does with it is its own affair.

import { existsSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import Fastify from "fastify";
import { EACH_TURN } from "../../src/channel/flush-pacer.js";
import { channelServer } from "./channel-server.js";

export interface Fanout {
  readonly server: Server;
  /** Where its stream is; `/` unless given. */
  readonly path?: string;
  publish(json: string): void;
}

const OF_PACKAGES = ["better-sse", "@fastify/sse", "fastify-sse-v2"];
export const CONTENDERS = ["node:http", "omnid", "omnid, each turn", ...OF_PACKAGES];

export function isInstalled(name: string): boolean {
  if (!OF_PACKAGES.includes(name)) return true;
  const paths = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return paths.some((path) => existsSync(`${path}/${name}/package.json`));
}

/** @returns it, listening, and where its stream is. */
export async function startFanout(name: string): Promise<{ fanout: Fanout; url: string }> {
  const fanout = await make(name);
  await new Promise<void>((resolve) => fanout.server.listen(0, "127.0.0.1", resolve));
  const { port } = fanout.server.address() as AddressInfo;
  return { fanout, url: `http://127.0.0.1:${port}${fanout.path ?? "/"}` };
}

function make(name: string): Promise<Fanout> | Fanout {
  switch (name) {
    case "node:http":
      return plainHttp();
    case "omnid":
      return channelServer();
    case "omnid, each turn":
      // Nothing is ever held back: it shows what the rest saves.
      return channelServer(EACH_TURN);
    case "better-sse":
      return betterSse();
    case "@fastify/sse":
      return fastifySse();
    case "fastify-sse-v2":
      return fastifySseV2();
    default:
      throw new Error(`no contender ${name}`);
  }
}

/** The baseline: a shared buffer, one `res.write` for each event and reader. */
function plainHttp(): Fanout {
  const readers = new Set<ServerResponse>();
  let seq = 0;
  const server = createServer((request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.flushHeaders();
    readers.add(response);
    request.on("close", () => readers.delete(response));
  });
  return {
    server,
    publish: (json) => {
      const frame = Buffer.from(`id: 1785035422531-${++seq}\ndata: ${json}\n\n`);
      for (const response of readers) response.write(frame);
    },
  };
}

async function betterSse(): Promise<Fanout> {
  const { createChannel, createSession } = await import("better-sse");
  const channel = createChannel();
  const serializer = (data: unknown) => data as string;
  let seq = 0;
  const server = createServer((request, response) => {
    void createSession(request, response, { serializer }).then((session) => channel.register(session));
  });
  return { server, publish: (json) => channel.broadcast(json, "message", { eventId: `1785035422531-${++seq}` }) };
}

interface SseSender {
  send(message: { id?: string; data: unknown }): Promise<void>;
  keepAlive(): void;
}

async function fastifySse(): Promise<Fanout> {
  const { default: plugin } = await import("@fastify/sse");
  const app = Fastify();
  const readers = new Set<SseSender>();
  let seq = 0;
  await app.register(plugin as never, { serializer: (data: unknown) => data as string } as never);
  app.get("/", { sse: "only" } as never, async (request, reply) => {
    const { sse } = reply as unknown as { sse: SseSender };
    sse.keepAlive();
    // It sends its headers with the first message.
    await sse.send({ data: "open" });
    readers.add(sse);
    request.raw.on("close", () => readers.delete(sse));
  });
  await app.ready();
  return {
    server: app.server,
    publish: (json) => {
      const message = { id: `1785035422531-${++seq}`, data: json };
      for (const sse of readers) void sse.send(message).catch(() => readers.delete(sse));
    },
  };
}

async function fastifySseV2(): Promise<Fanout> {
  const { FastifySSEPlugin } = await import("fastify-sse-v2");
  const app = Fastify();
  const readers = new Set<{ sse(message: { id?: string; data?: string; comment?: string }): void }>();
  let seq = 0;
  await app.register(FastifySSEPlugin as never);
  app.get("/", (request, reply) => {
    const reader = reply as unknown as typeof readers extends Set<infer R> ? R : never;
    reader.sse({ comment: "open" });
    readers.add(reader);
    request.raw.on("close", () => readers.delete(reader));
  });
  await app.ready();
  return {
    server: app.server,
    publish: (json) => {
      const message = { id: `1785035422531-${++seq}`, data: json };
      for (const reader of readers) reader.sse(message);
    },
  };
}
