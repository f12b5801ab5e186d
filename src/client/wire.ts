// What goes over the wire, by name. Every type comes from the server's own schemas by type-only imports, so that nothing
// of them is in a bundle and a field that changes there changes here.

import type { z } from "zod";
import type * as contracts from "../http/contracts.js";
import type { forkBody } from "../http/contracts-fork.js";
import type { inputSchema } from "../http/contracts-prompt.js";
import type { abortBody, queueItemSchema, steeredSchema } from "../http/contracts-queue.js";
import type * as events from "../http/contracts-stream.js";
import type { ErrorCode, Problem } from "../http/errors.js";
import type { OmniMessage } from "../protocol/message.js";
import type { ToolCallPayload } from "../protocol/payloads.js";

export type { ErrorCode, Problem };

export type Session = z.infer<typeof contracts.sessionSchema>;
export type SessionList = z.infer<typeof contracts.sessionListSchema>;
export type CreateSession = z.infer<typeof contracts.createSessionBody>;
export type PatchSession = z.infer<typeof contracts.patchSessionBody>;
export type ForkSession = z.infer<typeof forkBody>;
export type ApprovalMode = Session["approvalMode"];
export type ThinkingLevel = Session["thinkingLevel"];
export type SessionUsage = Session["usage"];

export type ModelList = z.infer<typeof contracts.modelListSchema>;
export type Model = ModelList["models"][number];

/** What a user says: a text that is not blank, or a list of parts. */
export type Prompt = z.infer<typeof inputSchema>;
export type SubmitTask = z.infer<typeof contracts.submitBody>;
export type TaskAccepted = z.infer<typeof contracts.acceptedSchema>;
export type Task = z.infer<typeof contracts.taskSchema>;
export type AbortTask = z.infer<typeof abortBody>;
export type Steered = z.infer<typeof steeredSchema>;
export type QueueItem = z.infer<typeof queueItemSchema>;

export type Decide = z.infer<typeof contracts.decideBody>;
export type Approval = Omit<z.infer<typeof contracts.approvalSchema>, "toolCall"> & {
  toolCall: OmniMessage<ToolCallPayload>;
};

/** A Trace record as a history gives it. */
export type HistoryRecord = OmniMessage & { ordinal: number };
export type History = Omit<z.infer<typeof contracts.historySchema>, "messages" | "live"> & {
  messages: HistoryRecord[];
  live?: { fragments: OmniMessage[] } | undefined;
};

export type TaskState = Omit<z.infer<typeof events.taskStateEvent>, "type">;
export type ToolProgress = Omit<z.infer<typeof events.toolProgressEvent>, "type">;
export type ResyncReason = z.infer<typeof events.resyncRequiredEvent>["reason"];
/** The JSON of an event that is named `server_event`. */
export type ServerEvent =
  | Exclude<z.infer<typeof events.serverEvent>, { type: "approval_request" }>
  | ({ type: "approval_request" } & Approval);
/** The JSON of an event of `GET /api/events`. */
export type HostEvent = z.infer<typeof events.hostEvent>;

/** One event of a Session's stream. A `server_event` has an id only where it names a position. */
export type ChannelEvent =
  | { kind: "message"; id: string | undefined; message: OmniMessage }
  | { kind: "server_event"; id: string | undefined; event: ServerEvent };

export interface ListQuery {
  limit?: number;
  cursor?: string;
  archived?: boolean;
  /** The children of this Session. */
  parent?: string;
}

export interface HistoryQuery {
  /** The last N records. */
  limit?: number;
  before?: number;
  after?: number;
  /** `current` leaves out what compaction closed. */
  context?: "current";
}

export interface CallOptions {
  signal?: AbortSignal;
}

export interface OnceOptions extends CallOptions {
  /** The same key with an equal body gives the first answer again and starts nothing. */
  idempotencyKey?: string;
}
