// What a Task owes at any moment, as a fold over the Trace's records: the Request whose end is missing, the calls
// without a decision or an output. From it come the closing records after a crash, in the order of an interrupt.

import {
  abort,
  approvalDecision,
  compactionEnd,
  emptyTokenCounts,
  requestEnd,
  tokenUsage,
  toolCallOutput,
} from "../protocol/builders.js";
import { isCompleteModelMessage, isPayload, isSessionMeta } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type {
  CompactionBeginPayload,
  CompactionEndPayload,
  RequestEndPayload,
  RequestError,
  StopReason,
  TokenCounts,
  ToolCallPayload,
} from "../protocol/payloads.js";
import { CALL_CUT_OFF, INTERRUPTED, NOT_RUN, OUTPUT_LOST } from "./engine-notes.js";
import { Opening } from "./opening.js";

interface OwedCall {
  message: OmniMessage<ToolCallPayload>;
  decided: boolean;
  /** It was let through, and has perhaps been run. */
  allowed: boolean;
  answered: boolean;
  /** Cut off by an output limit: answered without a question, and only if its Request commits. */
  cutOff: boolean;
}

/** Folds records into what is unfinished. Memory: the calls of the last batch. */
export class Unfinished {
  #requestOpen = false;
  /** The last Request ended, and counts. */
  #wasCommitted = false;
  #usageRecorded = false;
  #compaction: CompactionBeginPayload | undefined;
  #calls = new Map<string, OwedCall>();
  /** True from a Prompt until the record that ends its Task. */
  #taskOpen = false;
  /** An end that an interrupt gave is on record, and its `abort` is not. */
  #abortOwed = false;
  readonly #opening = new Opening();
  #lastEnd: { status: StopReason; error?: RequestError } = { status: "completed" };

