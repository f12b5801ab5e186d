// Which server a command talks to: the one that is named, the one that runs on the data directory or at the usual
// address, or one that is started in this process for as long as the command takes. A token goes to the one that was
// named, or to the one that is known to be the data directory's: at the usual address anybody may listen.

import { readFileSync } from "node:fs";
import { type Client, type ClientOptions, createClient, OmnidError } from "../client/index.js";
import { systemClock } from "../clock.js";
import { type Config, loadConfig } from "../config.js";
import { EXIT_CONFIG, EXIT_UNREACHABLE, EXIT_USAGE } from "../exit-codes.js";

export interface ServerOptions {
  url?: string;
  token?: string;
}

export interface Connected {
  client: Client;
  url: string;
  /** Ends what was started for the command. */
  close(): Promise<void>;
}

export type ConnectResult = ({ ok: true } & Connected) | { ok: false; exitCode: number; problems: string[] };

/** A server on this machine answers at once, or is none. */
const PROBE_MS = 2_000;

/** Finds a server. `start` says whether one may be started where none runs. */
export async function connect(
  { url, token }: ServerOptions,
  { start }: { start: boolean },
  env: NodeJS.ProcessEnv = process.env,
): Promise<ConnectResult> {
  const secret = token ?? env.OMNID_TOKEN;
  if (url !== undefined) return toServer(url, secret, { name: "--url", exitCode: EXIT_USAGE });
  const named = env.OMNID_URL ?? "";
  if (named !== "") return toServer(named, secret, { name: "OMNID_URL", exitCode: EXIT_CONFIG });
  const loaded = loadConfig(env, (path) => readFileSync(path, "utf8"));
  if (!loaded.ok) return { ok: false, exitCode: EXIT_CONFIG, problems: loaded.problems };
  const { config } = loaded;
  const known = secret ?? config.tokens[0]?.secret;
  const { publishedAddress } = await import("../session/server-address.js");
  const published = await publishedAddress(config.dataDir);
  if (published !== undefined && (await isThere(published))) return toServerOf(config.dataDir, published, known);
  const usual = addressOf(config);
  if (config.port !== 0 && usual !== published && (await isThere(usual))) return toStranger(usual, config, known);
  if (start) return startHere(config, known);
  const problem = `no server runs on ${config.dataDir} or at ${usual}; start one with \`omnid\`, or name it with --url`;
  return { ok: false, exitCode: EXIT_UNREACHABLE, problems: [problem] };
}

/** @param source what named it, and the exit code of a name that is none */
function toServer(url: string, token: string | undefined, source: { name: string; exitCode: number }): ConnectResult {
  if (!URL.canParse(url) || !/^https?:/.test(url)) {
    return { ok: false, exitCode: source.exitCode, problems: [`${source.name}: "${url}" is no http address`] };
  }
  return connected(url, token);
}

/** It has the token for as long as it lives: whoever listens there afterwards is asked nothing. */
async function toServerOf(dataDir: string, url: string, token: string | undefined): Promise<ConnectResult> {
  if (token === undefined) return connected(url, undefined);
  const { publishedAddress } = await import("../session/server-address.js");
  return connected(url, async () => {
    if ((await publishedAddress(dataDir)) === url) return token;
    throw new OmnidError("network", `the server of ${dataDir} is not there any more`);
  });
}

/** One that this data directory does not know, in a container for one. It is used where it wants no token. */
async function toStranger(url: string, { dataDir }: Config, token: string | undefined): Promise<ConnectResult> {
  const stranger = connected(url, undefined);
  if (token === undefined) return stranger;
  const refusal = await stranger.client.models().catch((error: unknown) => error);
  if (!(refusal instanceof OmnidError && refusal.status === 401)) return stranger;
  const problem = `the server at ${url} wants a token, and it is not the one of ${dataDir}: yours was not sent; --url ${url} sends it`;
  return { ok: false, exitCode: EXIT_UNREACHABLE, problems: [problem] };
}

function connected(url: string, token: ClientOptions["token"]): { ok: true } & Connected {
  return { ok: true, client: createClient({ baseUrl: url, token }), url, close: async () => {} };
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
  return { ...connected(url, token), close };
}

function addressOf({ host, port }: Config): string {
  const everywhere: Record<string, string> = { "0.0.0.0": "127.0.0.1", "::": "[::1]" };
  const name = everywhere[host] ?? (host.includes(":") ? `[${host}]` : host);
  return `http://${name}:${port}`;
}
