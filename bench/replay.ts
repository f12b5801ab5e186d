// What a reconnection costs after 10,000 events were missed: CPU of the server and time until the reader has all of them,
// beside `node:http` that writes the same bytes at once from one buffer, joined beforehand.
//
// Server and reader are processes of their own. Reconnections to the two are interleaved.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { startFanout } from "./support/contenders.js";
import { answer, end, holds, median, report, startRole } from "./support/measuring.js";
import { nowNs, openRaw } from "./support/raw-stream.js";

const EVENTS = 10_000;
const BAR = 2;
const isQuick = process.argv.includes("--quick");
/** Reconnections of one measurement: CPU time comes in steps. */
const PER_ROUND = isQuick ? 5 : 20;
const ROUNDS = isQuick ? 5 : 15;
const SERVERS = ["buffer", "omnid"] as const;
const LAST = "the last of them";

interface Round {
  cpuMicros: number;
  ms: number;
}

const [, , role, argument] = process.argv;
if (role === "server") await serve(argument as (typeof SERVERS)[number]);
else if (role === "reader") read();
else await main();

async function main(): Promise<void> {
  const self = fileURLToPath(import.meta.url);
  const reader = startRole(self, "reader");
  const servers = await Promise.all(
    SERVERS.map(async (name) => {
      const child = startRole(self, "server", name);
      return { name, child, ...(await answer<{ url: string; bytes: number }>(child, "listening")) };
    }),
  );
  const rounds = new Map<string, Round[]>(SERVERS.map((name) => [name, []]));
  try {
    for (let round = -1; round < ROUNDS; round += 1) {
      for (const { name, child, url } of servers) {
        child.send({ type: "mark" });
        await answer(child, "marked");
        reader.send({ url });
        const { ms } = await answer<{ ms: number }>(reader, "read");
        child.send({ type: "measure" });
        const { cpuMicros } = await answer<{ cpuMicros: number }>(child, "measured");
        // The first one is for the compiler.
        if (round >= 0) rounds.get(name)?.push({ cpuMicros: cpuMicros / PER_ROUND, ms });
      }
    }
  } finally {
    await Promise.all([reader, ...servers.map(({ child }) => child)].map(end));
  }
  const figures = (name: string, pick: (round: Round) => number) => (rounds.get(name) as Round[]).map(pick);
  const rows: string[] = [];
  let areHeld = true;
  const picks = {
    "CPU, µs": (round: Round) => round.cpuMicros,
    "time, µs": (round: Round) => round.ms * 1000,
  };
  for (const [what, pick] of Object.entries(picks)) {
    const base = figures("buffer", pick);
    const ratio = median(figures("omnid", pick).map((value, index) => value / (base[index] as number)));
    areHeld &&= ratio <= BAR;
    rows.push(
      `| ${what} | ${median(base).toFixed(0)} | ${median(figures("omnid", pick)).toFixed(0)} | ${ratio.toFixed(2)} | ${BAR.toFixed(2)} | ${holds(ratio, BAR)} |`,
    );
  }
  report(
    [
      "## Replay",
      "",
      `A reconnection after ${EVENTS} missed events (${((servers[1]?.bytes ?? 0) / 2 ** 20).toFixed(1)} MB), beside one buffer that was joined beforehand and is written at once; median of ${ROUNDS} interleaved rounds of ${PER_ROUND}. Lower is better.`,
      "",
      "| of one reconnection | one buffer | omnid | ratio | bar | holds |",
      "| --- | --- | --- | --- | --- | --- |",
      ...rows,
    ],
    areHeld,
  );
}

function messageJson(n: number): string {
  return `{"timestamp":"2026-07-18T03:10:22.123Z","type":"model_msg","payload":{"type":"partial_text","stage":"delta","request_id":"request-01","segment":${n % 7},"text":"${n === EVENTS ? LAST : "and so the next words"}"}}`;
}

async function serve(name: (typeof SERVERS)[number]): Promise<void> {
  const { url, bytes } = name === "omnid" ? await serveRing() : await serveBuffer();
  let mark = process.cpuUsage();
  process.on("disconnect", () => process.exit());
  process.on("message", ({ type }: { type: string }) => {
    if (type === "mark") mark = process.cpuUsage();
    const { user, system } = process.cpuUsage(mark);
    process.send?.(type === "mark" ? { type: "marked" } : { type: "measured", cpuMicros: user + system });
  });
  process.send?.({ type: "listening", url, bytes });
}

async function serveRing(): Promise<{ url: string; bytes: number }> {
  const { fanout, url } = await startFanout("omnid");
  let bytes = 0;
  for (let n = 1; n <= EVENTS; n += 1) {
    bytes += messageJson(n).length + 30;
    fanout.publish(messageJson(n));
  }
  return { url, bytes };
}

async function serveBuffer(): Promise<{ url: string; bytes: number }> {
  const frames = Array.from(
    { length: EVENTS },
    (_, n) => `id: 1785035422531-${n + 1}\ndata: ${messageJson(n + 1)}\n\n`,
  );
  const joined = Buffer.from(frames.join(""));
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    response.write(joined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, bytes: joined.length };
}

function read(): void {
  process.on("disconnect", () => process.exit());
  process.on("message", ({ url }: { url: string }) => {
    void (async () => {
      const times: number[] = [];
      for (let n = 0; n < PER_ROUND; n += 1) times.push(await readOnce(url));
      process.send?.({ type: "read", ms: median(times) });
    })();
  });
}

/** @returns milliseconds from the connection to the last event. */
async function readOnce(url: string): Promise<number> {
  const startedAt = nowNs();
  let tail: Buffer = Buffer.alloc(0);
  return new Promise((resolve) => {
    const opening = openRaw(url, {
      headers: { "last-event-id": "1785035422531-0" },
      onData: (bytes) => {
        tail = bytes.length >= 512 ? bytes.subarray(-512) : Buffer.concat([tail, bytes]).subarray(-512);
        if (!tail.includes(LAST)) return;
        const ms = (nowNs() - startedAt) / 1e6;
        void opening.then((socket) => {
          socket.removeAllListeners("data").on("close", () => resolve(ms));
          socket.destroy();
        });
      },
    });
  });
}
