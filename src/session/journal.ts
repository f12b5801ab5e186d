// The commit point of a Session: what is said here is recorded first and shown then, in one order. Everything that can
// be known about a Session from its records (context, usage, what is unfinished) is folded here, by the same code live
// and after a restart.

import type { Channel } from "../channel/channel.js";
import { Context } from "../engine/context.js";
import { INTERRUPTED, OUTPUT_LOST } from "../engine/engine-notes.js";
import type { Commit } from "../engine/merge-queue.js";
import { Unfinished } from "../engine/unfinished.js";
import { PartialAggregator } from "../protocol/aggregate.js";
import { emptyTokenCounts, sessionMeta } from "../protocol/builders.js";
import { isPartial, isPayload, isSessionMeta } from "../protocol/guards.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import type {
  RequestEndPayload,
  SessionMetaPayload,
  StopReason,
  TokenCounts,
  ToolDefinition,
} from "../protocol/payloads.js";

/** The Trace as the journal uses it. Both reject when the records could not be written; then none of them was. */
export interface RecordSink {
  append(lines: readonly string[]): Promise<void>;
  /** Begins a new file with these records, the first of them a `session_meta`. */
  rotate(firstLines: readonly string[]): Promise<void>;
}

export interface JournalDeps {
  trace: RecordSink;
  channel: Channel;
  now: () => string;
  /** The Session's, for the `session_meta` of a context that begins. */
  thinkingLevel: () => string;
  /** What a context that begins is offered. */
  tools: () => readonly ToolDefinition[];
  /** Called when a new context's first records went to the Trace together with what was shown just now. */
  onUnshown(): void;
  /** Where the Task begins that an earlier process left running. */
  turnsFrom?: number;
  /** Number of records behind which nothing is owed, whatever the fold says: what a fork was given. */
  restsAt?: number;
  /** Called for each message in the tick in which it is shown. */
  onShown(message: OmniMessage): void;
}

export class Journal {
  readonly #deps: JournalDeps;
  readonly context = new Context();
  readonly unfinished = new Unfinished();
  readonly fragments = new PartialAggregator();
  /** Every `tool_call_id` of the Session, and those that were decided. */
  readonly callIds = new Set<string>();
  readonly decidedCalls = new Set<string>();
  /** The steering that the model was given: how many records each has. */
  readonly steering = new Map<string, number>();
  /** Requests committed since the ordinal `turnsFrom`. */
  turns = 0;
  /** Number of the Trace's records at this place. */
  records = 0;
  /** Ordinal of the record with which the current context begins. */
  contextStart = 0;
  usage: TokenCounts = emptyTokenCounts();
  meta: SessionMetaPayload | undefined;
  #rotation: Promise<void> | undefined;
  #ending: { status: StopReason; abortReason?: string } | undefined;
  /** Chosen when the first Request of a context is made, and recorded with it. */
  #nextTools: readonly ToolDefinition[] | undefined;

  constructor(deps: JournalDeps) {
    this.#deps = deps;
  }

  /** The tools of the context that the next record belongs to: fixed for as long as it lasts. */
  get tools(): readonly ToolDefinition[] {
    if (this.meta !== undefined && this.context.nextContext() === undefined) return this.meta.tools;
    this.#nextTools ??= this.#deps.tools();
    return this.#nextTools;
  }

