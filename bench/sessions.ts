// 1,000 Sessions that stream at once, 20 tokens a second each, one reader each: CPU of the server for each token, as a
// ratio to a bare proxy with as many streams, while all of them are open. Every reader gets every message; that is looked
// at by number. Then what a Session takes of the memory: at work, idle, and unloaded, from where all come back.
//
// Upstream, server and readers are processes of their own; CPU is counted from the first token to the last, without the
// beginning and the end of the Tasks. Memory is the heap and what hangs on it, after a collection.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { runManyReaders } from "./support/many-readers.js";
import { answer, end, holds, median, report, startRole, temporaryFolder } from "./support/measuring.js";
import { buildOmnid, type Omnid, startOmnid } from "./support/omnid.js";
import { runPacedUpstream } from "./support/paced-upstream.js";
import { runProxy } from "./support/token-servers.js";

const BAR = 2;
const FLAGS = process.argv.filter((arg) => arg.startsWith("--"));
const isQuick = FLAGS.includes("--quick");
const SESSIONS = isQuick ? 300 : 1000;
const PER_SECOND = 20;
const TOKENS = isQuick ? 60 : 200;
const ROUNDS = isQuick ? 1 : 3;
/** Idle Sessions that the server keeps in memory. */
const KEPT = 500;

interface Measured {
  microsPerToken: number;
  /** Tokens a second and Session, as they came out of the upstream. */
  pace: number;
}

const role = process.argv[2];
if (role === "upstream") runPacedUpstream(SESSIONS, TOKENS, PER_SECOND);
else if (role === "proxy") runProxy(process.argv[3] as string);
else if (role === "readers") runManyReaders();
else await main();

async function main(): Promise<void> {
  buildOmnid();
  const proxies: Measured[] = [];
  const ours: Measured[] = [];
  let memory: string[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    proxies.push(await measureProxy());
    const { measured, rows } = await measureOmnid();
    ours.push(measured);
    memory = rows;
    process.stderr.write(`sessions: run ${round + 1} of ${ROUNDS}\n`);
  }
  const ratio = median(ours.map(({ microsPerToken }, n) => microsPerToken / (proxies[n] as Measured).microsPerToken));
  const base = median(proxies.map(({ microsPerToken }) => microsPerToken));
  const pace = median(ours.map((each) => each.pace));
  report(
    [
      "## Sessions",
      "",
      `${SESSIONS} Sessions at once, ${TOKENS} tokens each at ${pace.toFixed(0)} a second, no message lost; CPU of the server for each token, as a ratio to a bare proxy; median of ${ROUNDS} interleaved run(s). Lower is better.`,
      "",
      "| proxy, µs | omnid | bar | holds |",
      "| --- | --- | --- | --- |",
      `| ${base.toFixed(1)} | ${ratio.toFixed(2)} | ${BAR.toFixed(2)} | ${holds(ratio, BAR)} |`,
      "",
      "| a Session | memory, KB |",
      "| --- | --- |",
      ...memory,
    ],
    ratio <= BAR,
  );
}

async function measureProxy(): Promise<Measured> {
  const upstream = startRole(fileURLToPath(import.meta.url), "upstream", ...FLAGS);
  const { url } = await answer<{ url: string }>(upstream, "listening");
  const proxy = startRole(fileURLToPath(import.meta.url), "proxy", url);
  try {
    const { url: proxyUrl } = await answer<{ url: string }>(proxy, "listening");
    return await streamAll({
      upstream,
      urls: Array.from({ length: SESSIONS }, () => proxyUrl),
      kind: "proxy",
      mark: async () => {
        proxy.send({ type: "mark" });
        await answer(proxy, "marked");
      },
      cpuMicros: async () => {
        proxy.send({ type: "measure" });
        return (await answer<{ cpuMicros: number }>(proxy, "measured")).cpuMicros;
      },
      whileOpen: async () => {},
    });
  } finally {
    await end(proxy);
    await end(upstream);
  }
}

