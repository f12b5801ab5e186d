// Clients that ask for a history and leave, or never read what they asked for.

import { once } from "node:events";
import { readdirSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { expect, test, vi } from "vitest";
import { type Server, startOmnid } from "../support/server.js";
import { answer, startUpstream } from "../support/upstream.js";
import { at, history, makeSession, prompt, untilIdle } from "./api.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

async function withHistory(piece: string) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config() });
  const id = await makeSession(server);
  upstream.script(answer(piece), answer("more"));
  await prompt(server, id, "Say much.");
  await untilIdle(server, id);
  return { server, id, get: `GET ${at(id, "/messages")} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n` };
}

/** Traces that the process has open for reading or writing. */
function openTraces({ pid }: Server): number {
  const fds = `/proc/${pid}/fd`;
  return readdirSync(fds).filter((fd) => {
    try {
      return readlinkSync(`${fds}/${fd}`).endsWith(".jsonl");
    } catch {
      return false; // closed meanwhile
    }
  }).length;
}

async function open(server: Server, bytes: string) {
  const socket = connect(server.port, "127.0.0.1").on("error", () => {});
  socket.pause();
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}

test("whoever leaves before the answer has begun leaves no file open", async () => {
  const { server, id, get } = await withHistory("x".repeat(1_000_000));
  const before = openTraces(server);
  for (let index = 0; index < 40; index++) {
    const socket = await open(server, get.repeat(1 + (index % 3)));
    await new Promise((resolve) => setTimeout(resolve, index % 8));
    socket.resetAndDestroy();
  }
  await expect.poll(() => openTraces(server), { timeout: 30_000 }).toBeLessThanOrEqual(before);
  await history(server, id);
  expect(server.printed()).not.toContain("garbage collection");
});

test("six hundred requests sent at once on a connection that reads nothing cost the memory of one", async () => {
  const { server, id, get } = await withHistory("x".repeat(3_000_000));
  await history(server, id);
  const before = server.rss();
  const socket = await open(server, get.repeat(600));
  let peak = 0;
  for (let look = 0; look < 50; look++) {
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    peak = Math.max(peak, server.rss());
  }
  expect((peak - before) / 2 ** 20).toBeLessThan(150);
  expect(openTraces(server)).toBeLessThan(10);
  socket.destroy();
});

test("a long record that many ask for and nobody reads costs each of them a piece of it", async () => {
  const { server, id, get } = await withHistory("x".repeat(5_000_000));
  await history(server, id);
  const before = server.rss();
  const sockets = [];
  for (let count = 0; count < 40; count++) sockets.push(await open(server, get));
  await expect.poll(() => openTraces(server), { timeout: 30_000 }).toBeGreaterThanOrEqual(40);
  let peak = 0;
  for (let look = 0; look < 50; look++) {
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    peak = Math.max(peak, server.rss());
  }
  // Forty times what they asked for, parsed and not, is 600 MiB.
  expect((peak - before) / 2 ** 20).toBeLessThan(200);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => openTraces(server), { timeout: 30_000 }).toBeLessThan(3);
});

test("requests sent at once on a connection are answered in their order, each whole, a prompt among them", async () => {
  const { server, id } = await withHistory("x".repeat(500_000));
  const body = JSON.stringify({ input: "and now?" });
  const requests = [
    `GET ${at(id, "/messages")}`,
    "GET /healthz",
    `POST ${at(id, "/tasks")}`,
    ...Array.from({ length: 100 }, () => `GET ${at(id, "")}`),
  ];
  const bytes = requests.map((line, index) => {
    const more = line.startsWith("POST") ? `content-type: application/json\r\ncontent-length: ${body.length}\r\n` : "";
    const end = index === requests.length - 1 ? "connection: close\r\n" : "";
    return `${line} HTTP/1.1\r\nhost: 127.0.0.1\r\n${more}${end}\r\n${more === "" ? "" : body}`;
  });
  const socket = await open(server, bytes.join(""));
  let text = "";
  for await (const chunk of socket) text += chunk;
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, status]) => Number(status));
  expect(statuses).toEqual(requests.map((line) => (line.startsWith("POST") ? 202 : 200)));
  await untilIdle(server, id);
});
