// What one token costs on its way through omnid: CPU time of the server for each delta, as a ratio to a bare proxy that
// reads the same upstream with eventsource-parser, parses and stringifies each event once, and writes it with one
// `res.write`. omnid's side is the whole of it: engine, Trace, Channel, Session and HTTP.
//
// Upstream, server and reader are processes of their own. The upstream sends as fast as it is read. A shorter answer goes
// before the one that is measured: what is loaded and compiled with the first is not a token's cost.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { runReader } from "./support/token-reader.js";
import { runOmnid, runProxy, runUpstream, WARM_UP } from "./support/token-servers.js";

const BAR = 2;
const isQuick = process.argv.includes("--quick");
const DELTAS = isQuick ? 50_000 : 100_000;
const ROUNDS = isQuick ? 3 : 5;

const role = process.argv[2];
if (role === "upstream") runUpstream(Number(process.argv[3]));
else if (role === "omnid") await runOmnid(process.argv[3] as string);
else if (role === "proxy") runProxy(process.argv[3] as string);
else if (role === "reader") runReader();
else await main();

async function main(): Promise<void> {
  const ratios: number[] = [];
  const proxies: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const proxy = await measure("proxy");
    const ours = await measure("omnid");
    proxies.push(proxy);
    ratios.push(ours / proxy);
    process.stderr.write(`token-path: run ${round + 1} of ${ROUNDS}\n`);
  }
  const ratio = median(ratios);
  process.stdout.write(
    `${[
      "## Token path",
      "",
      `CPU of the server per delta, ${DELTAS} deltas, one reader, as a ratio to a bare proxy; median of ${ROUNDS} interleaved run(s). Lower is better.`,
      "",
      "| proxy, µs | omnid | bar | holds |",
      "| --- | --- | --- | --- |",
      `| ${median(proxies).toFixed(2)} | ${ratio.toFixed(2)} | ${BAR.toFixed(2)} | ${ratio <= BAR ? "yes" : `no, ${(ratio - BAR).toFixed(2)} over`} |`,
    ].join("\n")}\n`,
  );
  process.exitCode = ratio <= BAR ? 0 : 1;
}

/** @returns CPU microseconds of the server for each delta, everything between the first and the last included. */
async function measure(server: "omnid" | "proxy"): Promise<number> {
  const self = fileURLToPath(import.meta.url);
  const children: ChildProcess[] = [];
  const start = (...args: string[]) => {
    const child = fork(self, args);
    children.push(child);
    return child;
  };
  try {
    const { url: upstream } = await answer<{ url: string }>(start("upstream", String(DELTAS)), "listening");
    const served = start(server, upstream);
    const { url } = await answer<{ url: string }>(served, "listening");
    const reader = start("reader");
    reader.send({ type: "read", server, url, deltas: WARM_UP });
    await answer(reader, "done");
    served.send({ type: "mark" });
    await answer(served, "marked");
    reader.send({ type: "read", server, url, deltas: DELTAS });
    await answer(reader, "done");
    served.send({ type: "measure" });
    const { cpuMicros } = await answer<{ cpuMicros: number }>(served, "measured");
    return cpuMicros / DELTAS;
  } finally {
    const gone = children.filter((child) => child.exitCode === null).map((child) => once(child, "exit"));
    for (const child of children) child.kill("SIGKILL");
    await Promise.all(gone);
  }
}

async function answer<T>(child: ChildProcess, type: string): Promise<T> {
  for (;;) {
    const [message] = (await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => {
        throw new Error(`a bench process ended with ${code} before it said ${type}`);
      }),
    ])) as [{ type: string } & T];
    if (message.type === type) return message;
  }
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}
