// 1,000 Sessions, of which 50 have a Task that runs, when the process is killed: how long the next one takes until it is
// ready. By then every Task has been closed on record, which is looked at.

import { join } from "node:path";
import { holds, median, report, temporaryFolder } from "./support/measuring.js";
import { buildOmnid, type Omnid, startOmnid } from "./support/omnid.js";

const BAR_MS = 3000;
const isQuick = process.argv.includes("--quick");
const SESSIONS = 1000;
const RUNNING = 50;
const ROUNDS = isQuick ? 2 : 5;
/** The model of the demo then takes an hour for an answer. */
const SLOW = { OMNID_DEMO_DELAY_MS: "60000" };
const HEADERS = { "content-type": "application/json" };

buildOmnid();
const dataDir = join(temporaryFolder(), "data");
let omnid = await startOmnid(dataDir, SLOW);
const ids = await inParallel(Array.from({ length: SESSIONS }), async () => {
  const made = await fetch(`${omnid.url}/api/sessions`, { method: "POST" });
  return ((await made.json()) as { sessionId: string }).sessionId;
});

const ready: number[] = [];
const cpu: number[] = [];
for (let round = 0; round < ROUNDS; round += 1) {
  const running = ids.slice(round * RUNNING, (round + 1) * RUNNING);
  const tasks = await inParallel(running, async (id) => {
    const body = JSON.stringify({ input: "a question" });
    const answer = await fetch(`${omnid.url}/api/sessions/${id}/tasks`, { method: "POST", headers: HEADERS, body });
    if (answer.status !== 202) throw new Error(`a Task was answered with ${answer.status}`);
    return { id, taskId: ((await answer.json()) as { taskId: string }).taskId };
  });
  await omnid.end("SIGKILL");
  const startedAt = performance.now();
  omnid = await startOmnid(dataDir, SLOW);
  const answer = await fetch(`${omnid.url}/readyz`);
  if (answer.status !== 200) throw new Error(`ready was answered with ${answer.status}`);
  ready.push(performance.now() - startedAt);
  cpu.push((await omnid.usage()).cpuMicros / 1000);
  await expectClosed(omnid, tasks);
  process.stderr.write(`recover: run ${round + 1} of ${ROUNDS}\n`);
}
await omnid.end();

const ms = median(ready);
report(
  [
    "## Recover",
    "",
    `${SESSIONS} Sessions, ${RUNNING} with a Task, killed; median of ${ROUNDS} starts after it. Lower is better.`,
    "",
    "| what | ms | bar, ms | holds |",
    "| --- | --- | --- | --- |",
    `| start to ready | ${ms.toFixed(0)} | ${BAR_MS} | ${holds(ms, BAR_MS, 0)} |`,
    `| CPU until then | ${median(cpu).toFixed(0)} | | |`,
  ],
  ms <= BAR_MS,
);

async function expectClosed({ url }: Omnid, tasks: readonly { id: string; taskId: string }[]): Promise<void> {
  await inParallel(tasks, async ({ id, taskId }) => {
    const task = (await (await fetch(`${url}/api/sessions/${id}/tasks/${taskId}`)).json()) as object;
    const { state, status } = task as { state?: string; status?: string };
    if (state !== "ended" || status !== "aborted") throw new Error(`a Task stands after the kill: ${state}, ${status}`);
  });
}

async function inParallel<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += 25) {
    results.push(...(await Promise.all(items.slice(from, from + 25).map(work))));
  }
  return results;
}
