// What is counted and logged is what was answered, also where Fastify had no part in it.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import { systemClock } from "../../src/clock.js";
import { refuse } from "../../src/result.js";
import { call, makeSession, openStream, type RunningServer, raw, startServer } from "../support/http-server.js";
import { manualClock } from "../support/manual-clock.js";

const HOST = "host: localhost\r\n";
const CLOSE = `${HOST}connection: close\r\n`;

interface Line {
  level: number;
  msg: string;
  requestId?: string;
  status?: number;
}

/** One line for each request so far, in order. */
function lines(server: RunningServer): Line[] {
  const all = server.logged().trimEnd().split("\n");
  return all.map((line) => JSON.parse(line)).filter(({ msg }) => msg === "request");
}

/** What is counted of a metric by its labels, `/metrics` itself left out. */
async function counted(server: RunningServer, metric = "omnid_http_requests_total"): Promise<Record<string, number>> {
  const { text } = await call(server, "GET", "/metrics");
  const series = text.matchAll(/^(\w+)\{method="(\w+)",route="([^"]+)",status="(\d+)"\} (\d+)$/gm);
  const own = [...series].filter(([, name, , route]) => name === metric && route !== "/metrics");
  return Object.fromEntries(own.map(([, , method, route, status, n]) => [`${method} ${route} ${status}`, Number(n)]));
}

const durations = (server: RunningServer) => counted(server, "omnid_http_request_duration_seconds_count");

/** Sends bytes and keeps the connection. */
async function send(server: RunningServer, bytes: string): Promise<Socket> {
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {}).resume();
  onTestFinished(() => void socket.destroy());
  await new Promise((resolve) => socket.write(bytes, resolve));
  return socket;
}

const post = (path: string, type: string) => `POST ${path} HTTP/1.1\r\n${HOST}content-type: ${type}\r\n`;

test.each([
  ["/api/sessions", "application/json"],
  ["/api/sessions/import", "application/x-ndjson"],
])("a client that leaves %s before its body has come was answered nothing: 499, not 200", async (path, type) => {
  const server = await startServer();
  const begun = once(server.app.server, "request");
  const socket = await send(server, `${post(path, type)}content-length: 100\r\n\r\n{"ti`);
  await begun;
  socket.resetAndDestroy();
  await vi.waitFor(() => expect(lines(server)).toMatchObject([{ method: "POST", path, status: 499, done: false }]));
  expect(await counted(server)).toEqual({ [`POST ${path} 499`]: 1 });
  expect(await durations(server)).toEqual({ [`POST ${path} 499`]: 1 });
});

test.each([
  ["bytes that are no HTTP", "garbage\r\n\r\n", "unknown unmatched 400"],
  ["headers without end", `GET / HTTP/1.1\r\n${CLOSE}x: ${"y".repeat(40_000)}\r\n\r\n`, "unknown unmatched 431"],
  ["an expectation", `POST / HTTP/1.1\r\n${CLOSE}expect: miracles\r\n\r\n`, "POST unmatched 417"],
  ["a path that is no URL", `GET /api/%zz HTTP/1.1\r\n${CLOSE}\r\n`, "GET unmatched 400"],
  ["a parameter without end", `GET /api/sessions/${"x".repeat(3000)} HTTP/1.1\r\n${CLOSE}\r\n`, "GET unmatched 414"],
  [
    "a body that is badly framed",
    `${post("/api/sessions", "application/json")}transfer-encoding: chunked\r\n\r\nzz\r\n`,
    "POST /api/sessions 400",
  ],
])("%s: counted once, and logged under the id of the answer", async (_what, bytes, series) => {
  const server = await startServer();
  const answer = await raw(server, bytes);
  const [, status, requestId] = /^HTTP\/1\.1 (\d+) .*?\r\nx-request-id: (\S+)\r\n/is.exec(answer) ?? [];
  await vi.waitFor(() => expect(lines(server)).toMatchObject([{ requestId, status: Number(status) }]));
  expect(await counted(server)).toEqual({ [series]: 1 });
});

test("bad bytes right behind requests: those are answered, and counted as what they were, then the bytes", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  let open = () => {};
  server.host.gate = new Promise((resolve) => {
    open = resolve;
  });
  const tasks = `/api/sessions/${id}/tasks`;
  const body = '{"input":"hello"}';
  const bad = once(server.app.server, "clientError");
  const answers = raw(
    server,
    `GET /readyz HTTP/1.1\r\n${HOST}\r\n${post(tasks, "application/json")}content-length: ${body.length}\r\n\r\n${body}\x00\r\n`,
  );
  await bad;
  open();
  expect((await answers).match(/HTTP\/1\.1 \d+ [^\r]*/g)).toEqual([
    "HTTP/1.1 200 OK",
    "HTTP/1.1 202 Accepted",
    "HTTP/1.1 400 Bad Request",
  ]);
  await vi.waitFor(async () =>
    expect(await counted(server)).toEqual({
      "POST /api/sessions 201": 1,
      "GET /readyz 200": 1,
      "POST /api/sessions/:id/tasks 202": 1,
      "unknown unmatched 400": 1,
    }),
  );
});

