// The stream over real sockets: what arrives byte for byte, and what a reader that stalls, resets or half-closes costs.

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import cors from "@fastify/cors";
import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, expect, test } from "vitest";
import { Channel, type ChannelStat } from "../../src/channel/channel.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import type { Snapshot } from "../../src/channel/subscription.js";
import { systemClock } from "../../src/clock.js";
import { openSse } from "../../src/http/sse.js";
import { EPOCH, idle, message, parseStream, range, seqs, taskState } from "../channel/support.js";

let release: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of release.reverse()) await close();
  release = [];
});

async function serve(options: { maxEvents?: number; maxBytes?: number; snapshot?: () => Snapshot } = {}) {
  const stats: ChannelStat[] = [];
  const channel = new Channel({
    epoch: EPOCH,
    maxEvents: 10_000,
    maxBytes: 8_388_608,
    heartbeat: new HeartbeatWheel({ intervalMs: 15_000, clock: systemClock() }),
    onStat: (stat) => stats.push(stat),
    ...options,
  });
  const app = Fastify({ forceCloseConnections: true });
  const sockets: Socket[] = [];
  app.server.on("connection", (socket) => sockets.push(socket));
  await app.register(cors, { origin: ["https://app.example"], exposedHeaders: ["x-request-id"] });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
  });
  app.get("/json", async () => ({}));
  app.get("/stream", (request, reply) => {
    const lastEventId = request.headers["last-event-id"] as string | undefined;
    const sink = openSse(request, reply);
    channel.subscribe(sink, {
      snapshot: options.snapshot ?? idle,
      ...(lastEventId === undefined ? {} : { lastEventId }),
    });
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  release.push(() => app.close());
  return { app, channel, stats, sockets, port: portOf(app) };
}

const portOf = (app: FastifyInstance) => (app.server.address() as { port: number }).port;

class RawClient {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  readonly chunks: string[] = [];
  /** The latest text: what `until` looks at, so that a long stream is not searched again for each read. */
  #tail = "";
  #waiting: (() => void)[] = [];

  constructor(port: number, head: string) {
    this.socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
    this.socket.setEncoding("utf8");
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
    this.socket.on("data", (text) => {
      this.chunks.push(String(text));
      this.#tail = (this.#tail + text).slice(-16_384);
      for (const check of this.#waiting) check();
    });
    this.socket.on("error", () => {});
    this.socket.on("end", () => this.socket.end());
    this.socket.write(head);
    release.push(async () => void this.socket.destroy());
  }

  get text(): string {
    return this.chunks.join("");
  }

  async until(found: (text: string) => boolean): Promise<string> {
    await new Promise<void>((resolve) => {
      const check = () => {
        if (found(this.#tail)) resolve();
      };
      this.#waiting.push(check);
      check();
    });
    return this.text;
  }
}

const open = (port: number, headers: Record<string, string> = {}, version = "1.1") => {
  const lines = Object.entries({ host: "127.0.0.1", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new RawClient(port, `GET /stream HTTP/${version}\r\n${lines.join("")}\r\n`);
};

const headOf = (text: string) => text.slice(0, text.indexOf("\r\n\r\n"));
const rawBody = (text: string) => text.slice(text.indexOf("\r\n\r\n") + 4);

/** Reads chunked bytes strictly; `isDone` once the last chunk was there. */
function unchunk(text: string): { body: string; isDone: boolean } {
  const bytes = Buffer.from(text);
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return { body: Buffer.concat(parts).toString(), isDone: false };
    const line = bytes.toString("latin1", at, lineEnd);
    assert.match(line, /^[0-9a-f]+$/);
    const size = Number.parseInt(line, 16);
    if (bytes.length < lineEnd + 2 + size + 2) return { body: Buffer.concat(parts).toString(), isDone: false };
    assert.equal(bytes.toString("latin1", lineEnd + 2 + size, lineEnd + 4 + size), "\r\n");
    if (size === 0) {
      assert.equal(lineEnd + 4, bytes.length, "nothing follows the last chunk");
      return { body: Buffer.concat(parts).toString(), isDone: true };
    }
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 4 + size;
  }
}

const eventsOf = (client: RawClient) => parseStream(unchunk(rawBody(client.text)).body).events;
const turn = () => new Promise((resolve) => setImmediate(resolve));

test("status, headers and first event arrive at once, before anything is published (A2, B8)", async () => {
  const { channel, port } = await serve();
  const client = open(port);
  const text = await client.until((text) => text.includes("task_state"));
  expect(text).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  expect(headOf(text)).toContain("content-type: text/event-stream; charset=utf-8");
  expect(headOf(text)).toContain("cache-control: no-cache, no-transform");
  expect(headOf(text)).toContain("x-accel-buffering: no");
  expect(headOf(text)).not.toMatch(/content-(length|encoding)/);
  for (let n = 1; n <= 100; n += 1) {
    channel.publish(message(n));
    if (n % 10 === 0) await turn();
  }
  await client.until((text) => text.includes(message(100)));
  expect(seqs(eventsOf(client))).toEqual(range(1, 100));
});

test("a stream carries the CORS, Vary and request-id headers that a JSON answer carries (B5)", async () => {
  const { port } = await serve();
  const origin = "https://app.example";
  const json = await fetch(`http://127.0.0.1:${port}/json`, { headers: { origin } });
  const client = open(port, { origin });
  const text = await client.until((text) => text.includes("task_state"));
  for (const name of ["access-control-allow-origin", "access-control-expose-headers", "vary"]) {
    expect(headOf(text)).toContain(`${name}: ${json.headers.get(name)}`);
  }
  expect(headOf(text)).toMatch(/x-request-id: \S+/);
});

test("a request that accepts gzip gets a stream without any encoding (B9)", async () => {
  const { port } = await serve();
  const client = open(port, { "accept-encoding": "gzip, br" });
  const text = await client.until((text) => text.includes("task_state"));
  expect(headOf(text)).not.toContain("content-encoding");
});

test("an HTTP/1.0 reader gets the bare event bytes and the end of the connection", async () => {
  const { channel, port } = await serve();
  const client = open(port, {}, "1.0");
  await client.until((text) => text.includes("task_state"));
  channel.publish(message(1));
  channel.end(JSON.stringify({ type: "shutdown", retryMs: 1_000 }));
  await client.closed;
  expect(headOf(client.text)).not.toMatch(/transfer-encoding/i);
  const { events, rest } = parseStream(rawBody(client.text));
  expect(events.map((event) => JSON.parse(event.data).type)).toEqual(["task_state", "model_msg", "shutdown"]);
  expect(rest).toBe("");
});

test("a stream ends with the last chunk and takes its connection with it (C11)", async () => {
  const { channel, port } = await serve();
  const client = open(port);
  await client.until((text) => text.includes("task_state"));
  channel.publish(message(1));
  channel.end(JSON.stringify({ type: "shutdown", retryMs: 1_000 }));
  await client.closed;
  const { body, isDone } = unchunk(rawBody(client.text));
  expect(isDone).toBe(true);
  expect(parseStream(body).events.at(-1)?.data).toContain("shutdown");
  expect(channel.subscribers).toBe(0);
});

test("fetch sees the stream end, whole", async () => {
  const { channel, port } = await serve();
  const response = await fetch(`http://127.0.0.1:${port}/stream`);
  channel.publish(JSON.stringify({ type: "model_msg", text: "北🙂é" }));
  channel.end();
  const { events } = parseStream(await response.text());
  expect(JSON.parse(events[1]?.data as string).text).toBe("北🙂é");
});

test("an injected request, which has no socket, gets the same events", async () => {
  const { app } = await serve({ snapshot: () => ({ events: [taskState()], over: true }) });
  const response = await app.inject({ url: "/stream" });
  expect(response.statusCode).toBe(200);
  expect(response.body).toBe(`retry: 1000\nid: ${EPOCH}-0\nevent: server_event\ndata: ${taskState()}\n\n`);
});

test("a request pipelined behind another does not write into the other's answer", async () => {
  const { channel, port } = await serve();
  const client = new RawClient(port, "GET /stream HTTP/1.1\r\nhost: x\r\n\r\nGET /stream HTTP/1.1\r\nhost: x\r\n\r\n");
  await client.until((text) => text.includes("task_state"));
  channel.publish(message(1));
  await client.until((text) => text.includes(message(1)));
  expect(client.text.split("HTTP/1.1 200")).toHaveLength(2);
  expect(seqs(eventsOf(client))).toEqual([1]);
  client.socket.destroy();
  while (channel.subscribers > 0) await turn();
});

test("forty requests pipelined on a connection share one listener, and each is forgotten when it is gone", async () => {
  const { channel, port, sockets } = await serve();
  const listening = () => sockets[0]?.listenerCount("close") as number;
  const client = open(port);
  await client.until((text) => text.includes("task_state"));
  const ofOne = listening();
  client.socket.write("GET /stream HTTP/1.1\r\nhost: x\r\n\r\n".repeat(39));
  while (channel.subscribers < 40) await turn();
  expect(listening()).toBe(ofOne);
  client.socket.destroy();
  while (channel.subscribers > 0) await turn();
});

test("joining after each of 50 messages gives each exactly the rest (A18, A21)", async () => {
  const { channel, port } = await serve();
  const clients: RawClient[] = [];
  for (let n = 1; n <= 50; n += 1) {
    channel.publish(message(n));
    clients.push(open(port, { "last-event-id": `${EPOCH}-${n}` }));
    await turn();
  }
  while (channel.subscribers < 50) await turn();
  channel.publish(message(51));
  for (const client of clients) await client.until((text) => text.includes(message(51)));
  for (const [index, client] of clients.entries()) expect(seqs(eventsOf(client))).toEqual(range(index + 2, 51));
});

test("five cuts and resumes lose nothing and repeat nothing (A1, A15)", async () => {
  const { channel, port } = await serve();
  const seen: number[] = [];
  let n = 0;
  let headers = {};
  for (let round = 0; round < 5; round += 1) {
    const client = open(port, headers);
    await client.until((text) => text.includes("task_state"));
    for (let i = 0; i < 50; i += 1) channel.publish(message(++n));
    await client.until((text) => text.includes(message(n)));
    client.socket.destroy();
    seen.push(...seqs(eventsOf(client)));
    headers = { "last-event-id": `${EPOCH}-${n}` };
    for (let i = 0; i < 50; i += 1) channel.publish(message(++n));
  }
  const last = open(port, headers);
  await last.until((text) => text.includes(message(n)) && text.includes("task_state"));
  seen.push(...seqs(eventsOf(last)));
  expect(seen).toEqual(range(1, n));
});

test("a replay ten times the socket's buffer reaches a slow reader whole (A23, C5, C6, C7)", async () => {
  const { channel, port } = await serve({ maxBytes: 200_000_000, maxEvents: 100_000 });
  const count = 10_000;
  for (let n = 1; n <= count; n += 1) channel.publish(JSON.stringify({ n, text: "x".repeat(1_000) }));
  const client = open(port, { "last-event-id": `${EPOCH}-0` });
  client.socket.pause();
  while (channel.subscribers === 0) await turn();
  client.socket.resume();
  let pauses = 0;
  client.socket.on("data", () => {
    if (pauses++ % 50 !== 0) return;
    client.socket.pause();
    setImmediate(() => client.socket.resume());
  });
  await client.until((text) => text.slice(-500).includes("task_state"));
  expect(seqs(eventsOf(client))).toEqual(range(1, count));
});

test("60,000 events past 12 readers that do not read: bounded memory, one announced skip each, others unaffected (C3)", async () => {
  const { channel, port, stats, sockets } = await serve({ maxEvents: 1_000 });
  const stalled = range(1, 12).map(() => open(port));
  for (const client of stalled) client.socket.pause();
  const other = open(port);
  let seen = 0;
  other.socket.on("data", (text) => {
    seen += String(text).split("\nid: ").length - 1;
    other.chunks.length = 0;
  });
  while (channel.subscribers < 13) await turn();
  let peakQueued = 0;
  for (let n = 1; n <= 60_000; n += 1) {
    channel.publish(JSON.stringify({ type: "model_msg", n, text: "x".repeat(300) }));
    if (n % 16 !== 0) continue;
    await turn();
    // The one that reads sets the pace: it must not become slow itself.
    if (n % 512 === 0) await other.until((text) => text.includes(`"n":${n - 400},`) || seen >= n - 400);
    if (n % 1_600 === 0) peakQueued = Math.max(peakQueued, ...sockets.map((socket) => socket.writableLength));
  }
  await other.until((text) => text.includes('"n":60000,'));
  expect(stats).toEqual([]);
  expect(peakQueued).toBeGreaterThan(0);
  expect(peakQueued).toBeLessThan(3 * 65_536);
  for (const client of stalled.slice(0, 3)) {
    client.socket.resume();
    await client.until((text) => text.includes("resync_required"));
    await client.until((text) => /resync_required[\s\S]*task_state/.test(text.slice(-3_000)));
    const events = eventsOf(client);
    const numbers = seqs(events);
    expect(numbers).toEqual(range(1, numbers.length));
    const skips = events.filter((event) => event.data.includes("resync_required"));
    expect(skips).toHaveLength(1);
    expect(skips[0]?.id).toBe(`${EPOCH}-60000`);
  }
}, 180_000);

test("a half-closed connection whose reader does not read is closed from this side too (C2)", async () => {
  const { channel, port, sockets } = await serve();
  const client = open(port);
  client.socket.pause();
  while (channel.subscribers === 0) await turn();
  for (let n = 0; n < 2_000; n += 1) channel.publish(JSON.stringify({ n, text: "x".repeat(4_000) }));
  await turn();
  expect(sockets[0]?.writableLength).toBeGreaterThan(0);
  client.socket.end();
  if (!sockets[0]?.destroyed) await once(sockets[0] as Socket, "close");
  expect(channel.subscribers).toBe(0);
});

test("a reader that resets its connection is forgotten, and the others go on (C16)", async () => {
  const { channel, port } = await serve();
  const gone = open(port);
  const stays = open(port);
  while (channel.subscribers < 2) await turn();
  gone.socket.resetAndDestroy();
  while (channel.subscribers > 1) {
    channel.publish(message(0));
    await turn();
  }
  channel.publish(message(7));
  await stays.until((text) => text.includes(message(7)));
  expect(gone.socket.destroyed).toBe(true);
});

test("a fault after the start cuts that connection, is reported once, and the process serves on (B7)", async () => {
  let isBroken = true;
  const snapshot = () => {
    if (isBroken) throw new Error("no state");
    return idle();
  };
  const { channel, port, stats } = await serve({ snapshot });
  const broken = open(port);
  await broken.closed;
  expect(unchunk(rawBody(broken.text)).isDone).toBe(false);
  expect(stats).toEqual([{ name: "reader_failed", error: new Error("no state") }]);
  isBroken = false;
  const fine = open(port);
  await fine.until((text) => text.includes("task_state"));
  expect(channel.subscribers).toBe(1);
});
