// The composition root: configuration, stores, Sessions, server, and how it all ends.

import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import closeWithGrace from "close-with-grace";
import type { Logger } from "pino";
import { ChannelFigures } from "./channel/channel-figures.js";
import { HeartbeatWheel } from "./channel/heartbeat.js";
import { ReplayBudget } from "./channel/replay-budget.js";
import { type Clock, systemClock } from "./clock.js";
import { type Config, loadConfig } from "./config.js";
import { EXIT_CONFIG, EXIT_FAILED, EXIT_HELD } from "./exit-codes.js";
import { Connections } from "./http/end-connections.js";
import { type Listening, listen } from "./http/listen.js";
import { createLog } from "./http/logging.js";
import { createMetrics, type Metrics } from "./http/metrics.js";
import { openKeys } from "./http/open-keys.js";
import { createServer } from "./http/server.js";
import { standardError } from "./http/standard-error.js";
import { createLLMClient } from "./llm/client.js";
import { countedClient } from "./llm/counted-client.js";
import { modelName } from "./llm/model-spec.js";
import { ignoresThinkingLevel } from "./llm/thinking-support.js";
import {
  measureChannels,
  measureMcp,
  measureMcpCalls,
  measureRequests,
  measureSessions,
  measureWork,
} from "./measure.js";
import { viewOf } from "./model-registry.js";
import { reasonOf } from "./reason-of.js";
import { acquireLease, isWrongPlace, type Lease } from "./session/lease.js";
import type { Models } from "./session/process.js";
import { publishAddress, withdrawAddress } from "./session/server-address.js";
import { createSessionManager, type SessionManager } from "./session/session-manager.js";
import { createRecordStore } from "./session/session-record.js";
import type { McpServers } from "./tools/mcp.js";
import { scrubEnvironment } from "./tools/scrub-environment.js";
import { createTraceStore } from "./trace/jsonl-store.js";
import { makeFolder } from "./trace/make-folder.js";

/** What a client is told to wait before it comes back to a server that ends. */
const SHUTDOWN_RETRY_MS = 2_000;

/**
 * Once everything is recorded, whoever takes nothing of an answer for so long is not waited for. The system takes more
 * for a connection only when a good part of what it holds, up to some megabytes, has gone out.
 */
const CLOSE_GRACE_MS = 3_000;

/** The end is this much before `OMNID_SHUTDOWN_MS`, a quarter of it at most, also where somebody still takes an answer. */
const CLOSE_MARGIN_MS = 1_000;

/** How long the end waits for somebody to read the log. */
const FLUSH_LOG_MS = 200;

/** A server that listens. */
export interface RunningServer {
  /** For example `http://127.0.0.1:8420`. */
  url: string;
  /** Ends it in order: no further work, streams ended, Tasks interrupted, everything recorded. */
  close(): Promise<void>;
}

/** Runs the server until a signal ends it. Sets the exit code; prints what is wrong on standard error. */
export async function serve(env: NodeJS.ProcessEnv = process.env): Promise<void> {
  const loaded = loadConfig(env, (path) => readFileSync(path, "utf8"));
  if (!loaded.ok) return fail(EXIT_CONFIG, loaded.problems);
  const { config } = loaded;
  const output = standardError(systemClock());
  const log = createLog(config, output);
  logWarnings(log);
  // Whoever started us may be gone before we listen: that is no reason to end.
  process.stdout.on("error", (error) => log.debug({ err: error }, "standard output is closed"));
  const opened = await openServer(config, log);
  if (!opened.ok) return fail(opened.exitCode, [opened.problem]);
  const { server } = opened;
  closeWithGrace({ delay: Math.max(1, config.shutdownMs), logger: false }, async ({ signal, err }) => {
    if (err !== undefined) log.fatal({ err }, "ending on a fault");
    else log.info({ signal }, "ending");
    await server.close();
    await output.flushed(FLUSH_LOG_MS);
  });
  process.stdout.write(`omnid listening on ${server.url}\n`);
}

