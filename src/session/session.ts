// One Session in memory: its record, its Trace, its Channel, and the Task that runs. Everything that changes what a
// reader may rely on is announced in the tick in which it changes.

import type { Readable } from "node:stream";
import type { Sink } from "../channel/subscription.js";
import { sessionMeta } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import { reasonOf } from "../reason-of.js";
import { ok, type Result, refuse } from "../result.js";
import type { RunSubagent } from "../tools/run-subagent.js";
import type { ChildSession, ParentLink } from "./children.js";
import { readHistory } from "./history.js";
import type { Journal } from "./journal.js";
import type { ChannelPosition } from "./load.js";
import { assembleParts, type Parts } from "./parts.js";
import type { AbortReason } from "./running-task.js";
import type { SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import { recordView } from "./session-view.js";
import { mayChange, PendingChanges } from "./settings.js";
import type {
  ApprovalMode,
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
  SessionState,
  SessionView,
  SubmitOptions,
  TaskView,
  Usage,
} from "./types.js";
import { addUsage } from "./usage.js";

export class Session implements HostedSession, ChildSession {
  readonly id: string;
  readonly #deps: SessionDeps;
  readonly #journal: Journal;
  readonly #parts: Parts;
  /** What counts; changes that are not written yet are in none of it. */
  #record: SessionRecord;
  readonly #changes = new PendingChanges();
  #removed = false;
  /** Writes of the record that are under way. */
  readonly #saves = new Set<Promise<void>>();

  constructor(record: SessionRecord, deps: SessionDeps) {
    this.id = record.sessionId;
    this.#record = record;
    this.#deps = deps;
    this.#journal = deps.journal;
    this.#parts = assembleParts(deps, {
      record: () => this.#record,
      mode: () => this.#changes.mode(this.#record.approvalMode),
      save: () => this.#save(),
      isRemoved: () => this.#removed,
      touch: () => {
        this.#record = { ...this.#record, lastActiveAt: deps.clock.iso(), usage: this.ownUsage };
      },
      onChange: () => deps.onUpdated(this.record, this.view()),
      onChildEnded: () => void this.keepChildUsage().catch(deps.onFault),
    });
  }

  /** After a restart, before anyone sees the Session. Never rejects. */
  recover(): Promise<void> {
    return this.#parts.runner.recover();
  }

  get childrenAtWork(): number {
    return this.#parts.children.atWork;
  }

  /** True while nothing keeps the Session in memory. */
  get isIdle(): boolean {
    const isRead = this.#deps.channel.subscribers > 0;
    const isWritten = this.#saves.size === 0 && this.#changes.isEmpty;
    return this.#parts.runner.isIdle && this.childrenAtWork === 0 && !isRead && isWritten;
  }

  get state(): SessionState {
    return this.#parts.runner.state;
  }

  /** What counts now: with what the ledger says, whoever has written it last. */
  get record(): SessionRecord {
    return { ...this.#record, ...this.#parts.ledger.fields };
  }

  view(): SessionView {
    return {
      ...recordView(this.#record),
      approvalMode: this.#parts.readers.inheritedMode ?? this.#record.approvalMode,
      state: this.state,
      pendingApprovals: this.#parts.openApprovals().length,
      queued: this.#parts.ledger.queued,
      usage: addUsage([this.ownUsage, ...Object.values(this.#childUsage)]),
    };
  }

  async patch(change: PatchSession): Promise<Result<SessionView, SessionRefusal>> {
    const permitted = mayChange(change, this.#parts.readers.inheritedMode);
    return permitted.ok ? this.#change(change) : permitted;
  }

  async #change(change: PatchSession): Promise<Result<SessionView, SessionRefusal>> {
    this.#changes.add(change);
    try {
      await this.#save();
    } catch (error) {
      this.#changes.delete(change);
      // Another write, that was under way with it, may have put it on the disk.
      void this.#save().catch(() => {});
      return refuse("storage_failed", `the Session's record could not be written: ${reasonOf(error)}`);
    }
    this.#changes.delete(change);
    this.#record = { ...this.#record, ...change };
    if (change.approvalMode !== undefined) {
      this.#parts.approvals.modeChanged();
      this.#parts.children.modeChanged(change.approvalMode);
    }
    const view = this.view();
    this.#deps.channel.announce(toLine({ type: "session_updated", session: view }));
    this.#deps.onUpdated(this.record, view);
    return ok(view);
  }

  submit(input: Input, options: SubmitOptions): Promise<Result<Assigned, SessionRefusal>> {
    return this.#parts.runner.submit(input, options);
  }

  steer(input: Input): Promise<Result<{ steerId: string }, SessionRefusal>> {
    return this.#parts.runner.steer(input);
  }

  compact(): Promise<Result<void, SessionRefusal>> {
    return this.#parts.runner.compact();
  }

  task(taskId: string): TaskView | undefined {
    return this.#parts.ledger.view(taskId);
  }

  holds(itemId: string): boolean {
    return this.#parts.ledger.holds(itemId) || this.#journal.steering.has(itemId);
  }

  queue(): QueueItem[] {
    return this.#parts.ledger.items;
  }

  recall(itemId: string): Promise<Result<QueueItem, SessionRefusal>> {
    return this.#parts.runner.intake.recall(itemId);
  }

  retryNow(): boolean {
    return this.#parts.runner.wait.skip();
  }

  approvals(): ApprovalView[] {
    return this.#parts.openApprovals();
  }

  decide(toolCallId: string, decision: ClientDecision): Promise<Result<void, SessionRefusal>> {
    return this.#parts.approvals.decide(toolCallId, decision);
  }

  abort({ clearQueue = false }: { clearQueue?: boolean } = {}): Promise<Result<boolean, SessionRefusal>> {
    return this.#parts.runner.abort(clearQueue);
  }

  /** Interrupts the running Task. @returns false when there is none. The first reason stands. */
  stop(reason: AbortReason | null): boolean {
    return this.#parts.runner.stop(reason);
  }

  /** Resolves when the running Task, if any, has ended, and the record is written. */
  async settled(): Promise<void> {
    await this.#parts.runner.settled();
    await Promise.allSettled(this.#saves);
  }

  /** True while the Task waits for a person and nothing else is being done. A child ends with its parent. */
  get waitsForPerson(): boolean {
    return (
      this.#record.parentSessionId === undefined &&
      this.#parts.approvals.views.length > 0 &&
      this.#journal.unfinished.awaitsDecisionOnly
    );
  }

  get firstRecord(): OmniMessage {
    const { meta } = this.#journal;
    if (meta === undefined) throw new Error("a Session has a session_meta");
    return sessionMeta(this.#record.createdAt, meta);
  }

  get recordCount(): number {
    return this.#journal.records;
  }

  async runFor(parent: ParentLink, prompt: string): Promise<Result<void, SessionRefusal>> {
    const onAssigned = ({ taskId }: Assigned) => this.#parts.readers.followedBy(parent, taskId);
    const begun = await this.#parts.runner.submit(prompt, { sharesPlace: true, onAssigned });
    return begun.ok ? ok(undefined) : begun;
  }

  modeInherited(approvalMode: ApprovalMode): void {
    this.#parts.approvals.modeChanged();
    // What is shown and kept follows; what holds does not depend on it.
    void this.#change({ approvalMode });
  }

  /** Does what `run_subagent` does for the Session's model. */
  readonly runSubagent: RunSubagent = (task, context) => this.#parts.children.run(task, context);

  /** Deleted: refuses everything from now on, and interrupts. */
  remove(): void {
    this.#removed = true;
    this.#parts.runner.close();
    this.stop("session_deleted");
  }

  /** Ends every stream once it has all there is, `final` (the JSON of a server event) last. */
  endStreams(final?: string): void {
    this.#deps.channel.end(final);
  }

  /** Leaves memory. Only for an idle Session. @returns where its Channel stands, for when it comes back. */
  unload(): ChannelPosition {
    this.#removed = true;
    this.#parts.runner.close();
    void this.#deps.trace.close().catch(this.#deps.onFault);
    this.#deps.channel.dispose();
    const [epoch, lastSeq] = this.#deps.channel.headId.split("-").map(Number) as [number, number];
    const { carried } = this.#parts.children;
    return { epoch, lastSeq, ...(carried === undefined ? {} : { carried }) };
  }

  history(query: HistoryQuery, gone?: AbortSignal): HistoryPage {
    return readHistory({ ...this.#deps, children: this.#parts.children.carried }, query, gone);
  }

  openTrace(): Readable {
    return this.#deps.trace.openTrace();
  }

  follow(sink: Sink, options: { lastEventId?: string; untilTask?: string }): void {
    this.#parts.readers.follow(sink, options);
  }

  /** What the journal showed: the approval that a decision settles is closed in the same tick. */
  readonly onShown = (message: OmniMessage): void => {
    this.#parts.runner.noteProgress();
    this.#parts.readers.shown(message);
    if (message.origin !== undefined || !isPayload(message, "approval_decision")) return;
    if (this.#parts.approvals.settled(message.payload.tool_call_id)) this.#parts.readers.state();
  };

  /** Records were written that the stream does not carry. */
  readonly onUnshown = (): void => this.#parts.readers.state();

  /** Cumulative, without the children's. */
  get ownUsage(): Usage {
    const { usage } = this.#journal;
    const costUsd = this.#deps.costOf(usage);
    return costUsd === undefined ? usage : { ...usage, costUsd };
  }

  /** Keeps on record what the children have used. */
  async keepChildUsage(): Promise<void> {
    this.#record = { ...this.#record, childUsage: this.#childUsage };
    await this.#save();
  }

  get #childUsage(): Record<string, Usage> {
    return { ...this.#record.childUsage, ...this.#deps.children.usage() };
  }

  /** Writes the record as it is now. A deleted Session has none. */
  async #save(): Promise<void> {
    if (this.#removed) return;
    this.#record = this.record;
    const write = this.#deps.saveRecord(this.#changes.applied(this.#record));
    this.#saves.add(write);
    try {
      await write;
    } finally {
      this.#saves.delete(write);
    }
  }
}
