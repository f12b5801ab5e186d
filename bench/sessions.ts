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
import { runPacedUpstream, WARM_UP } from "./support/paced-upstream.js";
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
/** Of so many the memory is counted before they have done anything. */
const FRESH = 100;

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
    await warmUp(omnid);
    const empty = await omnid.heldBytes();
    const ids = await createSessions(omnid, FRESH);
    const perFresh = ((await omnid.heldBytes()) - empty) / FRESH;
    ids.push(...(await createSessions(omnid, SESSIONS - FRESH)));
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
    const { inMemory, heldBytes } = await unloadAll(omnid);
    await expectBack(omnid, ids);
    const each = (bytes: number, sessions: number) => (bytes / sessions / 1000).toFixed(1);
    const unloaded = SESSIONS + KEPT + 1 - inMemory;
    return {
      measured,
      rows: [
        `| at work, its stream open | ${each(active - empty, SESSIONS)} |`,
        `| idle, in memory, with what it said for readers that come back | ${each(idle - empty, SESSIONS)} |`,
        `| idle, in memory, new | ${each(perFresh, 1)} |`,
        `| unloaded | ${each(heldBytes - empty - inMemory * perFresh, unloaded)} |`,
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

/** What every server needs that has spoken to a model is no Session's. */
async function warmUp(omnid: Omnid): Promise<void> {
  const [id] = await createSessions(omnid, 1);
  const asked = await fetch(`${omnid.url}/api/sessions/${id}/tasks`, {
    method: "POST",
    headers: { accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ input: WARM_UP }),
  });
  await asked.text();
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

/** Makes as many new Sessions as stay in memory, a second after the last was used: all others make room. */
async function unloadAll(omnid: Omnid): Promise<{ inMemory: number; heldBytes: number }> {
  await new Promise((resolve) => setTimeout(resolve, 1500));
  await createSessions(omnid, KEPT + 1);
  const metrics = await (await fetch(`${omnid.url}/metrics`)).text();
  const inMemory = Number(/^omnid_sessions_in_memory (\d+)$/m.exec(metrics)?.[1]);
  if (!(inMemory <= KEPT + 1)) throw new Error(`${inMemory} Sessions are in memory`);
  // Their files are forced to the disk and closed behind the answer, and the connections to the provider a while later.
  await new Promise((resolve) => setTimeout(resolve, 8000));
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
