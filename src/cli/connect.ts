// Which server a command talks to: the one that is named, the one that runs on the data directory or at the usual
// address, or one that is started in this process for as long as the command takes.

import { readFileSync } from "node:fs";
import { type Client, createClient } from "../client/index.js";
import { systemClock } from "../clock.js";
import { type Config, loadConfig } from "../config.js";

export interface ServerOptions {
  url?: string;
  token?: string;
}

export interface Connected {
  client: Client;
  url: string;
  /** True where the server runs in this process. */
  isOwn: boolean;
  /** Ends what was started for the command. */
  close(): Promise<void>;
}

export type ConnectResult = ({ ok: true } & Connected) | { ok: false; exitCode: number; problems: string[] };

/** No server, or one that refuses. */
export const EXIT_UNREACHABLE = 2;
/** As a shell has it for a command that Ctrl-C ended. */
export const EXIT_INTERRUPTED = 130;
const EXIT_CONFIG = 78;
/** A server on this machine answers at once, or is none. */
const PROBE_MS = 2_000;

/** Finds a server. `start` says whether one may be started where none runs. */
export async function connect(
  { url, token }: ServerOptions,
  { start }: { start: boolean },
  env: NodeJS.ProcessEnv = process.env,
): Promise<ConnectResult> {
  const named = url ?? env.OMNID_URL;
  const secret = token ?? env.OMNID_TOKEN;
  if (named !== undefined && named !== "") return toServer(named, secret);
  const loaded = loadConfig(env, (path) => readFileSync(path, "utf8"));
  if (!loaded.ok) return { ok: false, exitCode: EXIT_CONFIG, problems: loaded.problems };
  const { config } = loaded;
  const known = secret ?? config.tokens[0]?.secret;
  const running = await findServer(config);
  if (running !== undefined) return toServer(running, known);
  if (start) return startHere(config, known);
  const problem = `no server runs on ${config.dataDir} or at ${addressOf(config)}; start one with \`omnid\`, or name it with --url`;
  return { ok: false, exitCode: EXIT_UNREACHABLE, problems: [problem] };
}

function toServer(url: string, token: string | undefined): ConnectResult {
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    return { ok: false, exitCode: EXIT_UNREACHABLE, problems: [`${url} is no http address`] };
  }
  const client = createClient({ baseUrl: url, ...(token === undefined ? {} : { token }) });
  return { ok: true, client, url, isOwn: false, close: async () => {} };
}

async function findServer(config: Config): Promise<string | undefined> {
  const { publishedAddress } = await import("../session/server-address.js");
  const published = await publishedAddress(config.dataDir);
  if (published !== undefined && (await isThere(published))) return published;
  // One of another data directory is better than none only where somebody named its address.
  const usual = addressOf(config);
  return config.port !== 0 && usual !== published && (await isThere(usual)) ? usual : undefined;
}

async function isThere(url: string): Promise<boolean> {
  const patience = new AbortController();
  const cancel = systemClock().after(PROBE_MS, () => patience.abort());
  try {
    const response = await fetch(`${url}/healthz`, { signal: patience.signal });
    return response.ok && ((await response.json()) as { status?: unknown }).status === "ok";
  } catch {
    return false; // Nobody listens, or somebody else does.
  } finally {
    cancel();
  }
}

async function startHere(config: Config, token: string | undefined): Promise<ConnectResult> {
  const [{ openServer }, { createLog }] = await Promise.all([import("../main.js"), import("../http/logging.js")]);
  // What the server logs is not what was asked for; faults are.
  const quiet = process.env.LOG_LEVEL === undefined ? { ...config, logLevel: "error" as const } : config;
  const local: Config = { ...quiet, host: "127.0.0.1", port: 0 };
  const opened = await openServer(local, createLog(local));
  if (!opened.ok) {
    const hint = opened.exitCode === 75 ? "; name it with --url" : "";
    return { ok: false, exitCode: opened.exitCode, problems: [opened.problem + hint] };
  }
  const { url, close } = opened.server;
  const client = createClient({ baseUrl: url, ...(token === undefined ? {} : { token }) });
  return { ok: true, client, url, isOwn: true, close };
}

function addressOf({ host, port }: Config): string {
  const everywhere: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };
  const name = everywhere[host] ?? (host.includes(":") ? `[${host}]` : host);
  return `http://${name}:${port}`;
}
