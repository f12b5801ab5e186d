// What it costs to record and show one complete message: CPU of the process for each message on its way through the
// engine, the Trace and the Channel, as a ratio to one write of the same bytes and one JSON.stringify of the message.
//
// Both write to files on the same disk with the same call, awaited, all their threads counted, and leave it to the system
// when the bytes are forced to the disk; what that costs once a second, as the server does it unless told otherwise, is
// measured beside them. The model is scripted and says one message at a time, the next when the last is recorded: nothing
// can share a write. Rounds of the two are interleaved in one process, so that what else the machine does meets both.

import { open } from "node:fs/promises";
import { join } from "node:path";
import type { LLMClient } from "../src/engine/ports.js";
import { assistantText, emptyTokenCounts } from "../src/protocol/builders.js";
import type { OmniMessage } from "../src/protocol/message.js";
import { hostWith } from "./support/host.js";
import { cpuOf, holds, median, report, temporaryFolder } from "./support/measuring.js";

const BAR = 1.5;
const isQuick = process.argv.includes("--quick");
const ROUNDS = isQuick ? 5 : 15;
const CASES = [
  { size: 200, count: isQuick ? 1000 : 3000 },
  { size: 20_000, count: isQuick ? 400 : 1000 },
];
const AT = "2026-01-01T00:00:00.000Z";

const rows: string[] = [];
let areHeld = true;
for (const { size, count } of CASES) {
  const folder = temporaryFolder();
  const floors: number[] = [];
  const ratios: number[] = [];
  const { say, close } = await speaker(folder, size, count);
  const floor = await writer(folder, size, count);
  // For the compiler.
  await floor.run();
  await say();
  for (let round = 0; round < ROUNDS; round += 1) {
    const base = await cpuOf(floor.run);
    const ours = await cpuOf(say);
    floors.push(base / count);
    ratios.push(ours / base);
  }
  await floor.close();
  await close();
  const ratio = median(ratios);
  areHeld &&= ratio <= BAR;
  rows.push(
    `| ${size} | ${median(floors).toFixed(1)} | ${(median(floors) * ratio).toFixed(1)} | ${ratio.toFixed(2)} | ${BAR.toFixed(2)} | ${holds(ratio, BAR)} |`,
  );
}
report(
  [
    "## Commit point",
    "",
    `CPU for each complete message through engine, Trace and Channel, beside one write of the same bytes and one JSON.stringify; median of ${ROUNDS} interleaved rounds. Lower is better.`,
    "",
    "| bytes | floor, µs | omnid, µs | ratio | bar | holds |",
    "| --- | --- | --- | --- | --- | --- |",
    ...rows,
    "",
    `To force what was written to the disk is not in it: of 20 MB it takes ${(await forcing()).toFixed(1)} ms of CPU, of 200 KB ${(await forcing(200_000)).toFixed(2)} ms, once a second with \`OMNID_FSYNC=interval\`.`,
  ],
  areHeld,
);

/** @returns ms of CPU for one `fdatasync` of so many new bytes. */
async function forcing(bytes = 20_000_000): Promise<number> {
  const file = await open(join(temporaryFolder(), "forced"), "a");
  const costs: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await file.write(Buffer.alloc(bytes, "x"));
    costs.push(await cpuOf(() => file.datasync()));
  }
  await file.close();
  return median(costs) / 1000;
}

/** A message that is `size` bytes long as a record, its line feed included. */
function messageOf(size: number, n: number): OmniMessage {
  const bare = assistantText(AT, String(n));
  const rest = Math.max(0, size - JSON.stringify(bare).length - 1);
  return assistantText(AT, `${n}${"words and so on ".repeat(rest / 16 + 1).slice(0, rest)}`);
}

/** A Session whose model says `count` messages when it is told to. */
async function speaker(
  folder: string,
  size: number,
  count: number,
): Promise<{ say(): Promise<void>; close(): Promise<void> }> {
  const messages = Array.from({ length: count }, (_, n) => messageOf(size, n));
  const model: LLMClient = {
    async *stream() {
      for (const message of messages) yield [message];
      return { status: "completed", usage: emptyTokenCounts() };
    },
  };
  const host = await hostWith({ dataDir: join(folder, "omnid"), model, fsync: "off" });
  const made = await host.create({}, null);
  if (!made.ok) throw new Error(made.message);
  const session = made.value;
  return {
    say: async () => {
      const assigned = await session.submit("go", {});
      if (!assigned.ok) throw new Error(assigned.message);
      await session.settled();
    },
    close: () => host.drain(0),
  };
}

/** The least that a server can do which records a message before it shows it. */
async function writer(
  folder: string,
  size: number,
  count: number,
): Promise<{ run(): Promise<void>; close(): Promise<void> }> {
  const messages = Array.from({ length: count }, (_, n) => messageOf(size, n));
  const file = await open(join(folder, "floor.jsonl"), "a");
  return {
    run: async () => {
      for (const message of messages) await file.write(`${JSON.stringify(message)}\n`);
    },
    close: () => file.close(),
  };
}