async function measureOmnid(): Promise<{ measured: Measured; rows: string[] }> {
  const upstream = startRole(fileURLToPath(import.meta.url), "upstream", ...FLAGS);
  const { url: baseUrl } = await answer<{ url: string }>(upstream, "listening");
  const folder = temporaryFolder();
  const config = join(folder, "config.json");
  const model = { provider: "bench", modelId: "paced", protocol: "openai-chat", baseUrl, contextWindow: 1e6 };
  writeFileSync(config, JSON.stringify({ models: [model] }));
  const omnid = await startOmnid(join(folder, "data"), { OMNID_CONFIG: config }, ["--expose-gc"]);
  try {
    const empty = await omnid.heldBytes();
    const ids = await createSessions(omnid, SESSIONS);
    let marked = 0;
    let active = 0;
    const measured = await streamAll({
      upstream,
      urls: ids.map((id) => `${omnid.url}/api/sessions/${id}/tasks`),
      kind: "omnid",
      mark: async () => {
        marked = (await omnid.usage()).cpuMicros;
      },
      cpuMicros: async () => (await omnid.usage()).cpuMicros - marked,
      whileOpen: async () => {
        active = await omnid.heldBytes();
      },
    });
    const idle = await omnid.heldBytes();
    const unloaded = await unloadMost(omnid);
    await expectBack(omnid, ids);
    const each = (bytes: number, sessions: number) => (bytes / sessions / 1000).toFixed(1);
    const perIdle = (idle - empty) / SESSIONS;
    const gone = SESSIONS + 1 - unloaded.inMemory;
    return {
      measured,
      rows: [
        `| at work, its stream open | ${each(active - empty, SESSIONS)} |`,
        `| idle, in memory | ${each(perIdle, 1)} |`,
        ...(gone > 0 ? [`| unloaded | ${each(unloaded.heldBytes - empty - unloaded.inMemory * perIdle, gone)} |`] : []),
      ],
    };
  } finally {
    await omnid.end("SIGKILL");
    await end(upstream);
  }
}

interface Streams {
  upstream: ReturnType<typeof startRole>;
  urls: string[];
  kind: "omnid" | "proxy";
  mark(): Promise<void>;
  cpuMicros(): Promise<number>;
  /** Called when every token has arrived and no stream is over. */
  whileOpen(): Promise<void>;
}

async function streamAll({ upstream, urls, kind, mark, cpuMicros, whileOpen }: Streams): Promise<Measured> {
  const readers = startRole(fileURLToPath(import.meta.url), "readers");
  try {
    const open = answer(upstream, "open");
    readers.send({ type: "read", urls, kind, tokens: TOKENS });
    await open;
    await mark();
    const complete = answer(readers, "complete");
    const sent = answer<{ seconds: number }>(upstream, "sent");
    upstream.send({ type: "go" });
    const { seconds } = await sent;
    await complete;
    const cpu = await cpuMicros();
    await whileOpen();
    const ended = answer(readers, "ended");
    upstream.send({ type: "finish" });
    await ended;
    return { microsPerToken: cpu / (urls.length * TOKENS), pace: TOKENS / seconds };
  } finally {
    await end(readers);
  }
}

async function createSessions({ url }: Omnid, count: number): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < count) {
    const some = Array.from({ length: Math.min(20, count - ids.length) }, async () => {
      const made = await fetch(`${url}/api/sessions`, { method: "POST" });
      return ((await made.json()) as { sessionId: string }).sessionId;
    });
    ids.push(...(await Promise.all(some)));
  }
  return ids;
}

/** Asks for one more Session, a second after the last was used: idle ones make room. */
async function unloadMost(omnid: Omnid): Promise<{ inMemory: number; heldBytes: number }> {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await createSessions(omnid, 1);
  const metrics = await (await fetch(`${omnid.url}/metrics`)).text();
  const inMemory = Number(/^omnid_sessions_in_memory (\d+)$/m.exec(metrics)?.[1]);
  if (!(inMemory <= KEPT)) throw new Error(`${inMemory} Sessions are in memory`);
  // Their files are forced to the disk and closed behind the answer.
  await new Promise((resolve) => setTimeout(resolve, 3000));
  return { inMemory, heldBytes: await omnid.heldBytes() };
}

/** Every Session, unloaded or not, has its whole answer. */
async function expectBack({ url }: Omnid, ids: readonly string[]): Promise<void> {
  const whole = " token".repeat(TOKENS);
  for (const id of ids) {
    const { messages } = (await (await fetch(`${url}/api/sessions/${id}/messages`)).json()) as {
      messages: { payload: { type: string; role?: string; text?: string } }[];
    };
    const said = messages.filter(({ payload }) => payload.type === "text" && payload.role === "assistant");
    if (said.length !== 1 || said[0]?.payload.text !== whole) throw new Error(`the answer of ${id} is not whole`);
  }
}
