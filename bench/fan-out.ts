// What it costs the server to deliver one event to one reader: CPU time of the server process for each delivered event,
// as a ratio to plain `node:http` with one write of a shared buffer per event and reader, measured in the same run.
//
// Server and load client are processes of their own. The server publishes from inside its event loop, 1 or 16 messages
// of about 220 bytes a turn, and waits from time to time until every reader has everything. Contenders are interleaved and the
// figure is the median of the ratios, so that a noisy minute hits all of them.

import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { CONTENDERS, isInstalled } from "./support/contenders.js";
import { runServer } from "./support/fan-out-server.js";
import { runLoadClient } from "./support/load-client.js";

interface Case {
  readers: number;
  perTurn: number;
  /** The highest ratio that still counts as fast. */
  bar: number | undefined;
  /** How many times as dear as omnid each other library has to be. */
  peersBar?: number;
}

const CASES: readonly Case[] = [
  { readers: 1, perTurn: 1, bar: 1.3 },
  { readers: 10, perTurn: 1, bar: undefined },
  { readers: 100, perTurn: 1, bar: 0.6, peersBar: 1.6 },
  { readers: 1000, perTurn: 1, bar: 0.85 },
  { readers: 1, perTurn: 16, bar: 1.0 },
  { readers: 10, perTurn: 16, bar: undefined },
  { readers: 100, perTurn: 16, bar: 0.25, peersBar: 6 },
  { readers: 1000, perTurn: 16, bar: 0.35 },
];

const BASELINE = "node:http";
const OURS = "omnid";

const readersOf = (text: string | undefined) => text?.split("=")[1]?.split(",").map(Number);
/** `--readers=1,100` picks cases. */
const chosen = readersOf(process.argv.find((arg) => arg.startsWith("--readers=")));
const isQuick = process.argv.includes("--quick");
const role = process.argv[2];
if (role === "server") await runServer(process.argv[3] as string);
else if (role === "client") runLoadClient();
else await main();

async function main(): Promise<void> {
  // A quick run only answers whether the bars hold.
  const contenders = CONTENDERS.filter(
    (name) => isInstalled(name) && (!isQuick || name === BASELINE || name.startsWith(OURS)),
  );
  const missing = CONTENDERS.filter((name) => !isInstalled(name));
  const rounds = isQuick ? 1 : 5;
  const rows: Row[] = [];
  for (const at of CASES.filter(({ readers }) => chosen?.includes(readers) ?? (!isQuick || readers !== 10))) {
    const cpu = new Map<string, number[]>(contenders.map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of contenders) cpu.get(name)?.push(await measure(name, at));
      process.stderr.write(`fan-out: ${at.readers} readers, ${at.perTurn} a turn, run ${round + 1} of ${rounds}\n`);
    }
    rows.push({ at, cpu });
  }
  report(rows, contenders, missing);
}

/** @returns CPU microseconds of the server for each delivered event. */
async function measure(name: string, { readers, perTurn }: Case): Promise<number> {
  const events = eventCount(readers, perTurn);
  const self = fileURLToPath(import.meta.url);
  const server = fork(self, ["server", name]);
  const client = fork(self, ["client"]);
  client.on("message", (message: { type: string }) => {
    if (message.type === "received") server.send(message);
  });
  try {
    const { url } = await answer<{ url: string }>(server, "listening");
    client.send({ type: "connect", url, readers });
    await answer(client, "connected");
    // The first round is for the compiler: a server that has been up for a second is what is measured.
    for (const count of [warmUpCount(events, perTurn), events]) {
      const done = answer(client, "done");
      // Only then: the first window could otherwise be there before the client knows of the round.
      const ready = answer(client, "expecting");
      client.send({ type: "expect", events: count });
      await ready;
      server.send({ type: "publish", events: count, perTurn });
      await done;
    }
    server.send({ type: "measure" });
    const { cpuMicros } = await answer<{ cpuMicros: number }>(server, "measured");
    return cpuMicros / (events * readers);
  } finally {
    const gone = Promise.all([once(server, "exit"), once(client, "exit")]);
    server.kill("SIGKILL");
    client.kill("SIGKILL");
    await gone;
  }
}

