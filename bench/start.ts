// A cold start of the built server in an empty data directory: CPU until it says that it listens, and the memory it has
// then. What the same Node takes for an empty program stands beside it.

import { fork } from "node:child_process";
import { join } from "node:path";
import { answer, end, holds, median, report, temporaryFolder } from "./support/measuring.js";
import { buildOmnid, startOmnid } from "./support/omnid.js";

const CPU_BAR_MS = 500;
const RSS_BAR_MB = 90;
const isQuick = process.argv.includes("--quick");
const ROUNDS = isQuick ? 5 : 15;

if (process.argv[2] === "nothing") {
  const { user, system } = process.cpuUsage();
  process.send?.({ type: "started", cpuMicros: user + system, rssBytes: process.memoryUsage.rss() });
} else await main();

async function main(): Promise<void> {
  buildOmnid();
  const folder = temporaryFolder();
  const figures: Record<"ours" | "node", { cpu: number[]; rss: number[] }> = {
    ours: { cpu: [], rss: [] },
    node: { cpu: [], rss: [] },
  };
  for (let round = 0; round < ROUNDS; round += 1) {
    const omnid = await startOmnid(join(folder, `data-${round}`));
    const usage = await omnid.usage();
    await omnid.end();
    figures.ours.cpu.push(usage.cpuMicros / 1000);
    figures.ours.rss.push(usage.rssBytes / 1e6);
    const nothing = fork(process.argv[1] as string, ["nothing"]);
    const started = await answer<{ cpuMicros: number; rssBytes: number }>(nothing, "started");
    await end(nothing);
    figures.node.cpu.push(started.cpuMicros / 1000);
    figures.node.rss.push(started.rssBytes / 1e6);
  }
  const cpu = median(figures.ours.cpu);
  const rss = median(figures.ours.rss);
  report(
    [
      "## Start",
      "",
      `Median of ${ROUNDS} interleaved starts. Lower is better.`,
      "",
      "| what | Node alone | omnid | bar | holds |",
      "| --- | --- | --- | --- | --- |",
      `| CPU to the listening line, ms | ${median(figures.node.cpu).toFixed(0)} | ${cpu.toFixed(0)} | ${CPU_BAR_MS} | ${holds(cpu, CPU_BAR_MS, 0)} |`,
      `| resident memory, MB | ${median(figures.node.rss).toFixed(1)} | ${rss.toFixed(1)} | ${RSS_BAR_MB} | ${holds(rss, RSS_BAR_MB, 1)} |`,
    ],
    cpu <= CPU_BAR_MS && rss <= RSS_BAR_MB,
  );
}
