// Clients that end their half of a connection behind what they ask for, and methods that take a connection over.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { type RunningServer, startServer } from "../support/http-server.js";

const get = (path: string, version = "1.1") => `GET ${path} HTTP/${version}\r\nhost: 127.0.0.1\r\n\r\n`;

/** A server that begins with nothing before it knows that its client has ended its half. */
async function startAfterEnd(): Promise<RunningServer> {
  let begin = () => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const server = await startServer({}, systemClock(), () => begun);
  server.app.server.on("connection", (socket: Socket) => socket.on("end", begin));
  return server;
}

/** Made without a request. */
async function sessionOf(server: RunningServer): Promise<string> {
  const made = await server.host.create({}, null);
  if (!made.ok) throw new Error(made.message);
  return made.value.view().sessionId;
}

/** Sends bytes and FIN in one go. @returns all that comes until the server has ended its half too. */
async function sayAndEnd(server: RunningServer, bytes: string): Promise<string> {
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true });
  socket.end(bytes);
  return textOf(socket);
}

/** However it closes: `once` would take the error in front of that for its own. */
async function closed(socket: Socket): Promise<void> {
  if (!socket.destroyed) await new Promise((resolve) => socket.once("close", resolve));
}

async function textOf(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("utf8").on("data", (piece) => {
    text += piece;
  });
  await once(socket, "end");
  socket.destroy();
  return text;
}

test.each(["1.1", "1.0"])(
  "a request of HTTP/%s that is whole is answered, and then the connection ends",
  async (version) => {
    const asked = await startAfterEnd();
    expect(await sayAndEnd(asked, get("/api/sessions", version))).toMatch(/^HTTP\/1.1 200 .*\{"sessions":\[.*\}$/s);
    const told = await startAfterEnd();
    const body = '{"title":"mine"}';
    const post = `POST /api/sessions HTTP/${version}\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    expect(await sayAndEnd(told, post)).toMatch(/^HTTP\/1.1 201 .*"title":"mine"/s);
  },
);

test("an answer of many pieces arrives whole", async () => {
  const server = await startAfterEnd();
  const id = await sessionOf(server);
  server.host.sessions.get(id)!.fill(3000, 1000);
  const text = await sayAndEnd(server, get(`/api/sessions/${id}/messages`));
  expect(text.length).toBeGreaterThan(3_000_000);
  expect(text).toMatch(/\r\n0\r\n\r\n$/);
});

test.each([
  ["", 20, startAfterEnd],
  [", more of them than are read at once", 100, startServer],
])("requests that were sent without waiting are all answered in order%s", async (_, count, start) => {
  const server = await start();
  const heads = Array.from({ length: count }, (_none, n) =>
    get(`/api/sessions/${n}`).replace("\r\n\r\n", `\r\nx-request-id: r${n}\r\n\r\n`),
  );
  const text = await sayAndEnd(server, heads.join(""));
  const ids = [...text.matchAll(/^x-request-id: (\S+)/gm)].map(([, id]) => id);
  expect(ids).toEqual(heads.map((_head, n) => `r${n}`));
});

test("a request that is cut off is refused as before", async () => {
  const server = await startServer();
  const cut =
    "POST /api/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{";
  expect(await sayAndEnd(server, cut)).toMatch(/^HTTP\/1.1 400 .*"code":"invalid_request"/s);
});

test.each([
  ["that begins late", startAfterEnd],
  ["that begins at once", startServer],
])("a stream of events %s ends with its client's half, and leaves no reader (C2)", async (_, start) => {
  for (const bytesOf of [
    (stream: string) => stream,
    (stream: string) => get("/healthz") + stream,
    () => get("/api/events"),
  ]) {
    const server = await start();
    const id = await sessionOf(server);
    const text = await sayAndEnd(server, bytesOf(get(`/api/sessions/${id}/stream`)));
    expect(text).toMatch(/text\/event-stream.*\nretry: /s);
    expect(await (await fetch(`${server.url}/metrics`)).text()).toMatch(/^omnid_streams 0$/m);
  }
});

test("a client that is gone for good is noticed once something is written to it", async () => {
  const server = await startServer();
  const id = await sessionOf(server);
  server.host.sessions.get(id)!.fill(30_000, 1000);
  const connected = once(server.app.server, "connection") as Promise<[Socket]>;
  const client = connect(server.port, "127.0.0.1");
  client.pause();
  client.end(get(`/api/sessions/${id}/messages`));
  const [socket] = await connected;
  await once(client, "finish");
  client.destroy();
  await closed(socket);
});

test("CONNECT is answered as a method that no path takes, in its turn, and its connection ends", async () => {
  const server = await startServer();
  const ask = "CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\nbytes for somebody else";
  for (const before of ["", get("/healthz")]) {
    const socket = connect(server.port, "127.0.0.1");
    socket.write(before + ask);
    const text = await textOf(socket);
    const answers = text.split(/(?=HTTP\/1.1 )/);
    expect(answers).toHaveLength(before === "" ? 1 : 2);
    expect(answers.at(-1)).toMatch(/^HTTP\/1.1 405 Method Not Allowed\r\n.*\r\nallow: GET, HEAD, POST/s);
    expect(JSON.parse(text.slice(text.lastIndexOf("\r\n\r\n") + 4))).toMatchObject({
      error: { code: "method_not_allowed" },
    });
  }
  expect(server.logged()).toContain('"method":"CONNECT","status":405');
});

test("a client that asks for CONNECT and resets costs nothing but its connection", async () => {
  const server = await startServer();
  const connected = once(server.app.server, "connection") as Promise<[Socket]>;
  const client = connect(server.port, "127.0.0.1").on("error", () => {});
  const asked = once(server.app.server, "connect");
  client.write("CONNECT example.org:443 HTTP/1.1\r\nhost: example.org:443\r\n\r\n");
  const [socket] = await connected;
  await asked;
  client.resetAndDestroy();
  await closed(socket);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});
