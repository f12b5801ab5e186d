// How long a token takes from the provider's socket to a reader's, at 200 tokens a second: the whole of omnid beside a
// bare proxy that reads the same upstream with eventsource-parser, parses and stringifies each event, and writes it to
// each reader.
//
// Upstream, server and readers are processes of their own. Each token is the instant at which it was written, on a clock
// that the processes share. Rounds of the two are interleaved; the lowest tenth of each figure over slices of the runs
// is taken, since what else the machine does only makes a delay longer.

import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { createParser } from "eventsource-parser";
import { answer, end, holds, report, startRole } from "./support/measuring.js";
import { NumberFinder, nowNs, openRaw, percentile } from "./support/raw-stream.js";
import { runOmnid } from "./support/token-servers.js";

const FLAGS = process.argv.filter((arg) => arg.startsWith("--"));
const isQuick = FLAGS.includes("--quick");
const TOKENS = isQuick ? 1200 : 3200;
/**
 * Answers that come first, to the same readers, and their tokens. One token at a time takes other paths than a burst, and
 * the compiler is busy with them for thousands of tokens; what it takes meanwhile,
 */
const FIRST_ANSWERS = 4;
const FIRST_TOKENS = 3000;
const FIRST_EVERY_MS = 1;
/** and how the measured one begins, is not what a token takes in a server that is at work. */
const WARM_UP = 200;
const EVERY_MS = 5;
/** Tokens of which one p50 and one p99 are taken: a stall of the machine spoils a slice and not the run. */
const SLICE = 400;
const ROUNDS = isQuick ? 1 : 4;
const READERS = [1, 100];
const BAR = 1.3;
const MARK = " token-";

const [, , role, argument] = process.argv;
if (role === "upstream") runUpstream();
else if (role === "omnid") await runOmnid(argument as string);
else if (role === "proxy") runProxy(argument as string);
else if (role === "readers") runReaders();
else await main();

/** Of each slice. */
interface Delays {
  p50: number[];
  p99: number[];
}

async function main(): Promise<void> {
  const rows: string[] = [];
  let areHeld = true;
  for (const readers of READERS) {
    const rounds: Record<"proxy" | "omnid", Delays[]> = { proxy: [], omnid: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const name of ["proxy", "omnid"] as const) rounds[name].push(await measure(name, readers));
      process.stderr.write(`latency: ${readers} reader(s), run ${round + 1} of ${ROUNDS}\n`);
    }
    for (const which of ["p50", "p99"] as const) {
      const quiet = (name: "proxy" | "omnid") =>
        percentile(
          rounds[name].flatMap((delays) => delays[which]),
          0.1,
        );
      const ratio = quiet("omnid") / quiet("proxy");
      areHeld &&= ratio <= BAR;
      rows.push(
        `| ${readers} | ${which} | ${quiet("proxy").toFixed(2)} | ${quiet("omnid").toFixed(2)} | ${ratio.toFixed(2)} | ${BAR.toFixed(2)} | ${holds(ratio, BAR)} |`,
      );
    }
  }
  report(
    [
      "## Latency",
      "",
      `Milliseconds from the provider's write of a token to its arrival at a reader, ${1000 / EVERY_MS} tokens a second, beside a bare proxy; the lowest tenth of slices of ${SLICE} tokens in ${ROUNDS} interleaved run(s). Lower is better.`,
      "",
      "| readers | | proxy, ms | omnid, ms | ratio | bar | holds |",
      "| --- | --- | --- | --- | --- | --- | --- |",
      ...rows,
    ],
    areHeld,
  );
}

async function measure(name: "proxy" | "omnid", count: number): Promise<Delays> {
  const self = fileURLToPath(import.meta.url);
  const upstream = startRole(self, "upstream", ...FLAGS);
  const children = [upstream];
  try {
    const { url: source } = await answer<{ url: string }>(upstream, "listening");
    const server = startRole(self, name, source, ...FLAGS);
    children.push(server);
    const { url } = await answer<{ url: string }>(server, "listening");
    const readers = startRole(self, "readers", ...FLAGS);
    children.push(readers);
    const { follow, warmUp, start } = await opened(name, url);
    readers.send({ follow, count });
    await answer(readers, "reading");
    await warmUp();
    const read = answer<Delays>(readers, "read");
    await start();
    return await read;
  } finally {
    await Promise.all(children.map(end));
  }
}