/** Node prints its warnings as text, in the middle of the lines of the log. */
function logWarnings(log: Logger): void {
  process.removeAllListeners("warning");
  process.on("warning", (warning) => log.warn({ err: warning }, String(warning)));
}

/** A server that runs, or why there is none and what the process ends with. */
export type Opened = { ok: true; server: RunningServer } | { ok: false; exitCode: number; problem: string };

/** Takes the data directory and starts the server on it. */
export async function openServer(config: Config, log: Logger): Promise<Opened> {
  let lease: Awaited<ReturnType<typeof acquireLease>>;
  try {
    lease = await acquireLease(config.dataDir);
  } catch (error) {
    const problem = `OMNID_DATA_DIR: ${config.dataDir} cannot be used: ${reasonOf(error)}`;
    return { ok: false, exitCode: isWrongPlace(error) ? EXIT_CONFIG : EXIT_FAILED, problem };
  }
  if (!lease.ok) return { ok: false, exitCode: EXIT_HELD, problem: lease.message };
  try {
    return { ok: true, server: await startServer(config, log, lease.value) };
  } catch (error) {
    await lease.value.release().catch((err) => log.debug({ err }, "the data directory is not given back"));
    log.debug({ err: error }, "start failed");
    return { ok: false, exitCode: EXIT_FAILED, problem: `cannot start: ${reasonOf(error)}` };
  }
}

/**
 * Builds every part, listens, and only then goes on with what an earlier process left: a start that fails has begun
 * nothing, and leaves nothing at work behind it. The lease is given back when the server has closed.
 */
export async function startServer(config: Config, log: Logger, lease: Lease): Promise<RunningServer> {
  const clock = systemClock();
  const metrics = createMetrics();
  /** What is open so far, the last first. */
  const open: (() => Promise<unknown> | undefined)[] = [];
  try {
    const mcp = await connectMcp(config, log, clock, metrics);
    open.unshift(() => mcp?.close());
    const host = await hostSessions(config, log, clock, metrics, mcp);
    open.unshift(() => host.drain(SHUTDOWN_RETRY_MS));
    const { keys, close: closeKeys } = await openKeys({ config, clock, log, host });
    open.unshift(closeKeys);
    // Whoever asks first may be earlier than we are, but not earlier than the port is ours.
    const recovered = once(() => host.recover().then(() => keys.recover()));
    const app = await createServer({ config, host, clock, newId, log, metrics, keys, recovered });
    open.unshift(() => app.close());
    const connections = new Connections(app.server);
    const listening = await listen(app, config, log);
    open.unshift(() => listening.close());
    const { url } = listening;
    tellMissingKeys(config, log);
    tellIgnoredLevels(config, log);
    await publishAddress(config.dataDir, url, lease.token).catch((error) =>
      log.debug({ err: error }, "the address is not written"),
    );
    await recovered();
    return { url, close: () => endServer({ config, clock, host, mcp, url, connections, listening, closeKeys, lease }) };
  } catch (error) {
    // Why there is no server is the first error; what cannot be closed after it is only logged.
    for (const close of open) await close()?.catch((err) => log.debug({ err }, "not closed"));
    throw error;
  }
}

async function endServer(parts: {
  config: Config;
  clock: Clock;
  host: SessionManager;
  mcp: McpServers | undefined;
  url: string;
  connections: Connections;
  listening: Listening;
  closeKeys: () => Promise<void>;
  lease: Lease;
}): Promise<void> {
  const { config, clock, host, mcp, url, connections, listening, closeKeys, lease } = parts;
  const { shutdownMs } = config;
  const endsAt = clock.monotonic() + shutdownMs - Math.min(CLOSE_MARGIN_MS, shutdownMs / 4);
  // Sessions end first: their streams would keep the listener open.
  await host.drain(SHUTDOWN_RETRY_MS);
  await mcp?.close();
  // While it is there nobody else can have the port.
  await withdrawAddress(config.dataDir, url);
  // A client that sends nothing, or does not read, would keep its connection for as long as it likes.
  const stop = connections.end(clock, CLOSE_GRACE_MS, endsAt - clock.monotonic());
  await listening.close();
  stop();
  await closeKeys();
  await lease.release();
}