test("bad bytes behind a request that has no answer in time end the connection", async () => {
  const clock = manualClock();
  const server = await startServer({}, clock);
  const id = await makeSession(server);
  server.host.gate = new Promise(() => {});
  const body = '{"input":"hello"}';
  const path = `/api/sessions/${id}/tasks`;
  const bad = once(server.app.server, "clientError");
  const socket = await send(
    server,
    `${post(path, "application/json")}content-length: ${body.length}\r\n\r\n${body}\x00\r\n`,
  );
  await bad;
  clock.advance(30_000);
  await once(socket, "end");
  await vi.waitFor(() => expect(lines(server).at(-1)).toMatchObject({ path, status: 499 }));
});

test("a request whose turn on the connection never came was answered nothing", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const stream = `/api/sessions/${id}/stream`;
  const socket = await send(
    server,
    [stream, stream, "/healthz"].map((path) => `GET ${path} HTTP/1.1\r\n${HOST}\r\n`).join(""),
  );
  await vi.waitFor(async () => expect((await call(server, "GET", "/metrics")).text).toMatch(/^omnid_streams 1$/m));
  socket.destroy();
  const route = "/api/sessions/:id/stream";
  await vi.waitFor(async () =>
    expect(await counted(server)).toEqual({
      "POST /api/sessions 201": 1,
      [`GET ${route} 200`]: 1,
      [`GET ${route} 499`]: 1,
      "GET /healthz 499": 1,
    }),
  );
});

test("every answer is timed but those that are streams of events", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const tasks = `/api/sessions/${id}/tasks`;
  expect((await call(server, "POST", tasks, { input: "hello" })).status).toBe(202);
  expect((await call(server, "GET", `/api/sessions/${id}/trace`)).status).toBe(200);
  expect((await call(server, "POST", "/api/sessions/import")).status).toBe(415);
  expect((await call(server, "HEAD", `/api/sessions/${id}/stream`)).status).toBe(200);
  expect((await call(server, "GET", "/api/sessions/none/stream")).status).toBe(404);
  const streams = [
    await openStream(server, `/api/sessions/${id}/stream`),
    await openStream(server, "/api/events"),
    await openStream(server, tasks, {
      method: "POST",
      headers: { accept: "text/event-stream" },
      body: { input: "more" },
    }),
  ];
  expect(streams.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const stream of streams) stream.close();
  const timed = {
    "POST /api/sessions 201": 1,
    "POST /api/sessions/:id/tasks 202": 1,
    "GET /api/sessions/:id/trace 200": 1,
    "POST /api/sessions/import 415": 1,
    "HEAD /api/sessions/:id/stream 200": 1,
    "GET /api/sessions/:id/stream 404": 1,
  };
  await vi.waitFor(async () =>
    expect(await counted(server)).toEqual({
      ...timed,
      "GET /api/sessions/:id/stream 200": 1,
      "GET /api/events 200": 1,
      "POST /api/sessions/:id/tasks 200": 1,
    }),
  );
  expect(await durations(server)).toEqual(timed);
});

test.each([
  ["shutting_down", 503, 30],
  ["storage_failed", 507, 50],
] as const)(
  "a refusal with %s, %i, is logged at level %i: who means it reports no error",
  async (code, status, level) => {
    const server = await startServer();
    server.host.create = async () => refuse(code, "not now");
    expect((await call(server, "POST", "/api/sessions", {})).status).toBe(status);
    await vi.waitFor(() => expect(lines(server)).toMatchObject([{ status, level }]));
  },
);

test("a wall clock that is set back does not make a request shorter", async () => {
  let [now, monotonic] = [Date.now(), 0];
  const clock = { ...systemClock(), now: () => (now -= 60_000), monotonic: () => (monotonic += 1_000) };
  const server = await startServer({}, clock);
  await call(server, "GET", "/healthz");
  const { text } = await call(server, "GET", "/metrics");
  expect(text).toMatch(/^omnid_http_request_duration_seconds_sum\{method="GET",route="\/healthz",status="200"\} 1$/m);
  expect(lines(server)[0]).toMatchObject({ path: "/healthz", ms: 1_000 });
});

test("who was told that this is no HTTP, and keeps the connection, has it closed", async () => {
  const clock = manualClock();
  const server = await startServer({}, clock);
  const connected = once(server.app.server, "connection");
  const socket = await send(server, "garbage\r\n\r\n");
  const [ours] = (await connected) as [Socket];
  await once(socket, "end");
  expect(ours.destroyed).toBe(false);
  clock.advance(5_000);
  await once(ours, "close");
});