  /** Records and shows messages of the stream. Fragments pass at once, unless a record goes before them. */
  readonly commit: Commit = (batch) => {
    const lines: string[] = [];
    const records: string[] = [];
    for (const message of batch) {
      const line = toLine(message);
      lines.push(line);
      if (isRecord(message)) records.push(line);
    }
    if (records.length === 0) {
      this.#show(batch, lines);
      return undefined;
    }
    return this.#write(records).then((hasOpened) => {
      this.#show(batch, lines);
      if (hasOpened) this.#deps.onUnshown();
    });
  };

  /** Records messages that are not shown on the stream: the Prompt, steering. The caller announces the new count. */
  async record(messages: readonly OmniMessage[]): Promise<void> {
    await this.#write(messages.map(toLine));
    for (const message of messages) this.replay(message);
  }

  /** Takes in a record that is in the Trace already. */
  replay(record: OmniMessage): void {
    this.context.push(record);
    this.unfinished.push(record);
    if (isPayload(record, "tool_call")) this.callIds.add(record.payload.tool_call_id);
    else if (isPayload(record, "approval_decision")) this.decidedCalls.add(record.payload.tool_call_id);
    else if (isPayload(record, "token_usage")) this.usage = record.payload.session;
    else if (isPayload(record, "request_end")) this.#countTurn(record.payload);
    else if ("steer_id" in record.payload) this.#countSteering(String(record.payload.steer_id));
    else if (isSessionMeta(record)) {
      this.meta = record.payload;
      this.#nextTools = undefined;
      this.contextStart = this.records;
    } else if (isPayload(record, "compaction_end") && record.payload.status === "completed") {
      // What it closed is not the current context's; the context that it made begins with the next record.
      this.contextStart = this.records + 1;
    }
    this.records += 1;
  }

  /** Counts a record that is in the Trace and says nothing that can be used. */
  passOver(): void {
    this.records += 1;
  }

  /**
   * Closes whatever a crash, a failed disk or a bug left unfinished, on the stream and in the Trace.
   * @returns false when nothing was open.
   */
  async closeUnfinished(status: StopReason, abortReason?: string): Promise<boolean> {
    if (this.fragments.isEmpty && !this.unfinished.isOpen) return false;
    if (this.records === this.#deps.restsAt) return false;
    // Where a disk refused it the first time, it is still that end which is owed.
    this.#ending ??= abortReason === undefined ? { status } : { status, abortReason };
    const note = this.#ending.status === "aborted" ? INTERRUPTED : OUTPUT_LOST;
    const closers = this.fragments.closers(this.#deps.now(), this.#ending.status, "all", note);
    if (closers.length > 0) await this.commit(closers);
    const records = this.unfinished.closing(this.#deps.now(), this.usage, this.#ending);
    if (records.length > 0) await this.commit(records);
    this.#ending = undefined;
    return true;
  }

  #countSteering(steerId: string): void {
    this.steering.set(steerId, (this.steering.get(steerId) ?? 0) + 1);
  }

  #countTurn({ status }: RequestEndPayload): void {
    if (status === "completed" && this.records >= (this.#deps.turnsFrom ?? 0)) this.turns += 1;
  }

  /** One write. The first one behind a completed compaction begins the file of its context. @returns whether it did. */
  async #write(lines: readonly string[]): Promise<boolean> {
    if (this.#rotation !== undefined) await this.#rotation.catch(() => {}); // Whoever began it has the failure.
    const opening = this.#opening();
    if (opening.length === 0) {
      await this.#deps.trace.append(lines);
      return false;
    }
    this.#rotation = this.#deps.trace.rotate([...opening.map(toLine), ...lines]);
    try {
      await this.#rotation;
    } finally {
      this.#rotation = undefined;
    }
    for (const record of opening) this.replay(record);
    return true;
  }

  #opening(): OmniMessage[] {
    const context = this.context.nextContext();
    if (context === undefined || this.meta === undefined) return [];
    const { now, thinkingLevel } = this.#deps;
    const meta = { ...this.meta, tools: [...this.tools], thinking_level: thinkingLevel() };
    return [sessionMeta(now(), meta), ...context];
  }

  #show(batch: readonly OmniMessage[], lines: readonly string[]): void {
    for (const [index, message] of batch.entries()) {
      if (isRecord(message)) this.replay(message);
      else this.fragments.push(message);
      this.#deps.channel.publish(lines[index] as string);
      this.#deps.onShown(message);
    }
  }
}

const isRecord = (message: OmniMessage): boolean => message.origin === undefined && !isPartial(message);