  push(record: OmniMessage): void {
    if (record.origin !== undefined && record.origin.length > 0) return;
    // What a compaction wrote into its new context is neither a Prompt nor steering.
    if (this.#opening.push(record) !== undefined) return;
    if (isSessionMeta(record)) this.#compaction = undefined;
    else if (isPayload(record, "compaction_begin")) this.#compaction = record.payload;
    else if (isPayload(record, "compaction_end")) this.#compacted(record.payload);
    else if (this.#compaction !== undefined) return;
    else if (isPayload(record, "request_begin")) this.#begin();
    else if (isPayload(record, "token_usage")) this.#usageRecorded = true;
    else if (isPayload(record, "request_end")) this.#end(record.payload);
    else if (isPayload(record, "approval_decision")) {
      const { tool_call_id, decision } = record.payload;
      this.#call(tool_call_id, { decided: true, allowed: decision === "allow" });
    } else if (isPayload(record, "abort")) this.#closed();
    else if (isCompleteModelMessage(record)) this.#message(record);
  }

  /** True while a Task, a Request, a call or a compaction has no end on record. */
  get isOpen(): boolean {
    return this.#hasTask || this.#compaction !== undefined || this.#abortOwed;
  }

  /** How the last Request, or the Task as a whole, ended. */
  get lastEnd(): { status: StopReason; error?: RequestError } {
    return this.#lastEnd;
  }

  /**
   * True where a history cannot end: inside a Request, a batch, a compaction or an interrupt, and while a context that a
   * compaction began has not all of its first records.
   */
  get isMidway(): boolean {
    const isBetween = this.#requestOpen || this.#owed().length > 0 || this.#compaction !== undefined;
    return isBetween || this.#abortOwed || this.#opening.isBeginning;
  }

  /**
   * True when nothing goes on but that somebody decides: a Request that has committed, no tool that runs, a call
   * undecided. The calls of a try that failed wait for nobody.
   */
  get awaitsDecisionOnly(): boolean {
    const owed = this.#owed();
    return this.#wasCommitted && owed.length > 0 && owed.every(([, call]) => !call.decided);
  }

  /** The calls that nobody has decided, in call order. */
  get undecided(): OmniMessage<ToolCallPayload>[] {
    return this.#owed().flatMap(([, call]) => (call.decided ? [] : [call.message]));
  }

  /**
   * The records that close everything: denials, outputs, the tail of an open Request, `abort`.
   * @param ending how the open Request and its calls ended, and the reason in the `abort` event (left out: no `abort`)
   */
  closing(at: string, usage: TokenCounts, ending: { status: StopReason; abortReason?: string }): OmniMessage[] {
    if (!this.isOpen) return [];
    const due: OmniMessage[] = [];
    const owed = this.#owed();
    // Usage and end are adjacent: where only the end is missing it comes first.
    if (this.#requestOpen && this.#usageRecorded) due.push(requestEnd(at, { status: ending.status }));
    for (const [tool_call_id, call] of owed) {
      if (!call.decided) {
        due.push(approvalDecision(at, { decision: "deny", tool_call_id, decided_by: "abort" }));
      }
    }
    for (const [tool_call_id, call] of owed) {
      due.push(toolCallOutput(at, { tool_call_id, ...outputOf(call, ending.status) }));
    }
    if (this.#requestOpen && !this.#usageRecorded) {
      due.push(tokenUsage(at, usage, emptyTokenCounts()), requestEnd(at, { status: ending.status }));
    }
    if (this.#compaction !== undefined) {
      const { reason, mode } = this.#compaction;
      due.push(compactionEnd(at, { reason, mode, status: "failed" }));
    }
    const { abortReason = null } = ending;
    const isAborted = this.#abortOwed || (ending.abortReason !== undefined && this.#hasTask);
    if (isAborted) due.push(abort(at, abortReason));
    return due;
  }

  /** A compaction that nobody asked for is part of a Task, be it the last of it. */
  get #hasTask(): boolean {
    const isOfTask = this.#compaction !== undefined && this.#compaction.reason !== "manual";
    return this.#taskOpen || this.#requestOpen || isOfTask || this.#owed().length > 0;
  }

  #owed(): [string, OwedCall][] {
    return [...this.#calls].filter(([, call]) => !call.answered && !(call.cutOff && this.#requestOpen));
  }

  #begin(): void {
    this.#abortOwed = false;
    this.#requestOpen = true;
    this.#wasCommitted = false;
    this.#usageRecorded = false;
    this.#taskOpen = true;
    this.#calls.clear();
  }

  #end({ status, retry_in_ms, error }: RequestEndPayload): void {
    this.#requestOpen = false;
    this.#wasCommitted = status === "completed";
    this.#abortOwed = status === "aborted";
    this.#lastEnd = error === undefined ? { status } : { status, error };
    if (status !== "completed") for (const [id, call] of this.#calls) if (call.cutOff) this.#calls.delete(id);
    // A committed Request with calls goes on when their outputs are in; a failed one when it announced a retry.
    this.#taskOpen = status === "completed" ? this.#calls.size > 0 : retry_in_ms !== undefined;
  }

  #compacted({ status, reason }: CompactionEndPayload): void {
    this.#compaction = undefined;
    this.#abortOwed = status === "aborted";
    // The Request that was too long is tried once more.
    if (status === "completed" && reason !== "manual" && this.#lastEnd.error?.kind === "context_overflow")
      this.#taskOpen = true;
  }

  #closed(): void {
    this.#abortOwed = false;
    this.#lastEnd = { status: "aborted" };
    this.#requestOpen = false;
    this.#taskOpen = false;
    this.#calls.clear();
  }

  #call(id: string, change: Partial<OwedCall>): void {
    const call = this.#calls.get(id);
    if (call !== undefined) this.#calls.set(id, { ...call, ...change });
  }

  #message(record: OmniMessage): void {
    if (isPayload(record, "tool_call")) {
      const { tool_call_id, stop_reason } = record.payload;
      const cutOff = stop_reason === "malformed";
      // A call cut by an interruption or a failure is neither decided nor answered.
      if (stop_reason === undefined || cutOff) {
        this.#calls.set(tool_call_id, { message: record, decided: cutOff, allowed: false, answered: false, cutOff });
      }
    } else if (isPayload(record, "tool_call_output")) {
      this.#call(record.payload.tool_call_id, { answered: true });
    } else if (isPayload(record, "text")) {
      // The Prompt opens a Task; the notice of max_turns, the only assistant text outside a Request, ends one.
      if (record.payload.role === "user") this.#taskOpen = true;
      else if (!this.#requestOpen) this.#taskOpen = false;
    } else if (isPayload(record, "image_url") || isPayload(record, "inline_data")) this.#taskOpen = true;
  }
}

/** What stands for the output that a call has not. */
function outputOf({ cutOff, allowed }: OwedCall, status: StopReason): { output: string; stop_reason: StopReason } {
  if (cutOff) return { output: CALL_CUT_OFF, stop_reason: "failed" };
  if (status === "aborted") return { output: INTERRUPTED, stop_reason: "aborted" };
  return { output: allowed ? OUTPUT_LOST : NOT_RUN, stop_reason: "failed" };
}
