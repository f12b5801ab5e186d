// One Session in memory: its record, its Trace, its Channel, and the Task that runs. Everything that changes what a
// reader may rely on is announced in the tick in which it changes.

import type { Readable } from "node:stream";
import type { Sink, Snapshot, Subscription } from "../channel/subscription.js";
import type { LLMClient, ThinkingLevel } from "../engine/ports.js";
import type { TaskDeps, TaskOutcome } from "../engine/run.js";
import { isPayload } from "../protocol/guards.js";
import { type OmniMessage, toLine } from "../protocol/message.js";
import { ok, type Result, refuse } from "../result.js";
import { readHistory } from "./history.js";
import type { Journal } from "./journal.js";
import type { ChannelPosition } from "./load.js";
import { PendingApprovals } from "./pending-approvals.js";
import { type ReadyModel, recordPrompt } from "./record-prompt.js";
import { type AbortReason, RunningTask } from "./running-task.js";
import type { SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import { recordView } from "./session-view.js";
import { asksAbout, takeBack } from "./settings.js";
import { TaskLog } from "./task-log.js";
import { endTag, type RetryView, taskStateEvent } from "./task-state.js";
import type {
  ApprovalView,
  ClientDecision,
  HistoryPage,
  HistoryQuery,
  HostedSession,
  Input,
  PatchSession,
  SessionRefusal,
  SessionView,
  SubmitOptions,
  TaskView,
} from "./types.js";

export class Session implements HostedSession {
  readonly id: string;
  readonly #deps: SessionDeps;
  readonly #journal: Journal;
  readonly #tasks = new TaskLog();
  readonly #approvals: PendingApprovals;
  #record: SessionRecord;
  #task: RunningTask | undefined;
  #retry: RetryView | undefined;
  #removed = false;

  constructor(record: SessionRecord, deps: SessionDeps) {
    this.id = record.sessionId;
    this.#record = record;
    this.#deps = deps;
    this.#journal = deps.journal;
    this.#approvals = new PendingApprovals({
      sessionId: record.sessionId,
      clock: deps.clock,
      timeoutMs: deps.approvalTimeoutMs,
      asks: (toolName) => asksAbout(toolName, this.#record.approvalMode, deps.environment),
      isDecided: (toolCallId) => deps.journal.decidedCalls.has(toolCallId),
      onOpen: (view) => {
        this.#announceState();
        deps.channel.announce(toLine({ type: "approval_request", ...view }));
      },
    });
  }

  /** True while nothing keeps the Session in memory. */
  get isIdle(): boolean {
    return this.#task === undefined && this.#deps.channel.subscribers === 0;
  }

  get record(): SessionRecord {
    return this.#record;
  }

  view(): SessionView {
    return {
      ...recordView(this.#record),
      state: this.#task?.started === true ? "running" : "idle",
      pendingApprovals: this.#approvals.views.length,
      usage: this.#usage(),
    };
  }

  async patch(change: PatchSession): Promise<Result<SessionView, SessionRefusal>> {
    // In the record before it is written: whatever is written next, by whomever, holds this change too.
    const before = this.#record;
    this.#record = { ...before, ...change };
    try {
      await this.#deps.saveRecord(this.#record);
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

  async submit(
    input: Input,
    options: SubmitOptions,
  ): Promise<Result<{ taskId: string; queued: number }, SessionRefusal>> {
    if (this.#removed) return refuse("session_not_found", "the Session was deleted");
    if (options.whenBusy !== undefined && options.whenBusy !== "reject") {
      return refuse("unsupported", `whenBusy "${options.whenBusy}" is not supported yet`);
    }
    if (this.#task !== undefined) return refuse("task_in_progress", `Task ${this.#task.taskId} is running`);
    const claim = this.#deps.claimTask();
    if (!claim.ok) return claim;
    // From here to the end of the Task the Session is taken: a second prompt, whatever it awaits, finds it so.
    const task = new RunningTask(`task-${this.#deps.newId()}`);
    this.#task = task;
    const release = () => {
      this.#task = undefined;
      claim.value();
    };
    const prepared = await recordPrompt(input, this.#record.workspace, this.#deps);
    if (!prepared.ok) {
      release();
      return prepared;
    }
    this.#begin(task, prepared.value, options, release);
    return ok({ taskId: task.taskId, queued: 0 });
  }

  task(taskId: string): TaskView | undefined {
    return this.#tasks.get(taskId);
  }

  approvals(): ApprovalView[] {
    return this.#approvals.views;
  }

  decide(toolCallId: string, decision: ClientDecision): Promise<Result<void, SessionRefusal>> {
    return this.#approvals.decide(toolCallId, decision);
  }

  abort(_options: { clearQueue?: boolean } = {}): boolean {
    return this.stop("user");
  }

  /** Interrupts the running Task. @returns false when there is none. The first reason stands. */
  stop(reason: AbortReason): boolean {
    this.#task?.stop(reason);
    return this.#task !== undefined;
  }

  /** Resolves when the running Task, if any, has ended. */
  async settled(): Promise<void> {
    await this.#task?.ended;
  }

  /** True while the Task waits for a person and for nothing else is being done. */
  get waitsForPerson(): boolean {
    return this.#approvals.views.length > 0 && this.#journal.unfinished.awaitsDecisionOnly;
  }

  /** Deleted: refuses everything from now on, and interrupts. */
  remove(): void {
    this.#removed = true;
    this.stop("session_deleted");
  }

  /** Ends every stream once it has all there is, `final` (the JSON of a server event) last. */
  endStreams(final?: string): void {
    this.#deps.channel.end(final);
  }

  /** Leaves memory. Only for an idle Session. @returns where its Channel stands, for when it comes back. */
  unload(): ChannelPosition {
    this.#removed = true;
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
    if (message.origin !== undefined || !isPayload(message, "approval_decision")) return;
    if (this.#approvals.settled(message.payload.tool_call_id)) this.#announceState();
  };

  /** One tick: the Prompt is recorded, the Task is shown, whoever asked may open a stream before its first message. */
  #begin(task: RunningTask, ready: ReadyModel, options: SubmitOptions, release: () => void): void {
    task.started = true;
    this.#tasks.started(task.taskId, this.#deps.clock.iso());
    this.#touch();
    this.#announceState();
    task.ended = this.#run(task, ready.llm, options.thinkingLevel).then((outcome) => {
      this.#finish(task, outcome, release);
    });
    options.onAssigned?.({ taskId: task.taskId, queued: 0 });
  }

  async #run(task: RunningTask, llm: LLMClient, thinkingLevel: ThinkingLevel | undefined): Promise<TaskOutcome> {
    // Whoever opens a stream in `onAssigned` does so before the first message.
    await Promise.resolve();
    const { channel, defaultMaxTurns } = this.#deps;
    const outcome = await task.run({
      ...this.#deps,
      sessionId: this.id,
      llm,
      approver: this.#approvals.approver,
      thinkingLevel: thinkingLevel ?? this.#record.thinkingLevel,
      maxTurns: this.#record.maxTurns ?? defaultMaxTurns,
      waitToRetry: this.#waitToRetry,
      onProgress: (progress) => channel.announce(toLine({ type: "tool_progress", ...progress })),
    });
    try {
      // Nothing is open after a Task that ended as it should. A fault may have left something.
      await this.#journal.closeUnfinished("failed");
    } catch {
      // The disk refuses, which the outcome says already: it is closed before the next Prompt.
    }
    return outcome;
  }

  readonly #waitToRetry: TaskDeps["waitToRetry"] = async ({ attempt, at, status }, signal) => {
    const { clock } = this.#deps;
    this.#retry = { attempt, retryAt: new Date(at).toISOString(), status };
    this.#announceState();
    await clock.sleep(Math.max(0, at - clock.now()), signal);
    this.#retry = undefined;
    this.#announceState();
  };

  #finish(task: RunningTask, outcome: TaskOutcome, release: () => void): void {
    this.#approvals.clear();
    this.#tasks.ended(task.taskId, this.#deps.clock.iso(), outcome.status, outcome.error);
    release();
    this.#touch();
    this.#announceState(task.taskId);
    if (!this.#removed) void this.#deps.saveRecord(this.#record).catch(this.#deps.onFault);
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
    const running = this.#task?.started === true ? this.#task.taskId : undefined;
    return taskStateEvent({
      state: running === undefined ? "idle" : "running",
      taskId: running,
      pendingApprovals: this.#approvals.views.length,
      records: this.#journal.records,
      retry: this.#retry,
      ended: endedTaskId === undefined ? undefined : this.#tasks.get(endedTaskId),
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
    const over = untilTask !== undefined && this.#tasks.get(untilTask)?.state === "ended";
    if (over) return { events: [this.#taskState(untilTask)], over };
    const requests = this.#approvals.views.map((view) => toLine({ type: "approval_request", ...view }));
    return { events: [this.#taskState(), ...requests] };
  }
}

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
