// What every Session of the process shares: the stores, the models, the caps. Built once, by `main`.

import type { ChannelOptions, ChannelStat } from "../channel/channel.js";
import type { HeartbeatWheel } from "../channel/heartbeat.js";
import type { Clock } from "../clock.js";
import type { CompactionSettings } from "../engine/compaction.js";
import type { RetryPolicy } from "../engine/ladder.js";
import type { LLMClient } from "../engine/ports.js";
import type { TaskOutcome } from "../engine/run.js";
import type { ModelSpec } from "../llm/model-spec.js";
import type { CallStat } from "../tools/environment.js";
import type { ToolSource } from "../tools/tool.js";
import type { TraceLog, TraceStore } from "../trace/trace-store.js";
import { isStorageError } from "./is-storage-error.js";
import type { RecordStore } from "./session-record.js";
import type { ModelView, SessionState } from "./types.js";

/** The models that there are, as Sessions use them. */
export interface Models {
  readonly defaultModel: { provider: string; modelId: string };
  views(): ModelView[];
  find(provider: string, modelId: string): { spec: ModelSpec; available: boolean; reason?: string } | undefined;
  client(spec: ModelSpec): LLMClient;
}

export interface SessionLog extends TraceLog {
  error(details: object, message: string): void;
}

/** What an operator may want to watch. */
export interface Figures {
  sessions: number;
  inMemory: number;
  /** Tasks that have a place of their own. */
  running: number;
  /** Children at work in the places of their parents. */
  children: number;
  pendingApprovals: number;
  /** When the oldest of them was asked, in ms since 1970. */
  oldestApprovalAt: number | undefined;
  /** Those that are not in memory are `unloaded`. */
  states: Record<SessionState | "unloaded", number>;
}

export interface SessionProcess {
  clock: Clock;
  newId(): string;
  log: SessionLog;
  traces: TraceStore;
  records: RecordStore;
  models: Models;
  heartbeat: HeartbeatWheel;
  /** Absolute path of the folder of temporary Workspaces. */
  workspacesFolder: string;
  /** What commands find in their environment; free of secrets. */
  commandEnvironment: Readonly<Record<string, string>>;
  /** The tools of configured MCP servers, offered to every Session whatever built-in ones it asks for. */
  mcp?: ToolSource & { settled(): Promise<void> };
  /** Replaces the default system prompt. */
  systemPrompt: string | undefined;
  maxTurns: number;
  retry: RetryPolicy;
  compaction: CompactionSettings;
  /** What each Channel may hold; `budget` and `figures` are one for all of them. */
  replay: Pick<ChannelOptions, "maxEvents" | "maxBytes" | "budget" | "figures">;
  approvalTimeoutMs: number | undefined;
  allowOutside: boolean;
  maxSessions: number | undefined;
  maxTasks: number | undefined;
  /** `sessionId` is left out for the stream of an owner's Sessions. */
  onChannelStat(stat: ChannelStat, sessionId?: string): void;
  /** A tool call that was run. None of these may throw. */
  onToolCall?(call: CallStat): void;
  /** A record is on the disk, this long after it was given to the Trace. */
  onTraceWrite?(ms: number): void;
}

/** A Task that could not go on: a record that cannot be written is the disk's fault, anything else is a bug of ours. */
export function faultOutcome(log: SessionLog, sessionId: string, error: unknown): TaskOutcome {
  const isStorage = isStorageError(error);
  log.error({ err: error, sessionId }, isStorage ? "a record could not be written" : "a Task failed on a fault");
  return isStorage
    ? { status: "failed", error: { kind: "storage", message: error.message } }
    : { status: "failed", error: { kind: "unknown", message: "internal error" } };
}
