// One Session in memory: its record, its Trace, its Channel, and the Task that runs. Everything that changes what a
// reader may rely on is announced in the tick in which it changes.

import type { Readable } from "node:stream";
import type { Sink, Snapshot, Subscription } from "../channel/subscription.js";
import { isPayload } from "../protocol/guards.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import { ok, type Result, refuse } from "../result.js";
import { readHistory } from "./history.js";
import type { Journal } from "./journal.js";
import type { ChannelPosition } from "./load.js";
import { PendingApprovals } from "./pending-approvals.js";
import type { AbortReason } from "./running-task.js";
import type { SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import { recordView } from "./session-view.js";
import { asksAbout, takeBack } from "./settings.js";
import { TaskLedger } from "./task-ledger.js";
import { TaskRunner } from "./task-runner.js";
import { endTag, taskStateEvent } from "./task-state.js";
import type {
  ApprovalView,
  Assigned,
  ClientDecision,
  HistoryPage,
  HistoryQuery,
  HostedSession,
  Input,
  PatchSession,
  QueueItem,
  SessionRefusal,
  SessionView,
  SubmitOptions,
  TaskView,
} from "./types.js";

export class Session implements HostedSession {
  readonly id: string;
  readonly #deps: SessionDeps;
  readonly #journal: Journal;
  readonly #ledger: TaskLedger;
  readonly #runner: TaskRunner;
  readonly #approvals: PendingApprovals;
  #record: SessionRecord;
  #removed = false;

  constructor(record: SessionRecord, deps: SessionDeps) {
    this.id = record.sessionId;
    this.#record = record;
    this.#deps = deps;
    this.#journal = deps.journal;
    this.#ledger = new TaskLedger(record);
    this.#approvals = new PendingApprovals({
      sessionId: record.sessionId,
      clock: deps.clock,
      timeoutMs: deps.approvalTimeoutMs,
      asks: (toolName) => asksAbout(toolName, this.#record.approvalMode, deps.environment),
      isDecided: (toolCallId) => deps.journal.decidedCalls.has(toolCallId),
      asked: () => this.#ledger.running?.asked,
      recordAsked: async (asked) => {
        this.#ledger.asked(asked);
        await this.#save().catch(deps.onFault);
      },
      onOpen: (view) => {
        this.#announceState();
        deps.channel.announce(toLine({ type: "approval_request", ...view }));
        this.#runner.noteProgress();
      },
    });
    this.#runner = new TaskRunner({
      session: deps,
      ledger: this.#ledger,
      approvals: this.#approvals,
      record: () => this.#record,
      save: () => this.#save(),
      touch: () => this.#touch(),
      isRemoved: () => this.#removed,
      announce: (endedTaskId) => this.#announceState(endedTaskId),
    });
  }

  /** After a restart, before anyone sees the Session. Never rejects. */
  recover(): Promise<void> {
    return this.#runner.recover();
  }

  /** True while nothing keeps the Session in memory. */
  get isIdle(): boolean {
    return this.#runner.isIdle && this.#deps.channel.subscribers === 0;
  }

  get record(): SessionRecord {
    return this.#record;
  }

  view(): SessionView {
    return {
      ...recordView(this.#record),
      state: this.#runner.state,
      pendingApprovals: this.#approvals.views.length,
      queued: this.#ledger.queued,
      usage: this.#usage(),
    };
  }

  async patch(change: PatchSession): Promise<Result<SessionView, SessionRefusal>> {
    // In the record before it is written: whatever is written next, by whomever, holds this change too.
    const before = this.#record;
    this.#record = { ...before, ...change };
    try {
      await this.#save();
    } catch (error) {
      this.#record = takeBack(this.#record, change, before);
      return refuse("storage_failed", `the Session's record could not be written: ${reasonOf(error)}`);
    }
    if (change.approvalMode !== undefined) this.#approvals.modeChanged();
    const view = this.view();
    this.#deps.channel.announce(toLine({ type: "session_updated", session: view }));
    this.#deps.onUpdated(this.#record, view);
    return ok(view);
  }

  submit(input: Input, options: SubmitOptions): Promise<Result<Assigned, SessionRefusal>> {
    return this.#runner.submit(input, options);
  }

  steer(input: Input): Promise<Result<{ steerId: string }, SessionRefusal>> {
    return this.#runner.steer(input);
  }

  compact(): Promise<Result<void, SessionRefusal>> {
    return this.#runner.compact();
  }

  task(taskId: string): TaskView | undefined {
    return this.#ledger.view(taskId);
  }

  holds(itemId: string): boolean {
    return this.#ledger.holds(itemId) || this.#journal.steering.has(itemId);
  }

  queue(): QueueItem[] {
    return this.#ledger.items;
  }

  recall(itemId: string): Promise<Result<QueueItem, SessionRefusal>> {
    return this.#runner.intake.recall(itemId);
  }

  retryNow(): boolean {
    return this.#runner.wait.skip();
  }

  approvals(): ApprovalView[] {
    return this.#approvals.views;
  }

  decide(toolCallId: string, decision: ClientDecision): Promise<Result<void, SessionRefusal>> {
    return this.#approvals.decide(toolCallId, decision);
  }

  abort({ clearQueue = false }: { clearQueue?: boolean } = {}): Promise<Result<boolean, SessionRefusal>> {
    return this.#runner.abort(clearQueue);
  }

  /** Interrupts the running Task. @returns false when there is none. The first reason stands. */
  stop(reason: AbortReason): boolean {
    return this.#runner.stop(reason);
  }

  /** Resolves when the running Task, if any, has ended. */
  settled(): Promise<void> {
    return this.#runner.settled();
  }

  /** True while the Task waits for a person and for nothing else is being done. */
  get waitsForPerson(): boolean {
    return this.#approvals.views.length > 0 && this.#journal.unfinished.awaitsDecisionOnly;
  }

  /** Deleted: refuses everything from now on, and interrupts. */
  remove(): void {
    this.#removed = true;
    this.#runner.close();
    this.stop("session_deleted");
  }

  /** Ends every stream once it has all there is, `final` (the JSON of a server event) last. */
  endStreams(final?: string): void {
    this.#deps.channel.end(final);
  }

  /** Leaves memory. Only for an idle Session. @returns where its Channel stands, for when it comes back. */
  unload(): ChannelPosition {
    this.#removed = true;
    this.#runner.close();
    void this.#deps.trace.close().catch(this.#deps.onFault);
    const [epoch, lastSeq] = this.#deps.channel.headId.split("-").map(Number) as [number, number];
    return { epoch, lastSeq };
  }

  history(query: HistoryQuery): Promise<Result<HistoryPage, SessionRefusal>> {
    return readHistory(this.#journal, this.#deps.channel, this.#deps.trace, query);
  }

  openTrace(): Readable {
    return this.#deps.trace.openTrace();
  }

  follow(sink: Sink, options: { lastEventId?: string; untilTask?: string }): Subscription {
    const { lastEventId, untilTask } = options;
    return this.#deps.channel.subscribe(sink, {
      ...(lastEventId === undefined ? {} : { lastEventId }),
      snapshot: () => this.#snapshot(untilTask),
      ...(untilTask === undefined ? {} : { endsAt: (tag: string) => tag === endTag(untilTask) }),
    });
  }

  /** What the journal showed: the approval that a decision settles is closed in the same tick. */
  readonly onShown = (message: OmniMessage): void => {
    this.#runner.noteProgress();
    if (message.origin !== undefined || !isPayload(message, "approval_decision")) return;
    if (this.#approvals.settled(message.payload.tool_call_id)) this.#announceState();
  };

  /** Records were written that the stream does not carry. */
  readonly onUnshown = (): void => this.#announceState();

  /** Writes the record as it is now. A deleted Session has none. */
  async #save(): Promise<void> {
    if (this.#removed) return;
    this.#record = { ...this.#record, ...this.#ledger.fields };
    await this.#deps.saveRecord(this.#record);
  }

  #usage(): SessionView["usage"] {
    const { usage } = this.#journal;
    const costUsd = this.#deps.costOf(usage);
    return costUsd === undefined ? usage : { ...usage, costUsd };
  }

  #touch(): void {
    this.#record = { ...this.#record, lastActiveAt: this.#deps.clock.iso(), usage: this.#usage() };
  }

  #taskState(endedTaskId?: string): string {
    return taskStateEvent({
      state: this.#runner.state,
      taskId: this.#runner.taskId,
      queued: this.#ledger.queued,
      pendingApprovals: this.#approvals.views.length,
      records: this.#journal.records,
      retry: this.#runner.wait.view,
      ended: endedTaskId === undefined ? undefined : this.#ledger.view(endedTaskId),
    });
  }

  #announceState(endedTaskId?: string): void {
    this.#deps.channel.announce(
      this.#taskState(endedTaskId),
      endedTaskId === undefined ? undefined : endTag(endedTaskId),
    );
    this.#deps.onUpdated(this.#record, this.view());
  }

  #snapshot(untilTask: string | undefined): Snapshot {
    const over = untilTask !== undefined && this.#ledger.view(untilTask)?.state === "ended";
    if (over) return { events: [this.#taskState(untilTask)], over };
    const requests = this.#approvals.views.map((view) => toLine({ type: "approval_request", ...view }));
    return { events: [this.#taskState(), ...requests] };
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
