// What the transport may ask of Sessions: the words that `routes/` and the page behind it share. Times are ISO 8601.

import type { Readable } from "node:stream";
import type { Sink } from "../channel/subscription.js";
import type { Decision, ThinkingLevel } from "../engine/ports.js";
import type { OmniMessage } from "../protocol/message.js";
import type { RequestError, StopReason, TokenCounts, ToolCallPayload } from "../protocol/payloads.js";
import type { Result } from "../result.js";
import type { SessionRefusal } from "./refusal.js";

export type { SessionRefusal };

/** The one that asks most comes first. */
export const APPROVAL_MODES = ["always-ask", "read-only", "allow-all"] as const;
export type ApprovalMode = (typeof APPROVAL_MODES)[number];

export type SessionState = "idle" | "running" | "compacting";

/** `costUsd`: US dollars, where prices are known. */
export type Usage = TokenCounts & { costUsd?: number };

export interface SessionView {
  sessionId: string;
  provider: string;
  modelId: string;
  workspace: string;
  approvalMode: ApprovalMode;
  thinkingLevel: ThinkingLevel;
  title: string | null;
  state: SessionState;
  createdAt: string;
  lastActiveAt: string;
  archived: boolean;
  pendingApprovals: number;
  queued: number;
  /** Cumulative, children's included. */
  usage: Usage;
  parentSessionId?: string;
}

/** Whose a Session is: a token's name (or the hash of a bare secret); null while no token is configured. */
export type Owner = string | null;

export interface CreateSession {
  provider?: string;
  modelId?: string;
  workspace?: string;
  approvalMode?: ApprovalMode;
  thinkingLevel?: ThinkingLevel;
  systemPrompt?: string;
  title?: string;
  maxTurns?: number;
  tools?: string[];
  allowOutsideWorkspace?: boolean;
}

export interface CreateOptions {
  /** Called before anything is recorded of the Session. A rejection ends it: nothing is recorded then. */
  beforeRecorded?: (sessionId: string) => Promise<void>;
}

export interface ForkSession {
  /** The last record of the source that the fork has. */
  ordinal: number;
  provider?: string;
  modelId?: string;
}

/** A Trace that is uploaded. */
export interface ImportSource {
  /** JSON Lines, in pieces of any size. What it throws is thrown on, and nothing is left of the import then. */
  chunks: AsyncIterable<Uint8Array>;
  /** What to do with lines that hold no record: refuse the file, or leave them out as a restart does. */
  damaged: "refuse" | "skip";
  /** Longest line that is taken. */
  maxLineBytes: number;
}

/** What is wrong with a file, by line. */
export interface LineProblem {
  path: string;
  message: string;
}

/** What a file became. `problems` says why not, by line. */
export type Taken<T> = Result<T, SessionRefusal> & { problems?: LineProblem[] };

export interface PatchSession {
  title?: string | null;
  approvalMode?: ApprovalMode;
  thinkingLevel?: ThinkingLevel;
  archived?: boolean;
}

export type InputPart =
  | { type: "text"; text: string }
  | { type: "image_url"; imageUrl: string }
  | { type: "file"; fileName: string; dataUrl: string };
export type Input = string | InputPart[];

export interface TaskView {
  taskId: string;
  state: "queued" | "running" | "ended";
  status?: StopReason;
  error?: RequestError;
  startedAt?: string;
  endedAt?: string;
}

/** What waits in a Session: a Task to come, or steering that the model has not been given. */
export interface QueueItem {
  /** The `taskId` or the `steerId`. */
  itemId: string;
  kind: "task" | "steer";
  input: Input;
  createdAt: string;
}

/** What a prompt became. `queued`: the number of Tasks that wait, this one included; 0 when it has started. */
export interface Assigned {
  taskId: string;
  queued: number;
  /** When it was delivered into a running Task. */
  steerId?: string;
}

export interface ApprovalView {
  sessionId: string;
  toolCall: OmniMessage<ToolCallPayload>;
  origin?: string[];
  requestedAt: string;
  expiresAt?: string;
}

/** A Decision as a client gives it. */
export type ClientDecision = Pick<Decision, "decision" | "reason">;

export interface ModelView {
  provider: string;
  modelId: string;
  protocol: string;
  contextWindow: number;
  vision: boolean;
  available: boolean;
  reason?: string;
}

/** A record as it is stored, and its place in the Trace. */
export interface HistoryRecord {
  ordinal: number;
  /** Of a long one the bytes, in pieces that are read from the disk as they are taken, before the next batch. */
  json: string | AsyncIterable<Buffer>;
}

/** A page of history. It says how the Session stood when it was asked for, whatever is appended while it is read. */
export interface HistoryPage {
  /** The records in order, read from the disk as they are taken, once. Throws StorageError where the disk refuses. */
  records: AsyncIterable<readonly HistoryRecord[]>;
  cursor: string;
  live?: { fragments: OmniMessage[] };
  children?: Record<string, number>;
  nextBefore?: number;
}