/** Enough deliveries for half a second of work or more, whatever the number of readers. */
function eventCount(readers: number, perTurn: number): number {
  const deliveries = (perTurn === 1 ? 60_000 : 240_000) * (isQuick ? 0.3 : 1);
  return Math.max(
    perTurn * 20,
    Math.ceil((deliveries * Math.min(4, 1 + Math.log10(readers))) / readers / perTurn) * perTurn,
  );
}

function warmUpCount(events: number, perTurn: number): number {
  return Math.ceil(events / 3 / perTurn) * perTurn;
}

function answer<T>(child: ReturnType<typeof fork>, type: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: { type: string } & T) => {
      if (message.type === type) settle(() => resolve(message));
    };
    const onExit = (code: number | null) =>
      settle(() => reject(new Error(`a bench process ended with ${code} before it said ${type}`)));
    const settle = (end: () => void) => {
      child.off("message", onMessage);
      child.off("exit", onExit);
      end();
    };
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

/** CPU of each contender, one figure a round. */
interface Row {
  at: Case;
  cpu: Map<string, number[]>;
}

function report(rows: Row[], contenders: string[], missing: string[]): void {
  const lines = [
    "## Fan-out",
    "",
    `CPU of the server per delivered event as a ratio to \`${BASELINE}\` with one write per event (its own figure in µs first); median of ${isQuick ? 1 : 5} interleaved run(s). Lower is better.`,
    "",
    `| readers | messages a turn | ${BASELINE}, µs | ${contenders.filter((name) => name !== BASELINE).join(" | ")} | bar | holds |`,
    `| --- | --- | --- | ${contenders.map(() => "---").join(" | ")} | --- |`,
  ];
  let holds = true;
  for (const { at, cpu } of rows) {
    const base = cpu.get(BASELINE) as number[];
    const ratioOf = (name: string) => timesAsDear(cpu, name, BASELINE);
    const ours = ratioOf(OURS);
    const isHeld = at.bar === undefined || ours <= at.bar;
    holds &&= isHeld;
    const ratios = contenders.filter((name) => name !== BASELINE).map((name) => ratioOf(name).toFixed(2));
    const bar =
      at.bar === undefined ? "" : `${at.bar.toFixed(2)} | ${isHeld ? "yes" : `no, ${(ours - at.bar).toFixed(2)} over`}`;
    lines.push(
      `| ${at.readers} | ${at.perTurn} | ${median(base).toFixed(2)} | ${ratios.join(" | ")} | ${bar || " | "} |`,
    );
  }
  const peers = contenders.filter((name) => name !== BASELINE && !name.startsWith(OURS));
  const beside = peers.length > 0 ? rows.filter(({ at }) => at.peersBar !== undefined) : [];
  if (beside.length > 0) {
    lines.push(
      "",
      "How many times as dear as omnid each other library is, in the same runs. Higher is better.",
      "",
      `| readers | messages a turn | ${peers.join(" | ")} | bar | holds |`,
      `| --- | --- | ${peers.map(() => "---").join(" | ")} | --- | --- |`,
    );
  }
  for (const { at, cpu } of beside) {
    const bar = at.peersBar as number;
    const times = peers.map((name) => timesAsDear(cpu, name, OURS));
    const isHeld = times.every((each) => each >= bar);
    holds &&= isHeld;
    const figures = times.map((each) => each.toFixed(1)).join(" | ");
    lines.push(`| ${at.readers} | ${at.perTurn} | ${figures} | ${bar.toFixed(1)} | ${isHeld ? "yes" : "no"} |`);
  }
  if (missing.length > 0) lines.push("", `Not installed here, so not measured: ${missing.join(", ")}.`);
  process.stdout.write(`${lines.join("\n")}\n`);
  process.exitCode = holds ? 0 : 1;
}

/** Of the ratios of each round: what disturbs one hits both. */
function timesAsDear(cpu: Row["cpu"], name: string, than: string): number {
  const base = cpu.get(than) as number[];
  return median((cpu.get(name) as number[]).map((micros, round) => micros / (base[round] as number)));
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}
