// The Session record: `session.json` beside the Trace, which holds what the Trace does not (owner, mode, title, last
// epoch). Small and replaced as a whole, so that listing Sessions reads no Trace. Fields that we do not know are kept.
//
// A field that is broken takes the value that grants least; a record whose identity is broken counts as missing, and
// the Session comes back from its Trace.

import { dirname, join } from "node:path";
import { z } from "zod";
import { THINKING_LEVELS, type ThinkingLevel } from "../engine/ports.js";
import { emptyTokenCounts } from "../protocol/builders.js";
import { toLine } from "../protocol/message.js";
import { type SessionMetaPayload, tokenCountsSchema } from "../protocol/payloads.js";
import { MCP_PREFIX } from "../tools/mcp-names.js";
import { errnoOf, onDisk } from "../trace/storage-error.js";
import { diskFs, type FsyncPolicy, replaceFile, type TraceFs } from "../trace/trace-fs.js";
import type { TraceLog, TraceStore } from "../trace/trace-store.js";
import { mapBounded } from "./map-bounded.js";
import { ledgerFields } from "./task-ledger.js";
import { APPROVAL_MODES, type Usage } from "./types.js";

const RECORD_FILE = "session.json";
/** Records that are read at once at start. */
const READ_CONCURRENCY = 64;
const UNKNOWN_TIME = "1970-01-01T00:00:00.000Z";

const time = z.iso.datetime({ offset: true }).catch(UNKNOWN_TIME);

const usageSchema = tokenCountsSchema.extend({ costUsd: z.number().nonnegative().optional() });

export const sessionRecordSchema = z.looseObject({
  sessionId: z.string().min(1),
  /** Whose it is; null while no token was configured. Never guessed: a broken owner makes the record broken. */
  owner: z.string().nullable(),
  provider: z.string(),
  modelId: z.string(),
  /** Absolute path. */
  workspace: z.string().min(1),
  /** True for a temporary Workspace of ours, which goes with the last Session that uses it. */
  ownsWorkspace: z.boolean().catch(false),
  approvalMode: z.enum(APPROVAL_MODES).catch("always-ask"),
  thinkingLevel: z.enum(THINKING_LEVELS).catch("default"),
  title: z.string().nullable().catch(null),
  maxTurns: z.number().int().optional().catch(undefined),
  /** Names of the built-in tools to offer; absent: all. A broken list offers none. */
  tools: z.array(z.string()).optional().catch([]),
  systemPrompt: z.string().optional().catch(undefined),
  allowOutsideWorkspace: z.boolean().optional().catch(undefined),
  createdAt: time,
  lastActiveAt: time,
  archived: z.boolean().catch(false),
  parentSessionId: z.string().optional().catch(undefined),
  ...ledgerFields,
  /** Number of records that a fork was given: the Session is idle behind them, though they may end with a Prompt. */
  restsAt: z.number().int().positive().optional().catch(undefined),
  /** The last epoch of the Session's Channel; the next one is larger. */
  epoch: z.number().int().nonnegative().catch(0),
  /** Cumulative, the Session's own. */
  usage: usageSchema.catch(() => emptyTokenCounts() as Usage),
  /** What each child had used when that was last looked at; a child that is still there knows better. */
  childUsage: z.record(z.string(), usageSchema).optional().catch(undefined),
});
export type SessionRecord = z.infer<typeof sessionRecordSchema>;

export interface RecordStore {
  /**
   * The records of many Sessions, in the order of the ids. Opens no Trace: where there is no record or it cannot be read,
   * it is undefined, and `recordFromMeta` makes one from the Trace.
   */
  readAll(sessionIds: readonly string[]): Promise<(SessionRecord | undefined)[]>;
  /** The record of what is left of a Session in another folder than its own; undefined as in `readAll`. */
  readIn(folder: string, sessionId: string): Promise<SessionRecord | undefined>;
  /**
   * Resolves when the record, or a later one of the same Session, is in place of the old. Rejects with StorageError,
   * also when the Session's folder is gone; the old record is then as it was.
   */
  write(record: SessionRecord): Promise<void>;
}

export interface RecordStoreOptions {
  traces: Pick<TraceStore, "folder">;
  fs?: TraceFs;
  fsync: FsyncPolicy;
  log: TraceLog;
}

