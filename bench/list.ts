// 10,000 Sessions on disk: how long a start takes until the first page of the list is there, and what a page costs after
// that. The records are read at the start, and they alone decide: what an index beside them could save at most is
// measured too, which is all but a look at each record's file.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { cpuOf, holds, median, report, temporaryFolder } from "./support/measuring.js";
import { buildOmnid, startOmnid } from "./support/omnid.js";

const START_BAR_MS = 2000;
const PAGE_BAR_MS = 20;
const isQuick = process.argv.includes("--quick");
const SESSIONS = 10_000;
const ROUNDS = isQuick ? 1 : 5;
const PAGES = isQuick ? 20 : 100;

buildOmnid();
const dataDir = join(temporaryFolder(), "data");
await makeSessions();

const starts: number[] = [];
const startCpu: number[] = [];
const looks: number[] = [];
const wall: number[] = [];
const cpu: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  await startAndList();
  looks.push((await cpuOf(lookAtEach)) / 1000);
  process.stderr.write(`list: run ${round + 1} of ${ROUNDS}\n`);
}

const rows = [
  ["start to the first page", median(starts), START_BAR_MS],
  ["a page of 50, from question to answer", median(wall), PAGE_BAR_MS],
  ["a page of 50, CPU of the server", median(cpu), PAGE_BAR_MS],
] as const;
report(
  [
    "## List",
    "",
    `${SESSIONS} Sessions on disk, median of ${ROUNDS} start(s) and ${PAGES} pages each. Lower is better.`,
    "",
    "| what | ms | bar, ms | holds |",
    "| --- | --- | --- | --- |",
    ...rows.map(([what, ms, bar]) => `| ${what} | ${ms.toFixed(1)} | ${bar} | ${holds(ms, bar, 0)} |`),
    `| CPU of the start, all of it | ${median(startCpu).toFixed(0)} | | |`,
    `| CPU of a look (\`stat\`) at each record, which an index would need | ${median(looks).toFixed(0)} | | |`,
  ],
  rows.every(([, ms, bar]) => ms <= bar),
);

async function startAndList(): Promise<void> {
  const startedAt = performance.now();
  const omnid = await startOmnid(dataDir);
  let cursor = await list(omnid.url);
  starts.push(performance.now() - startedAt);
  const before = await omnid.usage();
  startCpu.push(before.cpuMicros / 1000);
  for (let n = 0; n < PAGES; n += 1) {
    const askedAt = performance.now();
    cursor = await list(omnid.url, cursor);
    wall.push(performance.now() - askedAt);
  }
  cpu.push(((await omnid.usage()).cpuMicros - before.cpuMicros) / 1000 / PAGES);
  await omnid.end();
}

async function lookAtEach(): Promise<void> {
  const folder = join(dataDir, "sessions");
  const names = readdirSync(folder).filter((name) => name.startsWith("session-"));
  for (let from = 0; from < names.length; from += 64) {
    await Promise.all(names.slice(from, from + 64).map((name) => stat(join(folder, name, "session.json"))));
  }
}

async function list(url: string, cursor?: string): Promise<string | undefined> {
  const answer = await fetch(`${url}/api/sessions${cursor === undefined ? "" : `?cursor=${cursor}`}`);
  const { sessions, nextCursor } = (await answer.json()) as { sessions: unknown[]; nextCursor?: string };
  if (sessions.length !== 50) throw new Error(`${sessions.length} Sessions on a page of 50`);
  return nextCursor;
}

/** One by the server, the others copies of it with ids and times of their own. */
async function makeSessions(): Promise<void> {
  mkdirSync(dataDir);
  const omnid = await startOmnid(dataDir);
  await fetch(`${omnid.url}/api/sessions`, { method: "POST" });
  await omnid.end();
  const folder = join(dataDir, "sessions");
  const [model] = readdirSync(folder).filter((name) => name.startsWith("session-")) as [string];
  const record = JSON.parse(readFileSync(join(folder, model, "session.json"), "utf8"));
  for (let n = 1; n < SESSIONS; n += 1) {
    const sessionId = `session-2026-01-01-00-00-00-${n.toString(16).padStart(8, "0")}`;
    const at = new Date(Date.UTC(2026, 0, 1) + ((n * 7919) % SESSIONS) * 60_000).toISOString();
    mkdirSync(join(folder, sessionId));
    copyFileSync(join(folder, model, "trace-000001.jsonl"), join(folder, sessionId, "trace-000001.jsonl"));
    const own = { ...record, sessionId, title: `Session number ${n}`, createdAt: at, lastActiveAt: at };
    writeFileSync(join(folder, sessionId, "session.json"), `${JSON.stringify(own)}\n`);
  }
}
