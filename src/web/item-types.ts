// What the conversation shows, item by item. An item is plain data: two of equal fields look the same.

import type { Call } from "./tool-calls.js";

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

/** A call as it is shown; its `key` is the item's. */
export interface ToolItem extends Omit<Call, "id" | "isWritten" | "decision"> {
  kind: "tool";
  /** The provider's id of the call; unique in its Session. */
  callId: string;
  /** The child whose call it is; undefined for the Session's own. */
  childId: string | undefined;
  state: ToolState;
  /** While the output is held back: how much there is, and its end. */
  progressBytes: number;
  progressTail: string;
}

export type Item =
  /** `forkAt`: the ordinal before its Prompt, in the one part that may ask for all of it again; otherwise null. */
  | { kind: "user"; key: string; text: string; at: string; steered: boolean; forkAt: number | null }
  /** `forkAt`: the ordinal at which its Request and everything that it asked for had ended. */
  | { kind: "text"; key: string; text: string; open: boolean; stop: string; forkAt: number | null }
  | { kind: "thinking"; key: string; text: string; open: boolean; stop: string }
  | { kind: "image"; key: string; url: string; role: string; forkAt: number | null }
  | { kind: "file"; key: string; name: string; role: string; forkAt: number | null }
  | { kind: "notice"; key: string; tone: "quiet" | "warn" | "bad"; text: string; more: string }
  | { kind: "compaction"; key: string; status: string; reason: string; context: number; summary: string }
  /** `asked`: how its prompt begins; empty where that is not known. */
  | { kind: "subagent"; key: string; sessionId: string; asked: string; items: readonly Item[] }
  | ToolItem;
