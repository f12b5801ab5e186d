// What a rule is. Each guarantee of the protocol is one rule, and each rule lives in one file beside this one.
//
// A rule is made once for each chain of `origin` (the main stream, and each child's stream inside it) and keeps its
// own state. It reads `facts`, which say what the chain amounted to before the message at hand. A rule must accept
// everything the protocol permits: it is run over every stream that a test produces and over Traces of crashed Sessions.

import type { OmniMessage } from "../message.js";
import type { StopReason } from "../payloads.js";
import type { ChainFacts } from "./facts.js";

/** `stream`: what a reader of the Channel sees. `trace`: the records of a Trace, all its files in order. */
export type Mode = "stream" | "trace";

/** Says what is wrong; `place` defaults to the message at hand. */
export type Report = (message: string, at?: { place?: number | undefined; toolCallId?: string }) => void;

/** What a rule sees beside the message. */
export interface Look {
  place: number;
  facts: ChainFacts;
  report: Report;
}

export interface Rule {
  readonly name: string;
  push(message: OmniMessage, look: Look): void;
  /** Called once, when nothing more will come: what must have been closed by then. */
  end?(look: Look): void;
}

/** `completed` and absence are the same ending. */
export const abnormal = (stop: StopReason | undefined): StopReason | undefined =>
  stop === "completed" ? undefined : stop;

/** A value of the wire in a message for a person, on one line. */
export const quote = (value: unknown): string => JSON.stringify(value) ?? "nothing";

/** True for the reason of an abort that closed what a crash, or a disk that took no writes, had cut. */
export const isOfRecovery = (reason: string | null | undefined): boolean =>
  reason === "server_restarted" || reason === null || reason === undefined;
