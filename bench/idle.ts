// What streams cost on which nothing happens: memory of the server for each of 5,000, and its CPU for their heartbeats.
// Beside the whole of omnid, plain `node:http` with a timer for each stream.
//
// Server and readers are processes of their own. Memory is looked at once the streams have been open for a while; the CPU
// is that of whole heartbeat intervals.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { loadConfig } from "../src/config.js";
import { createLog } from "../src/http/logging.js";
import { startServer } from "../src/main.js";
import { acquireLease } from "../src/session/lease.js";
import { answer, end, holds, report, startRole, temporaryFolder } from "./support/measuring.js";
import { openRaw } from "./support/raw-stream.js";

const isQuick = process.argv.includes("--quick");
const STREAMS = isQuick ? 1000 : 5000;
const SESSIONS = 50;
const HEARTBEAT_MS = 15_000;
const INTERVALS = isQuick ? 1 : 2;
/** Before anything is measured. */
const REST_INTERVALS = 3;
const BAR_KB = 15;
const BAR_CPU = 1.5;
/** The part of the streams that is opened before memory is looked at. */
const WARM_UP = 0.1;
/** So many open at once. */
const AT_ONCE = 50;

const [, , role, argument] = process.argv;
if (role === "server") await (argument === "omnid" ? serveOmnid() : servePlain());
else if (role === "readers") readers();
else await main();

async function main(): Promise<void> {
  const plain = await measure("node:http");
  const ours = await measure("omnid");
  const row = (name: string, { kb, percent }: Figures, bars: string) =>
    `| ${name} | ${kb.toFixed(1)} | ${percent.toFixed(2)} | ${bars} |`;
  report(
    [
      "## Idle streams",
      "",
      `Memory of the server for each of ${STREAMS} open streams, and its CPU for a heartbeat each ${HEARTBEAT_MS / 1000} s as a part of one core, over ${INTERVALS} interval(s). Bars: ${BAR_KB} KB and ${BAR_CPU}%. Lower is better.`,
      "",
      "| server | KB a stream | % of a core | memory holds | CPU holds |",
      "| --- | --- | --- | --- | --- |",
      row("node:http", plain, " | "),
      row("omnid", ours, `${holds(ours.kb, BAR_KB, 1)} | ${holds(ours.percent, BAR_CPU)}`),
    ],
    ours.kb <= BAR_KB && ours.percent <= BAR_CPU,
  );
}

interface Figures {
  kb: number;
  percent: number;
}

async function measure(name: string): Promise<Figures> {
  const self = fileURLToPath(import.meta.url);
  const server = startRole(self, "server", name);
  const clients = startRole(self, "readers");
  const ask = async <T>(what: string): Promise<T> => {
    const told = answer<T>(server, what);
    server.send({ type: what });
    return told;
  };
  try {
    const { urls } = await answer<{ urls: string[] }>(server, "listening");
    const open = async (count: number) => {
      const opened = answer(clients, "opened");
      clients.send({ urls, count });
      await opened;
    };
    // The first ones are for the compiler, and for what a server grows by anyhow.
    await open(STREAMS * WARM_UP);
    const { rss: before } = await ask<{ rss: number }>("rss");
    await open(STREAMS);
    // Some rounds of heartbeats, in which the last of the opening is cleared away: the collector's last full run, which
    // costs as much as two intervals of them, comes when the process has been at rest for a while.
    await pause(HEARTBEAT_MS * REST_INTERVALS);
    const { rss: after } = await ask<{ rss: number }>("rss");
    await ask("mark");
    await pause(HEARTBEAT_MS * INTERVALS);
    const { cpuMicros } = await ask<{ cpuMicros: number }>("cpu");
    process.stderr.write(`idle: ${name}\n`);
    return {
      kb: (after - before) / 1024 / STREAMS,
      // The streams of the warm-up beat too.
      percent: cpuMicros / (1 + WARM_UP) / (HEARTBEAT_MS * INTERVALS * 10),
    };
  } finally {
    await Promise.all([server, clients].map(end));
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function measured(urls: string[]): void {
  let mark = process.cpuUsage();
  process.on("disconnect", () => process.exit());
  process.on("message", ({ type }: { type: string }) => {
    if (type === "mark") mark = process.cpuUsage();
    const { user, system } = process.cpuUsage(mark);
    process.send?.({ type, rss: process.memoryUsage().rss, cpuMicros: user + system });
  });
  process.send?.({ type: "listening", urls });
}

async function serveOmnid(): Promise<void> {
  const dir = temporaryFolder();
  const loaded = loadConfig({ PORT: "0", OMNID_DATA_DIR: dir, LOG_LEVEL: "silent" }, () => "");
  if (!loaded.ok) throw new Error(loaded.problems.join("; "));
  const lease = await acquireLease(dir);
  if (!lease.ok) throw new Error(lease.message);
  const { url } = await startServer(loaded.config, createLog(loaded.config), lease.value);
  const urls: string[] = [];
  for (let n = 0; n < SESSIONS; n += 1) {
    const made = await fetch(`${url}/api/sessions`, { method: "POST" });
    const { sessionId } = (await made.json()) as { sessionId: string };
    urls.push(`${url}/api/sessions/${sessionId}/stream`);
  }
  measured(urls);
}

async function servePlain(): Promise<void> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.write(": open\n");
    const timer = setInterval(() => response.write(": ping\n"), HEARTBEAT_MS);
    response.on("close", () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  measured([`http://127.0.0.1:${(server.address() as AddressInfo).port}/`]);
}

function readers(): void {
  process.on("disconnect", () => process.exit());
  process.on("message", ({ urls, count }: { urls: string[]; count: number }) => {
    void (async () => {
      for (let n = 0; n < count; n += AT_ONCE) {
        const batch = Array.from({ length: Math.min(AT_ONCE, count - n) }, (_, index) => n + index);
        await Promise.all(batch.map((index) => openRaw(urls[index % urls.length] as string)));
      }
      process.send?.({ type: "opened" });
    })();
  });
}