function tellMissingKeys({ models }: Config, log: Logger): void {
  for (const { spec, available, reason } of models.models) {
    if (!available) log.warn({ model: modelName(spec) }, `a model cannot be used: ${reason}`);
  }
}

/** A thinking level is taken for every model; that it makes no difference to some must not be found out by guessing. */
function tellIgnoredLevels({ models }: Config, log: Logger): void {
  const names = models.models
    .filter(({ available, spec }) => available && ignoresThinkingLevel(spec))
    .map(({ spec }) => modelName(spec));
  if (names.length === 0) return;
  log.info({ models: names }, 'no thinking level is sent to these models ("thinking": true says that a model reasons)');
}

/** Opens the data directory and hosts its Sessions, which do nothing yet; the caller holds the lease. */
export async function hostSessions(
  config: Config,
  log: Logger,
  clock: Clock,
  metrics: Metrics,
  mcp?: McpServers,
): Promise<SessionManager> {
  const traces = await createTraceStore({ dir: config.dataDir, fsync: config.fsync, clock, log });
  const workspacesFolder = join(config.dataDir, "workspaces");
  await makeFolder(workspacesFolder);
  const budget = new ReplayBudget(config.replayTotalBytes);
  const figures = new ChannelFigures();
  const manager = await createSessionManager({
    clock,
    newId,
    log,
    traces,
    records: createRecordStore({ traces, fsync: config.fsync, log }),
    models: modelsOf(config, clock, measureRequests(metrics)),
    heartbeat: new HeartbeatWheel({ intervalMs: config.heartbeatMs, clock }),
    workspacesFolder,
    commandEnvironment: scrubEnvironment(process.env, {
      names: ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"],
      secrets: config.secrets,
    }),
    ...(mcp === undefined ? {} : { mcp }),
    systemPrompt: config.systemPrompt,
    maxTurns: config.maxTurns,
    retry: config.retry,
    compaction: config.compaction,
    replay: { maxEvents: config.replayEvents, maxBytes: config.replayBytes, budget, figures },
    approvalTimeoutMs: config.approvalTimeoutMs,
    allowOutside: config.allowOutside,
    maxSessions: config.maxSessions,
    maxTasks: config.maxTasks,
    ...measureWork(metrics, log),
  });
  measureChannels(metrics, figures, budget);
  measureSessions(metrics, manager, clock);
  return manager;
}

/** Begins to connect to the configured MCP servers; whoever holds the result closes it. */
export async function connectMcp(
  config: Config,
  log: Logger,
  clock: Clock,
  metrics: Metrics,
): Promise<McpServers | undefined> {
  const names = Object.keys(config.mcpServers);
  if (names.length === 0) return undefined;
  const { mcpEnvironment, startMcp } = await import("./tools/mcp.js");
  const mcp = startMcp({
    servers: config.mcpServers,
    environment: mcpEnvironment(process.env),
    clock,
    log,
    onCall: measureMcpCalls(metrics),
  });
  measureMcp(metrics, mcp, names.length);
  return mcp;
}

function modelsOf(
  { models, requestTimeoutMs, demoDelayMs }: Config,
  clock: Clock,
  onRequest: ReturnType<typeof measureRequests>,
): Models {
  return {
    defaultModel: models.defaultModel,
    views: () => models.models.map(viewOf),
    find: (provider, modelId) => models.find(provider, modelId),
    client: (spec) =>
      countedClient(createLLMClient(spec, { clock, newId, requestTimeoutMs, demoDelayMs }), {
        clock,
        onRequest: (stat) => onRequest(spec.provider, stat),
      }),
  };
}

/** Does it with the first call; each has the same promise. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined;
  return () => {
    done ??= work();
    return done;
  };
}

const newId = (): string => randomBytes(12).toString("hex");

function fail(code: number, problems: readonly string[]): void {
  for (const problem of problems) process.stderr.write(`omnid: ${problem}\n`);
  process.exitCode = code;
}
