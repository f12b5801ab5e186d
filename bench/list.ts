// 10,000 Sessions on disk: how long a start takes until the first page of the list is there, and what a page costs after
// that. One start finds the index of Sessions as the last process left it, one finds none.

import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { holds, median, report, temporaryFolder } from "./support/measuring.js";
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

const warm: number[] = [];
const cold: number[] = [];
const wall: number[] = [];
const cpu: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  rmSync(join(dataDir, "session-index.jsonl"), { force: true });
  cold.push(await startAndList());
  warm.push(await startAndList({ wall, cpu }));
  process.stderr.write(`list: run ${round + 1} of ${ROUNDS}\n`);
}

const rows = [
  ["start to the first page", median(warm), START_BAR_MS],
  ["start to the first page, the index made anew", median(cold), START_BAR_MS],
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
  ],
  rows.every(([, ms, bar]) => ms <= bar),
);

/** @returns ms from the start of the process to the answer. */
async function startAndList(pages?: { wall: number[]; cpu: number[] }): Promise<number> {
  const startedAt = performance.now();
  const omnid = await startOmnid(dataDir);
  let cursor = await list(omnid.url);
  const elapsed = performance.now() - startedAt;
  if (pages !== undefined) {
    const before = await omnid.usage();
    for (let n = 0; n < PAGES; n += 1) {
      const askedAt = performance.now();
      cursor = await list(omnid.url, cursor);
      pages.wall.push(performance.now() - askedAt);
    }
    pages.cpu.push(((await omnid.usage()).cpuMicros - before.cpuMicros) / 1000 / PAGES);
  }
  await omnid.end();
  return elapsed;
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
