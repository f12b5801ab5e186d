// The program that runs the benchmarks: what it is told, and that it ends with all that it started.

import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { allGone } from "./support/processes.js";

const RUN = fileURLToPath(new URL("../bench/run.mjs", import.meta.url));

test.each([
  ["--help", 0],
  ["--quik", 64],
  ["no-such-benchmark", 64],
])("%s says how it is used and runs nothing", (argument, status) => {
  const ran = spawnSync(process.execPath, [RUN, argument], { encoding: "utf8" });
  expect(ran.status).toBe(status);
  expect(status === 0 ? ran.stdout : ran.stderr).toContain("Usage: node bench/run.mjs");
});

/** The processes that run a file of this folder. */
const running = (folder: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(folder);
      } catch {
        return false; // It has ended meanwhile.
      }
    })
    .map(Number);

test.skipIf(!existsSync("/proc/self/cmdline")).each([
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const)("one %s ends the benchmark, its children and the run", async (signal, status) => {
  const run = spawn(process.execPath, [RUN, "fan-out", "token-path", "--quick"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const said: string[] = [];
  run.stdout.setEncoding("utf8").on("data", (text: string) => said.push(text));
  const folder = `/omnid-bench/${run.pid}/`;
  // The benchmark itself, a server and its readers.
  await expect.poll(() => running(folder).length, { timeout: 60_000 }).toBe(3);
  const pids = running(folder);
  run.kill(signal);
  expect(await once(run, "close")).toEqual([status, null]);
  await allGone(pids);
  expect(running(folder)).toEqual([]);
  expect(said.join("")).toBe("");
});
