// Everything that a person may set, read once at start-up: environment variables and the JSON file that OMNID_CONFIG
// names. Every problem is found in one go. A variable that is set to nothing counts as not set, but for OMNID_TOKENS:
// whoever sets that means to have a lock.

import { createHash } from "node:crypto";
import { BlockList, isIP } from "node:net";
import { homedir } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { type ConfigFile, type ModelRef, mcpSecrets, parseConfigFile } from "./config-file.js";
import { buildRegistry, type Environment, type ModelRegistry } from "./model-registry.js";

export interface Token {
  /** Whose Sessions it opens: its name, or the hash of a bare secret. */
  owner: string;
  secret: string;
}

export interface Config {
  host: string;
  port: number;
  dataDir: string;
  tokens: readonly Token[];
  corsOrigins: readonly string[];
  allowedHosts: readonly string[];
  models: ModelRegistry;
  systemPrompt: string | undefined;
  /** -1: no limit. */
  maxTurns: number;
  compaction: ConfigFile["compaction"];
  mcpServers: ConfigFile["mcpServers"];
  replayEvents: number;
  replayBytes: number;
  /** What the replay buffers of all Channels may hold together. */
  replayTotalBytes: number;
  heartbeatMs: number;
  retry: { baseMs: number; maxMs: number; limit: number };
  requestTimeoutMs: number;
  approvalTimeoutMs: number | undefined;
  allowOutside: boolean;
  maxSessions: number | undefined;
  maxTasks: number | undefined;
  maxStreams: number | undefined;
  bodyLimit: number;
  shutdownMs: number;
  fsync: "always" | "interval" | "off";
  demoDelayMs: number;
  logLevel: LogLevel;
  /** Every value that must not leave the process; for redaction and for the environment of commands. */
  secrets: readonly string[];
}

const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** setTimeout takes no more; a larger delay would fire at once. */
const MAX_DELAY_MS = 2_147_483_647;

const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^-?\d{1,15}$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const delay = (fallback: number, min = 0) => integer(min, MAX_DELAY_MS).default(fallback);
const cap = integer(1, Number.MAX_SAFE_INTEGER).optional();
const url = z.url({ protocol: /^https?$/, error: "must be an http or https URL" }).optional();
const key = z
  .string()
  .regex(/^[\x21-\x7e]+$/, "must be printable ASCII without spaces")
  .optional();
const list = <T>(item: z.ZodType<T, string>) =>
  z
    .string()
    .transform((text) => text.split(",").map((part) => part.trim()))
    .pipe(z.array(item))
    .default([]);

const origin = z.string().refine(isOrigin, "each must be an exact origin such as https://example.org");
const allowedHost = z
  .string()
  .regex(
    /^(\[[0-9a-fA-F:.]+\]|[a-zA-Z0-9._-]+)(:\d{1,5})?$/,
    "each must be a host name or address, with or without a port",
  );

