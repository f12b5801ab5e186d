// What it costs to read a history: the last page of one of 1 MB and of one of 100 MB, the page before it, one from the
// middle, and all of it. Figures are CPU of the server for each request; a hold is how long the event loop was kept from
// a timer, as far as the process was busy meanwhile.
//
// The server is the built one, a process of its own, with the Session in memory but for the first page.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { fillTrace } from "./support/long-trace.js";
import { holds, median, report, temporaryFolder } from "./support/measuring.js";
import { buildOmnid, type Omnid, startOmnid } from "./support/omnid.js";

const PAGE_BAR_MS = 10;
const HOLD_BAR_MS = 50;
/** The page of the long history may cost so much more than that of the short one before it depends on the size. */
const GROWTH_BAR = 1.5;
const isQuick = process.argv.includes("--quick");
const ROUNDS = isQuick ? 3 : 7;
const REQUESTS = 30;
const SIZES = [1_000_000, 100_000_000];

interface Past {
  sessionId: string;
  bytes: number;
  records: number;
}

buildOmnid();
const dataDir = join(temporaryFolder(), "data");
mkdirSync(dataDir);
const pasts = await makePasts(dataDir);
const omnid = await startOmnid(dataDir);
const rows: string[] = [];
const lastPages: number[] = [];
let areHeld = true;

for (const past of pasts) {
  const first = await cpuMs(omnid, () => page(past, "limit=50"));
  const pages = {
    "the last 50": "limit=50",
    "the 50 before": `limit=50&before=${past.records - 50}`,
    "50 from the middle": `limit=50&before=${past.records >> 1}`,
  };
  for (const [name, query] of Object.entries(pages)) {
    const costs: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      const cost = await cpuMs(omnid, async () => {
        for (let n = 0; n < REQUESTS; n += 1) await page(past, query);
      });
      costs.push(cost / REQUESTS);
    }
    const cost = median(costs);
    if (query === "limit=50") lastPages.push(cost);
    areHeld &&= cost <= PAGE_BAR_MS;
    rows.push(row(past, name, `${cost.toFixed(2)} ms`, `${PAGE_BAR_MS} ms`, holds(cost, PAGE_BAR_MS)));
  }
  rows.push(row(past, "the last 50, first request after a start", `${first.toFixed(0)} ms`, "", ""));
}
const growth = (lastPages[1] as number) / (lastPages[0] as number);
areHeld &&= growth <= GROWTH_BAR;
rows.push(
  `| both | the last 50, long to short | ${growth.toFixed(2)} | ${GROWTH_BAR.toFixed(2)} | ${holds(growth, GROWTH_BAR)} |`,
);

const longest = pasts.at(-1) as Past;
const before = await omnid.usage();
omnid.watch();
const bytes = await download(`${omnid.url}/api/sessions/${longest.sessionId}/messages`);
if (bytes < longest.bytes) throw new Error(`${bytes} bytes of a history of ${longest.bytes} arrived`);
const after = await omnid.usage();
areHeld &&= after.longestHoldMs <= HOLD_BAR_MS;
const cpu = (after.cpuMicros - before.cpuMicros) / 1000;
const grown = (after.rssBytes - before.rssBytes) / 1e6;
rows.push(
  row(
    longest,
    "all of it, longest hold",
    `${after.longestHoldMs.toFixed(1)} ms`,
    `${HOLD_BAR_MS} ms`,
    holds(after.longestHoldMs, HOLD_BAR_MS),
  ),
  row(longest, "all of it, CPU", `${cpu.toFixed(0)} ms`, "", ""),
  row(longest, "all of it, memory of the process more than before", `${grown.toFixed(0)} MB`, "", ""),
);
await omnid.end();

report(
  [
    "## History",
    "",
    `CPU of the server for each request, median of ${ROUNDS} rounds of ${REQUESTS}. Lower is better.`,
    "",
    "| history | what is read | cost | bar | holds |",
    "| --- | --- | --- | --- | --- |",
    ...rows,
  ],
  areHeld,
);

function row({ bytes }: Past, ...cells: string[]): string {
  return `| ${Math.round(bytes / 1e6)} MB | ${cells.join(" | ")} |`;
}

async function makePasts(folder: string): Promise<Past[]> {
  const server = await startOmnid(folder);
  const ids: string[] = [];
  for (const _ of SIZES) {
    const made = await fetch(`${server.url}/api/sessions`, { method: "POST" });
    ids.push(((await made.json()) as { sessionId: string }).sessionId);
  }
  await server.end();
  return ids.map((sessionId, index) => {
    const bytes = SIZES[index] as number;
    return { sessionId, bytes, records: fillTrace(join(folder, "sessions", sessionId), bytes) };
  });
}

async function page({ sessionId }: Past, query: string): Promise<void> {
  const answer = await fetch(`${omnid.url}/api/sessions/${sessionId}/messages?${query}`);
  const { messages } = (await answer.json()) as { messages: unknown[] };
  if (messages.length !== 50) throw new Error(`${messages.length} messages in a page of 50`);
}

async function download(url: string): Promise<number> {
  const answer = await fetch(url);
  let bytes = 0;
  for await (const chunk of answer.body ?? []) bytes += (chunk as Uint8Array).length;
  return bytes;
}

/** CPU of the server meanwhile. */
async function cpuMs(server: Omnid, work: () => Promise<void>): Promise<number> {
  const { cpuMicros } = await server.usage();
  await work();
  return ((await server.usage()).cpuMicros - cpuMicros) / 1000;
}