export interface HistoryQuery {
  limit?: number;
  before?: number;
  after?: number;
  context?: "current";
}

export interface SubmitOptions {
  thinkingLevel?: ThinkingLevel;
  whenBusy?: "reject" | "queue" | "steer" | "interrupt";
  /** An Idempotency-Key answers for it: how its Task went is remembered as long as the key. */
  hasKey?: true;
  /** Called before anything is recorded of what it will become. A rejection ends it: nothing is recorded then. */
  beforeRecorded?: (assigned: Assigned) => Promise<void>;
  /** Runs in the place of the Task that asked for it, which waits for this one. */
  sharesPlace?: true;
  /** Called in the tick in which it is on record, before any message of its Task. */
  onAssigned?: (assigned: Assigned) => void;
}

/** One Session in memory, as the transport uses it. */
export interface HostedSession {
  readonly id: string;
  view(): SessionView;
  patch(change: PatchSession): Promise<Result<SessionView, SessionRefusal>>;
  /**
   * Starts a Task, or does with it what `whenBusy` says. Resolves once the Prompt or the item that waits is recorded.
   * A stream opened in `onAssigned` misses no message of the Task.
   */
  submit(input: Input, options: SubmitOptions): Promise<Result<Assigned, SessionRefusal>>;
  /** Gives the running Task's model a further user message. Resolves once it is recorded that it waits. */
  steer(input: Input): Promise<Result<{ steerId: string }, SessionRefusal>>;
  /** Puts a summary in place of the conversation. Resolves once it is recorded that this has begun. */
  compact(): Promise<Result<void, SessionRefusal>>;
  task(taskId: string): TaskView | undefined;
  /** True for a Task or steering that was ever recorded here (ended Tasks as far as they are remembered). */
  holds(itemId: string): boolean;
  /** What waits, the oldest first. */
  queue(): QueueItem[];
  /** Takes back what waits. Resolves once that is recorded. */
  recall(itemId: string): Promise<Result<QueueItem, SessionRefusal>>;
  /** Ends the wait for a further try at once. @returns false when there was none. */
  retryNow(): boolean;
  approvals(): ApprovalView[];
  /** Resolves once the decision is in the Trace. */
  decide(toolCallId: string, decision: ClientDecision): Promise<Result<void, SessionRefusal>>;
  /** Interrupts what runs; what waits goes too with `clearQueue`. @returns false when nothing was running. */
  abort(options: { clearQueue?: boolean }): Promise<Result<boolean, SessionRefusal>>;
  /** @param gone aborts when whoever asked has left: nothing more is read for him */
  history(query: HistoryQuery, gone?: AbortSignal): HistoryPage;
  /** The Trace as stored, byte for byte, all its files in order. */
  openTrace(): Readable;
  /**
   * Subscribes a reader to the Channel. With `untilTask` the stream ends after the `task_state` that ends that Task
   * (at once, with that one event, when it is over already, or not remembered any more: then `ended` has no `status`).
   */
  follow(sink: Sink, options: { lastEventId?: string; untilTask?: string }): void;
}

/** All Sessions of this process, seen by owner: another's Session does not exist. */
export interface SessionHost {
  create(request: CreateSession, owner: Owner, options?: CreateOptions): Promise<Result<HostedSession, SessionRefusal>>;
  /**
   * Makes a Session of another's history up to and including a record, in the same Workspace. The source is only read.
   * @returns undefined when there is no source of that id.
   */
  fork(id: string, request: ForkSession, owner: Owner): Promise<Result<HostedSession, SessionRefusal> | undefined>;
  /** Makes a Session of an uploaded Trace. */
  importTrace(source: ImportSource, owner: Owner): Promise<Taken<HostedSession>>;
  list(
    query: { limit: number; cursor?: string; archived: boolean; parent?: string },
    owner: Owner,
  ): Promise<Result<{ sessions: SessionView[]; nextCursor?: string }, SessionRefusal>>;
  /** Brings it into memory, whatever the cap, and keeps it there until `work`, given undefined when there is none, is done. */
  use<T>(id: string, owner: Owner, work: (session: HostedSession | undefined) => T | Promise<T>): Promise<T>;
  /** False when `use` would have to bring one more into memory than the cap allows. Ask in the tick of the `use`. */
  hasRoomFor(id: string, owner: Owner): boolean;
  /** @returns false when there is no such Session. */
  remove(id: string, owner: Owner): Promise<boolean>;
  models(): { models: ModelView[]; defaultModel: { provider: string; modelId: string } };
  /** Subscribes a reader to `session_created`, `session_updated` and `session_deleted` of one owner. */
  followEvents(sink: Sink, owner: Owner): void;
  /** True once the data directory takes writes and nothing is being drained. */
  ready(): Promise<boolean>;
  readonly draining: boolean;
}
