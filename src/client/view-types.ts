// What a reader of one Session sees. Every View is an immutable snapshot; what did not change from one to the next keeps
// its identity, so that a renderer may compare by reference.

import type { OmniMessage } from "../protocol/message.js";
import type { PartialPayload, TokenCounts } from "../protocol/payloads.js";
import type { OmnidErrorCode } from "./omnid-error.js";
import type {
  Approval,
  History,
  HistoryRecord,
  QueueItem,
  ResyncReason,
  ServerEvent,
  Session,
  TaskState,
} from "./wire.js";

/** How the connection fares; how the Task fares is another thing. */
export type Connection =
  | { readonly status: "connecting" }
  /** `resynced`: the place in the stream was gone, and the history was read again. */
  | { readonly status: "live"; readonly resynced: boolean }
  /** There was no place for a stream: the Session is looked at from time to time. */
  | { readonly status: "polling" }
  /** `retryAt` is in ms since 1970, `attempt` counts from 1. */
  | {
      readonly status: "waiting";
      readonly attempt: number;
      readonly retryAt: number;
      readonly reason: string;
      readonly code: OmnidErrorCode | "closed" | "shutdown";
    }
  /** The Session is not there any more, or not this token's. */
  | { readonly status: "gone" }
  | { readonly status: "closed" };

/** One message. `key` names its place for a renderer and outlives the swap from open fragment to complete message. */
export interface ViewMessage {
  readonly key: string;
  readonly message: OmniMessage;
}

/** A segment that is being written: it has started and its complete message has not come. */
export interface Fragment {
  readonly key: string;
  /** Chain, type and call: one open fragment each. See `slotOf`. */
  readonly slot: string;
  /** The chain of children that it came through; empty for the Session's own. */
  readonly origin: readonly string[];
  readonly timestamp: string;
  readonly type: PartialPayload["type"];
  /** The tool's name, of a call. */
  readonly name: string;
  /** Empty for text and thinking. */
  readonly toolCallId: string;
  readonly content: string;
  readonly images: readonly string[];
}

/** A child's messages: its first records, and those that came by the stream since. Shown one after the other. */
export interface ChildView {
  readonly before: readonly ViewMessage[];
  readonly since: readonly ViewMessage[];
  /** How many of its records come before `since`. */
  readonly count: number;
  /** Whether `before` is those records; until then it is what was known of them. */
  readonly isRead: boolean;
  /** Among `since` something is missing that the stream leaves out, such as the child's own prompt: it is being read. */
  readonly isBehind: boolean;
}

/** A tool whose output is being held back. */
export interface Progress {
  readonly bytes: number;
  readonly tail: string;
}

/** Trace-only records are missing: those in `[from, to)` replace the first `count` messages that are not confirmed. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  readonly count: number;
}

/** Why the history has to be read again. */
export type StaleReason = ResyncReason | "hole" | "unreadable" | "records" | "gap" | "polled";

/** Where a connection is in the snapshot that it begins with: a `task_state`, then an approval for each that is open. */
export type Snapshot =
  | { readonly step: "due" }
  | { readonly step: "listing"; readonly left: number; readonly listed: readonly Approval[] }
  | { readonly step: "taken" };

export interface View {
  readonly sessionId: string;
  /** Null until it has been read. */
  readonly session: Session | null;
  readonly connection: Connection;
  /** In the order of the Trace. The ordinal of the one at index `i` is `first + i`, for those below `confirmed`. */
  readonly messages: readonly ViewMessage[];
  readonly first: number;
  /** Messages below this ordinal have their final place; those after it came by the stream. */
  readonly confirmed: number;
  /** There are older records, before this ordinal. */
  readonly nextBefore: number | null;
  readonly gap: Gap | null;
  readonly stale: StaleReason | null;
  /** In order of opening, children's included. */
  readonly fragments: readonly Fragment[];
  readonly children: Readonly<Record<string, ChildView>>;
  /** Open ones, children's included. */
  readonly approvals: readonly Approval[];
  readonly snapshot: Snapshot;
  /** By slot of the output. */
  readonly progress: Readonly<Record<string, Progress>>;
  /** State, waiting Tasks, reconnect wait, end of the last Task. Null until the stream has said it. */
  readonly task: TaskState | null;
  /** What waits: Tasks to come and steering that is not delivered. */
  readonly queue: readonly QueueItem[];
  /** The Session's own, without its children's. */
  readonly usage: TokenCounts | null;
  /** Id of the position that this describes; null before the first history. */
  readonly cursor: string | null;
  /** What the server asked for when it said that it goes down. */
  readonly shutdownRetryMs: number | null;
}

/** Everything that can happen to a View. */
export type ViewAction =
  /** An answer to `GET /messages`: the truth, at its cursor. */
  | { readonly type: "history"; readonly page: History }
  /** Older records, asked for with `before: view.first`. */
  | { readonly type: "earlier"; readonly page: History }
  /** Records asked for with `after: view.gap.from - 1`. */
  | { readonly type: "records"; readonly records: readonly HistoryRecord[] }
  /** A child's records: all of them, or when `isRead` those with `after: child.count - 1`. None where it is gone. */
  | { readonly type: "child_records"; readonly sessionId: string; readonly records: readonly HistoryRecord[] }
  | { readonly type: "session"; readonly session: Session }
  | { readonly type: "queue"; readonly items: readonly QueueItem[] }
  /** How a Session stands where there is no stream to say it. */
  | { readonly type: "standing"; readonly session: Session; readonly approvals: readonly Approval[] }
  /** A stream from `view.cursor` was answered. */
  | { readonly type: "connected" }
  | { readonly type: "connection"; readonly connection: Connection }
  | { readonly type: "stale"; readonly reason: StaleReason }
  /** The next message of the stream. */
  | { readonly type: "message"; readonly id: string | undefined; readonly message: OmniMessage }
  | { readonly type: "server_event"; readonly id: string | undefined; readonly event: ServerEvent };
