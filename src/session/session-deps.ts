// What one Session is made of, besides its record.

import type { Channel } from "../channel/channel.js";
import type { Clock } from "../clock.js";
import type { CompactionSettings } from "../engine/compaction.js";
import type { RetryPolicy } from "../engine/ladder.js";
import type { Environment, LLMClient } from "../engine/ports.js";
import type { TaskOutcome } from "../engine/run.js";
import type { ErrorKind, RequestError, TokenCounts } from "../protocol/payloads.js";
import type { Result } from "../result.js";
import type { Trace } from "../trace/trace-store.js";
import type { ChildSession } from "./children.js";
import type { InputLimits } from "./input.js";
import type { Journal } from "./journal.js";
import type { SessionRecord } from "./session-record.js";
import type { CreateSession, SessionRefusal, SessionView, Usage } from "./types.js";

/** Takes one of the process's places for running Tasks, or says why not. The function in it gives the place back. */
export interface ClaimTask {
  /** `whenFree` is called once, later, when the cap was reached and a place may have become free. */
  (options?: { whenFree?: () => void }): Result<() => void, "too_many_tasks" | "shutting_down">;
  /** A Task that had its place before the restart: no cap holds it up. */
  (options: { force: true }): { ok: true; value: () => void };
}

/** A Session's children, as its host keeps them. */
export interface HostedChildren {
  /** Makes a child that stays in memory until it is let go. */
  spawn(request: CreateSession): Promise<Result<ChildSession, SessionRefusal>>;
  /** The parent is done with the child. */
  letGo(childId: string): void;
  /** Removes a child that has said nothing. Never rejects. */
  discard(childId: string): Promise<void>;
  /** What each child has used that is still there. */
  usage(): Record<string, Usage>;
}

/** The client of the Session's model, or why there is none; `kind` is how a Task fails that comes to need it. */
export type ModelFound =
  | { ok: true; value: { llm: LLMClient; contextWindow: number } & InputLimits }
  | (Extract<Result<never, "model_unavailable">, { ok: false }> & { kind: ErrorKind });

/** What a Session needs of the process that hosts it. */
export interface SessionDeps {
  clock: Clock;
  newId(): string;
  trace: Pick<Trace, "read" | "readStored" | "openTrace" | "close">;
  channel: Channel;
  journal: Journal;
  environment: Environment;
  model(): ModelFound;
  workspaceExists(): Promise<boolean>;
  approvalTimeoutMs: number | undefined;
  defaultMaxTurns: number;
  retry: RetryPolicy;
  compaction: CompactionSettings;
  onCompactionFailed(error: RequestError | undefined): void;
  /** US dollars for this much usage of the Session's model; undefined where prices are not known. */
  costOf(usage: TokenCounts): number | undefined;
  claimTask: ClaimTask;
  children: HostedChildren;
  /** Of each child that the Channel has carried: how many of its records that was. */
  carried?: Readonly<Record<string, number>>;
  /** Writes the record. Rejects when it cannot be written. */
  saveRecord(record: SessionRecord): Promise<void>;
  onUpdated(record: SessionRecord, view: SessionView): void;
  onFault(error: unknown): TaskOutcome;
}
