// What readers that never read cost: memory of the server, and the delay of a reader that does read, while 200,000 events
// of about 220 bytes pass. Beside it plain `node:http` with one write per event, which queues for those who do not read.
//
// Server, fast reader and stalled readers are processes of their own. The server publishes 16 messages a turn and waits
// after each 256 until the fast reader has them, so that every delay is one of the server's. Each message carries the
// instant at which it was published, on a clock that the processes share.

import { fileURLToPath } from "node:url";
import { startFanout } from "./support/contenders.js";
import { answer, end, report, startRole } from "./support/measuring.js";
import { NumberFinder, nowNs, openRaw, percentile } from "./support/raw-stream.js";

const isQuick = process.argv.includes("--quick");
const EVENTS = isQuick ? 100_000 : 200_000;
/** So many of them fill what the kernel holds for a connection, some 4 MB: until then nobody is stalled. */
const FILL = 50_000;
const WARM_UP = isQuick ? 50_000 : 100_000;
/** Events of which one p99 is taken: a stall of the machine spoils a slice and not the run. */
const SLICE = 5_000;
const PER_TURN = 16;
const WINDOW = 256;
const BAR_MB = 30;
/** Of the delay without stalled readers; a part of it is what the machine does beside. */
const BAR_P99 = 1.3;
const ROUNDS = isQuick ? 2 : 3;

const CASES: readonly { name: string; stalled: readonly number[] }[] = [
  { name: "omnid", stalled: [0, 1, 10, 100] },
  // A hundred would take several gigabytes.
  { name: "node:http", stalled: isQuick ? [0, 1] : [0, 1, 10] },
];

interface Figures {
  grownMb: number;
  /** Of each slice of events. */
  p99Ms: number[];
}

const [, , role, argument] = process.argv;
if (role === "server") await serve(argument as string);
else if (role === "fast") readFast(argument as string);
else if (role === "stalled") await stall(argument as string, Number(process.argv[4]));
else await main();

async function main(): Promise<void> {
  const rows: string[] = [];
  let areHeld = true;
  const rounds = new Map<string, Figures[]>();
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const { name, stalled } of CASES) {
      for (const count of stalled) {
        const key = `${name} ${count}`;
        rounds.set(key, [...(rounds.get(key) ?? []), await measure(name, count)]);
      }
    }
    process.stderr.write(`stalled: run ${round + 1} of ${ROUNDS}\n`);
  }
  for (const { name, stalled } of CASES) {
    const of = (count: number) => rounds.get(`${name} ${count}`) as Figures[];
    // What else the machine does only makes a delay longer: the quietest slices show the server's own.
    const p99Of = (count: number) =>
      percentile(
        of(count).flatMap(({ p99Ms }) => p99Ms),
        0.1,
      );
    for (const count of stalled) {
      const grown = Math.max(...of(count).map(({ grownMb }) => grownMb));
      const p99 = p99Of(count);
      const ratio = p99 / p99Of(0);
      const isHeld = name !== "omnid" || (grown <= BAR_MB && ratio <= BAR_P99);
      areHeld &&= isHeld;
      const bar = name === "omnid" ? `${BAR_MB} MB, ${BAR_P99.toFixed(1)} | ${isHeld ? "yes" : "no"}` : " | ";
      rows.push(`| ${name} | ${count} | ${grown.toFixed(1)} | ${p99.toFixed(2)} | ${ratio.toFixed(2)} | ${bar} |`);
    }
  }
  report(
    [
      "## Stalled readers",
      "",
      `Growth of the server's memory while ${EVENTS} events pass readers that never read, and the p99 delay from publishing to one reader that does, once the first ${FILL} have filled the kernel's buffers, as it is and as a ratio to that without stalled ones. The most growth of ${ROUNDS} interleaved runs; the lowest tenth of the p99 of all slices of ${SLICE} events.`,
      "",
      "| server | stalled readers | grown, MB | p99, ms | ratio | bar | holds |",
      "| --- | --- | --- | --- | --- | --- | --- |",
      ...rows,
    ],
    areHeld,
  );
}

async function measure(name: string, stalled: number): Promise<Figures> {
  const self = fileURLToPath(import.meta.url);
  const server = startRole(self, "server", name);
  const { url } = await answer<{ url: string }>(server, "listening");
  const fast = startRole(self, "fast", url);
  const others = startRole(self, "stalled", url, String(stalled));
  try {
    await answer(fast, "reading");
    fast.on("message", (message: { type: string }) => message.type === "window" && server.send({ type: "resume" }));
    const run = async (events: number) => {
      const done = answer(server, "done");
      server.send({ type: "publish", events });
      return (await done) as { rss: number };
    };
    const before = await run(WARM_UP);
    others.send({ type: "connect" });
    await answer(others, "stalled");
    await run(FILL);
    fast.send({ type: "forget" });
    await answer(fast, "forgotten");
    const after = await run(EVENTS - FILL);
    fast.send({ type: "report" });
    const { p99Ms } = await answer<{ p99Ms: number[] }>(fast, "reported");
    return { grownMb: (after.rss - before.rss) / 2 ** 20, p99Ms };
  } finally {
    await Promise.all([server, fast, others].map(end));
  }
}

async function serve(name: string): Promise<void> {
  const { fanout, url } = await startFanout(name);
  let resume = () => {};
  process.on("disconnect", () => process.exit());
  process.on("message", ({ type, events }: { type: string; events: number }) => {
    if (type === "resume") return resume();
    let published = 0;
    const turn = () => {
      for (let n = 0; n < PER_TURN; n += 1) {
        published += 1;
        fanout.publish(messageJson(published));
      }
      if (published % WINDOW !== 0) setImmediate(turn);
    };
    resume = () => {
      if (published < events) setImmediate(turn);
      else process.send?.({ type: "done", rss: process.memoryUsage().rss });
    };
    setImmediate(turn);
  });
  process.send?.({ type: "listening", url });
}

/** With its frame about 220 bytes. */
function messageJson(n: number): string {
  const text = n % WINDOW === 0 ? "the end of a window" : "and the next words.";
  return `{"timestamp":"2026-07-18T03:10:22.123Z","type":"model_msg","payload":{"type":"partial_text","stage":"delta","segment":${n % 7},"text":"${text}","at":${nowNs()}}}`;
}

function readFast(url: string): void {
  const delays: number[] = [];
  const finder = new NumberFinder('"at":');
  let seen = 0;
  const onData = (bytes: Buffer) => {
    const now = nowNs();
    for (const at of finder.push(bytes)) {
      delays.push((now - at) / 1e6);
      seen += 1;
      if (seen % WINDOW === 0) process.send?.({ type: "window" });
    }
  };
  process.on("disconnect", () => process.exit());
  process.on("message", ({ type }: { type: string }) => {
    if (type === "forget") {
      delays.length = 0;
      process.send?.({ type: "forgotten" });
    } else {
      const slices = Array.from({ length: Math.floor(delays.length / SLICE) }, (_, n) => n * SLICE);
      const p99Ms = slices.map((from) => percentile(delays.slice(from, from + SLICE), 0.99));
      process.send?.({ type: "reported", p99Ms });
    }
  });
  void openRaw(url, { onData }).then(() => process.send?.({ type: "reading" }));
}

async function stall(url: string, count: number): Promise<void> {
  process.on("disconnect", () => process.exit());
  process.once("message", async () => {
    for (let n = 0; n < count; n += 1) (await openRaw(url)).pause();
    process.send?.({ type: "stalled" });
  });
}