interface Opened {
  /** Where the stream is. */
  follow: string;
  /** Has the first answers go through. */
  warmUp(): Promise<void>;
  /** Makes the measured tokens come. */
  start(): Promise<void>;
}

async function opened(name: "proxy" | "omnid", url: string): Promise<Opened> {
  const post = async (path: string, body: object, accept = "application/json") => {
    const headers = { "content-type": "application/json", accept };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`${path} answered ${response.status}`);
    return response.text();
  };
  const first = (ask: () => Promise<unknown>) => async () => {
    for (let n = 0; n < FIRST_ANSWERS; n += 1) await ask();
  };
  if (name === "proxy") {
    return { follow: `${url}/`, warmUp: first(() => post("/", {})), start: async () => void post("/", {}) };
  }
  const { sessionId } = JSON.parse(await post("/api/sessions", {}));
  const at = `/api/sessions/${sessionId}`;
  return {
    follow: `${url}${at}/stream`,
    // The answer to each of these ends with its Task.
    warmUp: first(() => post(`${at}/tasks`, { input: "go" }, "text/event-stream")),
    start: async () => void (await post(`${at}/tasks`, { input: "go" })),
  };
}

/** Answers each POST with tokens at an even pace; those of the measured one are the instants of their writes. */
function runUpstream(): void {
  const frame = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
  const last = `${frame({}, "stop")}data: [DONE]\n\n`;
  let answers = 0;
  const server = createServer((incoming, response) => {
    incoming.resume();
    response.writeHead(200, { "content-type": "text/event-stream" });
    answers += 1;
    const isFirst = answers <= FIRST_ANSWERS;
    let left = isFirst ? FIRST_TOKENS : TOKENS + WARM_UP;
    const timer = setInterval(
      () => {
        response.write(frame({ content: isFirst ? " first" : `${MARK}${nowNs()}.` }));
        left -= 1;
        if (left > 0) return;
        clearInterval(timer);
        response.end(last);
      },
      isFirst ? FIRST_EVERY_MS : EVERY_MS,
    );
    response.on("close", () => clearInterval(timer));
  });
  listen(server);
}

/** GET follows; POST begins, and whatever comes then goes to all who follow. */
function runProxy(upstream: string): void {
  const readers = new Set<ServerResponse>();
  const server = createServer((incoming, response) => {
    incoming.resume();
    if (incoming.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(": open\n\n");
      readers.add(response);
      return;
    }
    const parser = createParser({
      onEvent: ({ data }) => {
        const event = data === "[DONE]" ? { done: true } : JSON.parse(data);
        const frame = `data: ${JSON.stringify(event)}\n\n`;
        for (const reader of readers) reader.write(frame);
      },
    });
    const call = request(`${upstream}/chat/completions`, { method: "POST" }, (answered) => {
      answered.setEncoding("utf8");
      answered.on("data", (text: string) => parser.feed(text));
      answered.on("end", () => response.end());
    });
    call.end("{}");
  });
  listen(server);
}

function listen(server: ReturnType<typeof createServer>): void {
  process.on("disconnect", () => process.exit());
  server.listen(0, "127.0.0.1", () => {
    process.send?.({ type: "listening", url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
}

function slices(delays: readonly number[], size: number, share: number): number[] {
  const starts = Array.from({ length: Math.floor(delays.length / size) }, (_, n) => n * size);
  return starts.map((from) => percentile(delays.slice(from, from + size), share));
}

function runReaders(): void {
  process.on("disconnect", () => process.exit());
  process.once("message", ({ follow, count }: { follow: string; count: number }) => {
    void (async () => {
      const delays: number[] = [];
      let waiting = count;
      const readOne = async () => {
        const finder = new NumberFinder(MARK);
        let seen = 0;
        await openRaw(follow, {
          onData: (bytes) => {
            const now = nowNs();
            for (const at of finder.push(bytes)) {
              seen += 1;
              if (seen > WARM_UP && seen <= WARM_UP + TOKENS) delays.push((now - at) / 1e6);
            }
            // The complete text at the end holds every token once more.
            if (seen < WARM_UP + TOKENS) return;
            seen = Number.NEGATIVE_INFINITY;
            waiting -= 1;
            if (waiting > 0) return;
            process.send?.({
              type: "read",
              p50: slices(delays, SLICE * count, 0.5),
              p99: slices(delays, SLICE * count, 0.99),
            });
          },
        });
      };
      for (let n = 0; n < count; n += 1) await readOne();
      process.send?.({ type: "reading" });
    })();
  });
}
