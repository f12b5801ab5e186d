// Streams over HTTP/2, where many share a connection: what goes through `response.write` and never to the socket.

import { once } from "node:events";
import { type ClientHttp2Session, type ClientHttp2Stream, connect } from "node:http2";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { Channel, type ChannelStat } from "../../src/channel/channel.js";
import { ChannelFigures } from "../../src/channel/channel-figures.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import { systemClock } from "../../src/clock.js";
import { openSse } from "../../src/http/sse.js";
import { EPOCH, idle, message, parseStream, range, seqs } from "../channel/support.js";

async function serve(options: { maxEvents?: number } = {}) {
  const stats: ChannelStat[] = [];
  const figures = new ChannelFigures();
  const channel = new Channel({
    epoch: EPOCH,
    maxEvents: 10_000,
    maxBytes: 8_388_608,
    heartbeat: new HeartbeatWheel({ intervalMs: 15_000, clock: systemClock() }),
    figures,
    onStat: (stat) => stats.push(stat),
    ...options,
  });
  const app = Fastify({ http2: true });
  app.addHook("onRequest", async (request, reply) => {
    reply.header("x-request-id", request.id);
  });
  app.get("/stream", (request, reply) => {
    const lastEventId = request.headers["last-event-id"] as string | undefined;
    // The types of the two versions differ; what is used of them does not.
    const sink = openSse(request as never, reply as never);
    channel.subscribe(sink, { snapshot: idle, ...(lastEventId === undefined ? {} : { lastEventId }) });
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  onTestFinished(() => app.close());
  const { port } = app.server.address() as { port: number };
  const session = connect(`http://127.0.0.1:${port}`);
  session.on("error", () => {});
  onTestFinished(() => session.destroy());
  return { channel, figures, stats, session };
}

class Reader {
  readonly stream: ClientHttp2Stream;
  readonly headers: Promise<Record<string, unknown>>;
  readonly #pieces: string[] = [];
  /** The latest text: what `until` looks at, so that a long stream is not searched again for each read. */
  #tail = "";
  readonly #waiting = new Set<() => void>();

  constructor(session: ClientHttp2Session, headers: Record<string, string> = {}) {
    this.stream = session.request({ ":path": "/stream", ...headers });
    this.headers = once(this.stream, "response").then(([received]) => received);
    this.stream.setEncoding("utf8");
    this.stream.on("error", () => {});
    this.stream.on("data", (text) => {
      this.#pieces.push(text);
      this.#tail = (this.#tail + text).slice(-16_384);
      for (const look of this.#waiting) look();
    });
  }

  until(found: string): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (this.#tail.includes(found)) resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  get text(): string {
    return this.#pieces.join("");
  }

  get events() {
    return parseStream(this.text).events;
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("the headers come at once, with the hooks' and without those that HTTP/2 forbids, then the events as they are", async () => {
  const { channel, session } = await serve();
  const reader = new Reader(session);
  const headers = await reader.headers;
  expect(headers).toMatchObject({
    ":status": 200,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-request-id": expect.any(String),
  });
  expect(headers).not.toHaveProperty("connection");
  expect(headers).not.toHaveProperty("transfer-encoding");
  for (let n = 1; n <= 50; n += 1) {
    channel.publish(message(n));
    if (n % 7 === 0) await turn();
  }
  channel.end(JSON.stringify({ type: "shutdown", retryMs: 1_000 }));
  await once(reader.stream, "close");
  expect(seqs(reader.events)).toEqual(range(1, 50));
  expect(reader.events.at(-1)?.data).toContain("shutdown");
  expect(parseStream(reader.text).rest).toBe("");
  expect(channel.subscribers).toBe(0);
});

test("thirty streams share a connection, each with its own place, and Node has nothing to warn of", async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => warnings.push(warning);
  process.on("warning", warn);
  onTestFinished(() => void process.off("warning", warn));
  const { channel, session } = await serve();
  const readers: Reader[] = [];
  for (let n = 1; n <= 30; n += 1) {
    channel.publish(message(n));
    readers.push(new Reader(session, { "last-event-id": `${EPOCH}-${n - 1}` }));
  }
  while (channel.subscribers < 30) await turn();
  channel.publish(message(31));
  for (const [index, reader] of readers.entries()) {
    await reader.until(message(31));
    expect(seqs(reader.events)).toEqual(range(index + 1, 31));
  }
  for (const reader of readers.slice(0, 29)) reader.stream.close();
  while (channel.subscribers > 1) await turn();
  channel.publish(message(32));
  await (readers[29] as Reader).until(message(32));
  expect(warnings).toEqual([]);
});

test("a stream that is not read is blocked by itself, costs a bounded amount, and is told what it missed", async () => {
  const { channel, figures, session, stats } = await serve({ maxEvents: 200 });
  const stalled = new Reader(session);
  const fast = new Reader(session);
  await Promise.all([stalled.until("task_state"), fast.until("task_state")]);
  stalled.stream.pause();
  const large = (n: number) => JSON.stringify({ n, text: "x".repeat(1_000) });
  for (let n = 1; n <= 3_000; n += 1) {
    channel.publish(large(n));
    if (n % 20 === 0) await fast.until(`"n":${n},`);
  }
  expect(figures.blocked).toBe(1);
  expect(seqs(fast.events)).toEqual(range(1, 3_000));
  stalled.stream.resume();
  await stalled.until("resync_required");
  channel.publish(large(3_001));
  await stalled.until('"n":3001,');
  const skip = stalled.events.findIndex(({ data }) => data.includes("resync_required"));
  const before = seqs(stalled.events.slice(0, skip));
  expect(before).toEqual(range(1, before.length));
  expect(stalled.events[skip]?.id).toBe(`${EPOCH}-3000`);
  expect(seqs(stalled.events.slice(skip))).toEqual([3_001]);
  expect(stats).toEqual([{ name: "resync_required", reason: "slow_reader" }]);
  expect(figures.blocked).toBe(0);
});

test("a client that resets a stream, or the whole connection, is forgotten", async () => {
  const { channel, session } = await serve();
  const [first, second] = [new Reader(session), new Reader(session)];
  await Promise.all([first.until("task_state"), second.until("task_state")]);
  first.stream.close();
  while (channel.subscribers > 1) await turn();
  channel.publish(message(1));
  await second.until(message(1));
  session.destroy();
  while (channel.subscribers > 0) {
    channel.publish(message(0));
    await turn();
  }
});