const environmentSchema = z.object({
  HOST: z
    .string()
    .transform((host) => host.replace(/^\[(.*)\]$/, "$1"))
    .refine((host) => isIP(host) !== 0 || /^[a-zA-Z0-9._-]+$/.test(host), "must be an address or a host name")
    .default("127.0.0.1"),
  PORT: integer(0, 65_535).default(8420),
  OMNID_DATA_DIR: z.string().default("~/.omnid"),
  OMNID_TOKENS: z.string().transform(parseTokens).default([]),
  CORS_ORIGINS: list(origin),
  OMNID_ALLOWED_HOSTS: list(allowedHost),
  OMNID_CONFIG: z.string().optional(),
  OMNID_MODEL: z.string().transform(parseModelRef).optional(),
  OPENAI_API_KEY: key,
  OPENAI_BASE_URL: url,
  ANTHROPIC_API_KEY: key,
  ANTHROPIC_BASE_URL: url,
  GEMINI_API_KEY: key,
  GEMINI_BASE_URL: url,
  OMNID_REPLAY_EVENTS: integer(1, 10_000_000).default(10_000),
  OMNID_REPLAY_BYTES: integer(1, Number.MAX_SAFE_INTEGER).default(8_388_608),
  OMNID_REPLAY_TOTAL_BYTES: integer(1, Number.MAX_SAFE_INTEGER).default(268_435_456),
  OMNID_HEARTBEAT_MS: delay(15_000, 1),
  OMNID_RETRY_BASE_MS: delay(2_000),
  OMNID_RETRY_MAX_MS: delay(30_000),
  OMNID_RETRY_LIMIT: integer(0, 1_000_000).default(5),
  OMNID_REQUEST_TIMEOUT_MS: delay(120_000, 1),
  OMNID_APPROVAL_TIMEOUT_MS: integer(1, MAX_DELAY_MS).optional(),
  OMNID_ALLOW_OUTSIDE: z
    .enum(["0", "1"], "must be 1 or 0")
    .transform((flag) => flag === "1")
    .default(false),
  OMNID_MAX_SESSIONS: cap,
  OMNID_MAX_TASKS: cap,
  OMNID_MAX_STREAMS: cap,
  OMNID_BODY_LIMIT: integer(1, 1_073_741_824).default(20_971_520),
  OMNID_SHUTDOWN_MS: delay(10_000),
  OMNID_FSYNC: z.enum(["always", "interval", "off"], "must be always, interval or off").default("interval"),
  OMNID_DEMO_DELAY_MS: delay(20),
  LOG_LEVEL: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(", ")}`).default("info"),
});
type Variables = z.infer<typeof environmentSchema>;

/**
 * Reads and checks the whole configuration. `readFile` may throw; it is called for OMNID_CONFIG only.
 * @returns the configuration, or every problem, each beginning with the name of its variable and none showing a secret.
 */
export function loadConfig(
  env: Environment,
  readFile: (path: string) => string,
): { ok: true; config: Config } | { ok: false; problems: string[] } {
  const given: Record<string, string> = {};
  for (const name of Object.keys(environmentSchema.shape)) {
    const value = env[name];
    if (value !== undefined && (value !== "" || name === "OMNID_TOKENS")) given[name] = value;
  }
  const parsed = environmentSchema.safeParse(given);
  const problems = parsed.success ? [] : parsed.error.issues.map((i) => `${String(i.path[0])}: ${i.message}`);
  const invalid = new Set(parsed.success ? [] : parsed.error.issues.map((issue) => String(issue.path[0])));
  problems.push(...lockProblems(given, invalid));

  const home = env.HOME || homedir();
  const path = given.OMNID_CONFIG;
  const read = path === undefined ? undefined : readConfigFile(expand(path, home), readFile);
  if (read !== undefined && "problems" in read) problems.push(...read.problems);
  const file = read !== undefined && "file" in read ? read.file : emptyFile();

  const built = buildRegistry(file.models, present(env), refIn(given.OMNID_MODEL), file.defaultModel);
  if ("unknown" in built) {
    const named = `${built.unknown.provider}/${built.unknown.modelId} is no model that is configured`;
    // While the file is unreadable nobody can say which models it would have brought.
    if (problems.length === 0 || read === undefined || "file" in read) {
      problems.push(built.from === "wanted" ? `OMNID_MODEL: ${named}` : `OMNID_CONFIG: defaultModel: ${named}`);
    }
  }
  if (problems.length > 0 || !parsed.success || "unknown" in built) return { ok: false, problems };
  return { ok: true, config: assemble(parsed.data, file, built.registry, home) };
}

/** True for an address that only this machine can reach, and for `localhost`. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host.toLowerCase() === "localhost" : loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

function lockProblems(given: Record<string, string>, invalid: ReadonlySet<string>): string[] {
  const host = environmentSchema.shape.HOST.safeParse(given.HOST);
  if (!host.success || isLoopback(host.data) || given.OMNID_TOKENS !== undefined || invalid.has("OMNID_TOKENS")) {
    return [];
  }
  return [`HOST: ${host.data} can be reached from other machines; set OMNID_TOKENS, or bind 127.0.0.1`];
}

function parseTokens(text: string, context: z.RefinementCtx<string>): Token[] {
  const tokens: Token[] = [];
  const fail = (message: string) => context.addIssue({ code: "custom", message });
  for (const [index, part] of text.split(",").entries()) {
    // A problem names the place and never the token.
    const which = `token ${index + 1}`;
    const colon = part.indexOf(":");
    const name = colon < 0 ? undefined : part.slice(0, colon);
    const secret = part.slice(colon + 1);
    if (part === "") fail(`${which} is empty`);
    else if (!/^[\x21-\x7e]*$/.test(part)) fail(`${which} holds white space or a character that no header can carry`);
    else if (name !== undefined && !/^[A-Za-z0-9._@-]{1,64}$/.test(name)) {
      fail(`the name of ${which} must be 1 to 64 letters, digits or . _ @ -`);
    } else if (secret === "") fail(`${which} has a name but no secret`);
    else if (tokens.some((other) => other.secret === secret)) fail(`${which} has the secret of another`);
    else if (tokens.some((other) => other.owner === name)) fail(`${which} has the name of another`);
    else tokens.push({ owner: name ?? ownerOf(secret), secret });
  }
  return tokens;
}

// A name holds no colon, so no name is ever taken for a hash.
function ownerOf(secret: string): string {
  return `sha256:${createHash("sha256").update(`omnid owner\0${secret}`).digest("hex")}`;
}

function refIn(text: string | undefined): ModelRef | undefined {
  const slash = text?.indexOf("/") ?? -1;
  return text === undefined || slash < 1 || slash === text.length - 1
    ? undefined
    : { provider: text.slice(0, slash), modelId: text.slice(slash + 1) };
}

function parseModelRef(text: string, context: z.RefinementCtx<string>): ModelRef {
  const ref = refIn(text);
  if (ref !== undefined) return ref;
  context.addIssue({ code: "custom", message: "must be provider/modelId" });
  return z.NEVER;
}

function isOrigin(text: string): boolean {
  const parsed = URL.canParse(text) ? new URL(text) : undefined;
  return parsed !== undefined && /^https?:$/.test(parsed.protocol) && parsed.origin === text;
}

function readConfigFile(
  path: string,
  readFile: (path: string) => string,
): { file: ConfigFile } | { problems: string[] } {
  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "unknown error";
    return { problems: [`OMNID_CONFIG: cannot read ${path}: ${code}`] };
  }
  const parsed = parseConfigFile(text);
  return "file" in parsed ? parsed : { problems: parsed.problems.map((problem) => `OMNID_CONFIG: ${problem}`) };
}

function emptyFile(): ConfigFile {
  const parsed = parseConfigFile("{}");
  if ("problems" in parsed) throw new Error(`an empty file has problems: ${parsed.problems.join("; ")}`);
  return parsed.file;
}

function present(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value !== ""));
}

function expand(path: string, home: string): string {
  return resolve(path === "~" || path.startsWith("~/") ? home + path.slice(1) : path);
}

function assemble(v: Variables, file: ConfigFile, models: ModelRegistry, home: string): Config {
  return {
    host: v.HOST,
    port: v.PORT,
    dataDir: expand(v.OMNID_DATA_DIR, home),
    tokens: v.OMNID_TOKENS,
    corsOrigins: v.CORS_ORIGINS,
    allowedHosts: v.OMNID_ALLOWED_HOSTS,
    models,
    systemPrompt: file.systemPrompt,
    maxTurns: file.maxTurns,
    compaction: file.compaction,
    mcpServers: file.mcpServers,
    replayEvents: v.OMNID_REPLAY_EVENTS,
    replayBytes: v.OMNID_REPLAY_BYTES,
    replayTotalBytes: v.OMNID_REPLAY_TOTAL_BYTES,
    heartbeatMs: v.OMNID_HEARTBEAT_MS,
    retry: { baseMs: v.OMNID_RETRY_BASE_MS, maxMs: v.OMNID_RETRY_MAX_MS, limit: v.OMNID_RETRY_LIMIT },
    requestTimeoutMs: v.OMNID_REQUEST_TIMEOUT_MS,
    approvalTimeoutMs: v.OMNID_APPROVAL_TIMEOUT_MS,
    allowOutside: v.OMNID_ALLOW_OUTSIDE,
    maxSessions: v.OMNID_MAX_SESSIONS,
    maxTasks: v.OMNID_MAX_TASKS,
    maxStreams: v.OMNID_MAX_STREAMS,
    bodyLimit: v.OMNID_BODY_LIMIT,
    shutdownMs: v.OMNID_SHUTDOWN_MS,
    fsync: v.OMNID_FSYNC,
    demoDelayMs: v.OMNID_DEMO_DELAY_MS,
    logLevel: v.LOG_LEVEL,
    secrets: secretsOf(v, file, models),
  };
}

function secretsOf(v: Variables, file: ConfigFile, models: ModelRegistry): string[] {
  const secrets = new Set<string>(v.OMNID_TOKENS.map((token) => token.secret));
  for (const key of [v.OPENAI_API_KEY, v.ANTHROPIC_API_KEY, v.GEMINI_API_KEY]) if (key) secrets.add(key);
  for (const { spec } of models.models) if (spec.apiKey) secrets.add(spec.apiKey);
  for (const secret of mcpSecrets(file)) secrets.add(secret);
  return [...secrets];
}
