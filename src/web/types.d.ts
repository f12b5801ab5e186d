// The page's vocabulary, for the JSDoc of its modules. Messages come from the wire: every payload field may be missing.

export interface TokenCounts {
  cache_read: number;
  cache_write: number;
  output: number;
  total: number;
}

export interface Payload {
  type?: string;
  role?: string;
  event_type?: string;
  text?: string;
  thinking?: string;
  name?: string;
  arguments?: string;
  tool_call_id?: string;
  output?: string;
  images?: string[];
  image_url?: string;
  mime_type?: string;
  file_name?: string;
  data?: string;
  exit_code?: number;
  stop_reason?: string;
  status?: string;
  attempt?: number;
  retry_in_ms?: number;
  truncated?: boolean;
  error?: { kind: string; message: string };
  decision?: string;
  decided_by?: string;
  reason?: string | null;
  session?: TokenCounts;
  session_id?: string;
  steer_id?: string;
}

export interface Message {
  timestamp: string;
  type: string;
  payload: Payload;
  origin?: string[];
}

/** A Trace record as `GET /messages` gives it. */
export interface HistoryRecord extends Message {
  ordinal: number;
}

export interface HistoryPage {
  messages: HistoryRecord[];
  cursor: string;
  live?: { fragments: Message[] };
  children?: Record<string, number>;
  nextBefore?: number;
}

export interface Session {
  sessionId: string;
  provider: string;
  modelId: string;
  workspace: string;
  approvalMode: string;
  title: string | null;
  state: string;
  createdAt: string;
  lastActiveAt: string;
  pendingApprovals: number;
  queued: number;
  usage: TokenCounts & { costUsd?: number };
}

export interface Model {
  provider: string;
  modelId: string;
  available: boolean;
  reason?: string;
}

export interface Models {
  models: Model[];
  defaultModel: { provider: string; modelId: string };
}

export interface Approval {
  sessionId: string;
  toolCall: Message;
  requestedAt: string;
  expiresAt?: string;
}

export interface TaskState {
  state: string;
  taskId?: string;
  queued: number;
  pendingApprovals: number;
  records: number;
  retry?: { attempt: number; retryAt: string; status: string };
  ended?: { taskId: string; status: string; error?: { kind: string; message: string } };
}

/** One event of a stream; `id` only where this event carried one. */
export interface StreamEvent {
  event: string;
  data: string;
  id?: string;
}

/** A record in the view. `key` names its place on the page and outlives the swap from fragment to complete message. */
export interface Entry {
  key: string;
  message: Message;
}

export interface Fragment {
  key: string;
  /** Chain, type and call: one open fragment each. */
  slot: string;
  origin?: string[];
  timestamp: string;
  type: string;
  name: string;
  toolCallId: string;
  content: string;
  images?: string[];
}

/** A child's records: those up to the history's position (null until they were read) and those since. */
export interface Child {
  before: Entry[] | null;
  count: number;
  since: Entry[];
}

export interface View {
  /** Id of the position that the view describes; null before the first history. */
  cursor: string | null;
  /** Why the history must be read again, or null. */
  stale: string | null;
  /** Ordinal of the first entry. */
  first: number;
  nextBefore: number | null;
  entries: Entry[];
  /** Entries below this ordinal have their final place; those after it came by the stream. */
  confirmed: number;
  /** Trace-only records are missing: `[from, to)` is to be read and replaces the first `count` unconfirmed entries. */
  gap: { from: number; to: number; count: number } | null;
  fragments: Fragment[];
  children: Record<string, Child>;
  approvals: Approval[];
  /** The next `task_state` is a connection's snapshot. */
  snapshotDue: boolean;
  progress: Record<string, { bytes: number; tail: string }>;
  task: TaskState | null;
  session: Session | null;
  usage: TokenCounts | null;
  /** What the server asked for when it said that it goes down. */
  shutdownRetryMs: number | null;
}

export type ToolState =
  | "writing"
  | "waiting"
  | "approval"
  | "running"
  | "done"
  | "failed"
  | "timeout"
  | "denied"
  | "aborted"
  | "cut";

export type Item =
  | { kind: "user"; key: string; text: string; at: string; steered: boolean }
  | { kind: "text"; key: string; text: string; open: boolean; stop: string }
  | { kind: "thinking"; key: string; text: string; open: boolean; stop: string }
  | { kind: "image"; key: string; url: string; role: string }
  | { kind: "file"; key: string; name: string; role: string }
  | { kind: "notice"; key: string; tone: "quiet" | "warn" | "bad"; text: string; more: string }
  | { kind: "subagent"; key: string; sessionId: string; items: Item[] }
  | ToolItem;

export interface ToolItem {
  kind: "tool";
  key: string;
  name: string;
  args: string;
  state: ToolState;
  decidedBy: string;
  reason: string;
  output: string;
  hasOutput: boolean;
  images: string[];
  exitCode: number | null;
  stop: string;
  progress: string;
}

export type LinkState =
  | { kind: "connecting" }
  | { kind: "live"; resynced: boolean }
  | { kind: "polling" }
  | { kind: "reconnecting"; at: number; why: string }
  | { kind: "gone" };
