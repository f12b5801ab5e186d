// What one delta costs in each wire: from the bytes of the network to the messages that are due, beside the floor under
// any reader of such a stream, which is eventsource-parser and JSON.parse alone on the same bytes. Rounds of the two are
// interleaved in one process, so that what else the machine does meets both. What is allocated is counted in a process
// of its own, whose young generation is so large that nothing is collected in between.

import { fork } from "node:child_process";
import { once } from "node:events";
import { StringDecoder } from "node:string_decoder";
import { fileURLToPath } from "node:url";
import { createParser } from "eventsource-parser";
import { EventReader } from "../src/llm/http-sse.js";
import { ToolCallIds } from "../src/llm/tool-call-ids.js";
import { anthropicMessages } from "../src/llm/wire/anthropic-messages.js";
import { gemini } from "../src/llm/wire/gemini.js";
import { openaiChat } from "../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../src/llm/wire/openai-responses.js";
import type { Wire } from "../src/llm/wire/wire.js";
import type { OmniMessage } from "../src/protocol/message.js";
import { SegmentWriter } from "../src/protocol/segment.js";
import { DELTAS, readsOf, type Spoken } from "./support/wire-streams.js";

const BAR = 2.5;
const isQuick = process.argv.includes("--quick");
const ROUNDS = isQuick ? 9 : 31;
/** Answers of one round. */
const ANSWERS = isQuick ? 5 : 10;
const WARM_UP = 30;

const WIRES: Record<Spoken, Wire> = {
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  "anthropic-messages": anthropicMessages,
  gemini,
};

interface Contender {
  protocol: Spoken;
  reads: Buffer[];
  bytes: number;
}

const contenders: Contender[] = (Object.keys(WIRES) as Spoken[]).map((protocol) => {
  const reads = readsOf(protocol);
  return { protocol, reads, bytes: reads.reduce((sum, read) => sum + read.length, 0) };
});

if (process.argv[2] === "allocations") process.send?.(contenders.map(countAllocations));
else await main();

/** Reads one answer as the client does. @returns how many messages came of it. */
function ours({ protocol, reads }: Contender): number {
  const reader = new EventReader();
  const at = "2026-01-01T00:00:00.000Z";
  const writer = new SegmentWriter(() => at);
  let ids = 0;
  const decoder = WIRES[protocol].decoder({
    writer,
    ids: new ToolCallIds(
      () => false,
      () => `id${ids++}`,
    ),
    from: "bench/model",
    toolNames: ["write_file"],
  });
  let due = 0;
  const take = (messages: readonly OmniMessage[]) => {
    due += messages.length;
  };
  for (const read of reads) {
    for (const event of reader.push(read)) decoder.push(event);
    take(writer.take());
  }
  for (const event of reader.end()) decoder.push(event);
  const outcome = decoder.end();
  take(writer.take());
  if (outcome.status !== "completed" || due < DELTAS)
    throw new Error(`${protocol}: ${outcome.status}, ${due} messages`);
  return due;
}

/** The least that any reader does. @returns how many events there were. */
function floor({ reads }: Contender): number {
  let events = 0;
  const decoder = new StringDecoder("utf8");
  const parser = createParser({
    onEvent: ({ data }) => {
      if (data !== "[DONE]" && typeof JSON.parse(data) === "object") events += 1;
    },
  });
  for (const read of reads) parser.feed(decoder.write(read));
  return events;
}

/** Microseconds for each delta, of several answers. */
function time(read: (contender: Contender) => number, contender: Contender): number {
  const began = process.hrtime.bigint();
  for (let answer = 0; answer < ANSWERS; answer += 1) read(contender);
  return Number(process.hrtime.bigint() - began) / 1000 / ANSWERS / DELTAS;
}

interface Allocated {
  floor: number;
  ours: number;
}

/** Bytes of heap for each delta. */
function countAllocations(contender: Contender): Allocated {
  const count = (read: (contender: Contender) => number): number => {
    for (let answer = 0; answer < WARM_UP; answer += 1) read(contender);
    globalThis.gc?.();
    const before = process.memoryUsage().heapUsed;
    for (let answer = 0; answer < ANSWERS; answer += 1) read(contender);
    return (process.memoryUsage().heapUsed - before) / ANSWERS / DELTAS;
  };
  return { floor: count(floor), ours: count(ours) };
}

async function allocations(): Promise<Allocated[]> {
  const execArgv = ["--expose-gc", "--min-semi-space-size=512", "--max-semi-space-size=512"];
  const child = fork(fileURLToPath(import.meta.url), ["allocations", ...process.argv.slice(2)], { execArgv });
  try {
    const [counted] = (await Promise.race([
      once(child, "message"),
      once(child, "exit").then(([code]) => {
        throw new Error(`the process that counts allocations ended with ${code}`);
      }),
    ])) as [Allocated[]];
    return counted;
  } finally {
    child.kill("SIGKILL");
  }
}

async function main(): Promise<void> {
  const counted = await allocations();
  const rows: string[] = [];
  let holds = true;
  for (const [place, contender] of contenders.entries()) {
    for (let answer = 0; answer < WARM_UP; answer += 1) floor(contender) + ours(contender);
    const rounds = Array.from({ length: ROUNDS }, () => {
      const least = time(floor, contender);
      const full = time(ours, contender);
      return { least, full, ratio: full / least };
    });
    const [least, full, ratio] = (["least", "full", "ratio"] as const).map((name) =>
      median(rounds.map((r) => r[name])),
    );
    const allocated = counted[place] as Allocated;
    holds &&= (ratio as number) <= BAR;
    rows.push(
      row(
        contender.protocol,
        Math.round(contender.bytes / DELTAS),
        (least as number).toFixed(2),
        (full as number).toFixed(2),
        (ratio as number).toFixed(2),
        (ratio as number) <= BAR ? "yes" : `no, ${((ratio as number) - BAR).toFixed(2)} over`,
        Math.round(allocated.floor),
        Math.round(allocated.ours),
      ),
    );
    process.stderr.write(`wires: ${contender.protocol} done\n`);
  }
  process.stdout.write(
    `${[
      "## Wires",
      "",
      `From bytes to messages, ${DELTAS} deltas an answer (thinking, text, a tool call), beside eventsource-parser and JSON.parse alone on the same bytes; median of ${ROUNDS} interleaved rounds. Bar: ${BAR} times that floor. Lower is better.`,
      "",
      row(
        "wire",
        "bytes a delta",
        "floor, µs a delta",
        "omnid, µs a delta",
        "ratio",
        "holds",
        "floor, bytes allocated",
        "omnid, bytes allocated",
      ),
      row(...Array.from({ length: 8 }, () => "---")),
      ...rows,
    ].join("\n")}\n`,
  );
  process.exitCode = holds ? 0 : 1;
}

function row(...cells: (string | number)[]): string {
  return `| ${cells.join(" | ")} |`;
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}