export function createRecordStore({ traces, fs = diskFs, fsync, log }: RecordStoreOptions): RecordStore {
  const writers = new Map<string, LatestWriter>();
  const pathOf = (sessionId: string) => join(traces.folder(sessionId), RECORD_FILE);
  const readIn = (folder: string, sessionId: string) => readRecord(fs, join(folder, RECORD_FILE), sessionId, log);
  return {
    readIn,
    readAll: (sessionIds) => mapBounded(sessionIds, READ_CONCURRENCY, (id) => readIn(traces.folder(id), id)),
    write: async (record) => {
      const { sessionId } = record;
      let writer = writers.get(sessionId);
      if (writer === undefined) {
        writer = new LatestWriter((newest) => replaceFile(fs, pathOf(sessionId), textOf(newest), fsync));
        writers.set(sessionId, writer);
      }
      try {
        await onDisk("write_failed", "the session record could not be written", () => writer.write(record));
      } finally {
        if (writer.isIdle && writers.get(sessionId) === writer) writers.delete(sessionId);
      }
    },
  };
}

/** The record as a file beside a new Trace, for `TraceStore.create`. */
export const recordFile = (record: SessionRecord): Record<string, string> => ({ [RECORD_FILE]: textOf(record) });

/**
 * The record of a Session whose own is missing or broken, from the newest `session_meta` of its Trace: asks for
 * everything, belongs to nobody, and owns a Workspace only where we make temporary ones.
 */
export function recordFromMeta(
  meta: SessionMetaPayload,
  context: {
    sessionId: string;
    createdAt: string;
    lastActiveAt: string;
    workspacesFolder: string;
  },
): SessionRecord {
  const { sessionId, createdAt, lastActiveAt, workspacesFolder } = context;
  return {
    sessionId,
    owner: null,
    provider: meta.provider,
    modelId: meta.model_id,
    workspace: meta.workspace,
    ownsWorkspace: dirname(meta.workspace) === workspacesFolder,
    approvalMode: "always-ask",
    thinkingLevel: isThinkingLevel(meta.thinking_level) ? meta.thinking_level : "default",
    title: null,
    // What the model was offered, less what configured MCP servers add by themselves.
    tools: meta.tools.map((tool) => tool.name).filter((name) => !name.startsWith(MCP_PREFIX)),
    createdAt,
    lastActiveAt,
    archived: false,
    epoch: 0,
    usage: emptyTokenCounts(),
  };
}

async function readRecord(
  fs: TraceFs,
  path: string,
  sessionId: string,
  log: TraceLog,
): Promise<SessionRecord | undefined> {
  let text: string;
  try {
    text = (await fs.readFile(path)).toString();
  } catch (error) {
    const errno = errnoOf(error);
    // One bad block must not keep all other Sessions from being listed. Nobody but the owner would have been shown it.
    if (errno !== "ENOENT" && errno !== "ENOTDIR") log.warn({ err: error, path }, "session record cannot be read");
    return undefined;
  }
  const record = parseSessionRecord(text);
  // A folder that was copied by hand still tells of the other Session.
  if (record?.sessionId === sessionId) return record;
  log.warn({ path }, "session record is broken; it is made again from the trace");
  return undefined;
}

/** @returns the record in a file's text, or undefined when it is not one. */
export function parseSessionRecord(text: string): SessionRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // A damaged file is an expected content; the caller reports it.
  }
  const parsed = sessionRecordSchema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}

const textOf = (record: SessionRecord): string => `${toLine(record)}\n`;

const isThinkingLevel = (level: string): level is ThinkingLevel =>
  (THINKING_LEVELS as readonly string[]).includes(level);

/**
 * Writes records one after the other; of those that wait only the newest is written, and answers for all of them. One
 * that a newer one overtakes is never put into text: with a long queue in it that takes its time.
 */
class LatestWriter {
  readonly #put: (record: SessionRecord) => Promise<void>;
  #running: Promise<void> | undefined;
  #next: { record: SessionRecord; done: Promise<void> } | undefined;

  constructor(put: (record: SessionRecord) => Promise<void>) {
    this.#put = put;
  }

  get isIdle(): boolean {
    return this.#running === undefined && this.#next === undefined;
  }

  write(record: SessionRecord): Promise<void> {
    if (this.#next !== undefined) {
      this.#next.record = record;
      return this.#next.done;
    }
    if (this.#running === undefined) return this.#start(record);
    const next = { record, done: Promise.resolve() };
    next.done = this.#running
      .catch(() => {}) // Reported to whoever wrote that one.
      .then(() => {
        this.#next = undefined;
        return this.#start(next.record);
      });
    this.#next = next;
    return next.done;
  }

  #start(record: SessionRecord): Promise<void> {
    const running = this.#put(record).finally(() => {
      if (this.#running === running) this.#running = undefined;
    });
    this.#running = running;
    return running;
  }
}
