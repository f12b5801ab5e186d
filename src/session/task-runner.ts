// What runs in a Session, one Task at a time, and what waits for it. The ledger says what was promised; here it comes
// about: a Task takes the Session in one tick, steering reaches it at its next Request, what waits starts when it ends.
//
// "On record" means: in the Trace (a Prompt, delivered steering) or in the Session record (all else). A Task goes from
// the queue into the Trace in two writes; the ordinal written first tells a restart whether the second was done.

import type { ThinkingLevel } from "../engine/ports.js";
import type { Resumption, TaskDeps, TaskOutcome } from "../engine/run.js";
import { reasonOf } from "../reason-of.js";
import { ok, type Result, refuse } from "../result.js";
import { checkCompaction, compactAlone } from "./compacting.js";
import { checkPrompt, clientForAccepted } from "./prepare-prompt.js";
import { Recalled, recordStart } from "./record-start.js";
import { settleLeftover } from "./recover.js";
import { RetryWait } from "./retry-wait.js";
import { type AbortReason, RunningTask } from "./running-task.js";
import { taskDeps } from "./task-deps.js";
import { TaskIntake } from "./task-intake.js";
import type { Running, TaskLedger, Waiting } from "./task-ledger.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";
import type { Assigned, Input, SessionRefusal, SessionState, SubmitOptions } from "./types.js";

/** After this long a Task that waits is tried again whose Prompt could not be recorded. */
const STORAGE_RETRY_MS = 5_000;

type Refused = Extract<Result<never, SessionRefusal>, { ok: false }>;

export class TaskRunner {
  readonly #deps: TaskRunnerDeps;
  readonly #ledger: TaskLedger;
  /** The wait for a further try of a Request. */
  readonly wait: RetryWait;
  /** What a client gives while the Session is busy. */
  readonly intake: TaskIntake;
  #task: RunningTask | undefined;
  #closed = false;
  #cancelPump: () => void = () => {};
  #onProgress: () => void = () => {};

  constructor(deps: TaskRunnerDeps) {
    this.#deps = deps;
    this.#ledger = deps.ledger;
    this.wait = new RetryWait(deps.session.clock, () => deps.announce());
    this.intake = new TaskIntake(deps, this.#whenFree);
  }

  get state(): SessionState {
    if (this.#task?.isCompacting === true) return "compacting";
    return this.#task?.started === true ? "running" : "idle";
  }

  /** The Task that readers see running. */
  get taskId(): string | undefined {
    return this.#task?.started === true ? this.#task.taskId : undefined;
  }

  /** True while nothing runs, starts or waits. */
  get isIdle(): boolean {
    return this.#task === undefined && this.#ledger.queued === 0;
  }

  async submit(input: Input, options: SubmitOptions): Promise<Result<Assigned, SessionRefusal>> {
    if (this.#closed) return refuse("session_not_found", "the Session was deleted");
    const busy = this.#task;
    if (busy === undefined) return this.#start(input, options);
    switch (options.whenBusy) {
      case "steer": {
        if (!busy.takesSteering) return this.intake.enqueue(input, options, "last");
        const steered = await this.intake.steer(busy, input, options);
        return steered.ok ? ok({ taskId: busy.taskId, steerId: steered.value.steerId, queued: 0 }) : steered;
      }
      case "queue":
        return this.intake.enqueue(input, options, "last");
      case "interrupt": {
        const queued = await this.intake.enqueue(input, options, "first");
        if (queued.ok && this.#task === busy) this.stop("user");
        return queued;
      }
      default:
        return refuse("task_in_progress", `${busy.taskId} is running`);
    }
  }

  /** Compacts in place of a Task. Resolves once it is on record that it has begun. */
  async compact(): Promise<Result<void, SessionRefusal>> {
    if (this.#closed) return refuse("session_not_found", "the Session was deleted");
    if (this.#task !== undefined) return refuse("task_in_progress", `${this.#task.taskId} is running`);
    const { session } = this.#deps;
    const client = checkCompaction(this.#deps);
    const claim = client.ok ? session.claimTask() : client;
    if (!client.ok || !claim.ok) return claim as Refused;
    const task = this.#take(`compaction-${session.newId()}`, claim);
    return new Promise((resolve) => {
      void compactAlone(task, client.value, { ...this.#deps, wait: this.wait }, () => resolve(ok(undefined))).then(
        () => {
          resolve(refuse("storage_failed", "the compaction could not be recorded"));
          return this.#finish(task);
        },
      );
    });
  }

  async steer(input: Input): Promise<Result<{ steerId: string }, SessionRefusal>> {
    if (this.#task?.takesSteering !== true) return refuse("not_running", "no Task is running that takes steering");
    return this.intake.steer(this.#task, input, {});
  }

  async abort(clearQueue: boolean): Promise<Result<boolean, SessionRefusal>> {
    const cleared = clearQueue ? this.intake.clear() : undefined;
    const wasRunning = this.stop("user");
    return (await cleared) ?? ok(wasRunning);
  }

  /** Interrupts the running Task. @returns false when there is none. The first reason stands. */
  stop(reason: AbortReason | null): boolean {
    this.#task?.stop(reason);
    return this.#task !== undefined;
  }

  /** Resolves when the running Task, if any, has ended. */
  async settled(): Promise<void> {
    await this.#task?.ended;
  }

  /** Starts nothing any more. */
  close(): void {
    this.#closed = true;
    this.#cancelPump();
  }

  /**
   * After a restart: the Task that only waited for a person goes on, every other one is closed on record, what waits
   * starts. Called once, before anyone else. A disk that refuses is reported; what is owed is written later.
   */
  async recover(): Promise<void> {
    const waits = await settleLeftover(this.#deps);
    if (waits !== undefined) await this.#resume(waits);
    await this.#deps.save().catch(this.#deps.session.onFault);
    this.#pump();
  }

  /** What a resumed Task does first is done: its question is open, or something of it is shown. */
  readonly noteProgress = (): void => this.#onProgress();

  async #resume(running: Running): Promise<void> {
    const { session } = this.#deps;
    const { journal } = session;
    // It had its place before; a cap does not take it away.
    const task = this.#take(running.taskId, session.claimTask({ force: true }));
    const resumption = { calls: journal.unfinished.undecided, turns: journal.turns };
    task.started = true;
    this.#deps.begins(task.taskId);
    const llm = await clientForAccepted(this.#deps.record().workspace, session);
    // Nobody finds the Session running and not yet asking.
    const progress = new Promise<void>((resolve) => {
      this.#onProgress = resolve;
    });
    void this.#run(task, llm, running.thinkingLevel, resumption);
    await Promise.race([progress, task.ended]);
  }

  async #start(input: Input, options: SubmitOptions): Promise<Result<Assigned, SessionRefusal>> {
    const { session } = this.#deps;
    const claim = options.sharesPlace === true ? ok(() => {}) : session.claimTask();
    if (!claim.ok) return claim;
    // From here to the end of the Task the Session is taken: a second prompt, whatever it awaits, finds it so.
    const task = this.#take(`task-${session.newId()}`, claim);
    const assigned: Assigned = { taskId: task.taskId, queued: 0 };
    const client = await checkPrompt(input, this.#deps.record().workspace, session);
    const failure = client.ok ? await this.#recordPrompt(task, input, options, assigned) : client;
    if (!client.ok || failure !== undefined) {
      this.#free(task);
      return failure as Refused;
    }
    this.#begin(task, client.value, options.thinkingLevel);
    options.onAssigned?.(assigned);
    return ok(assigned);
  }

  async #recordPrompt(
    task: RunningTask,
    input: Input,
    options: SubmitOptions,
    assigned: Assigned,
  ): Promise<Refused | undefined> {
    try {
      await options.beforeRecorded?.(assigned);
      const { thinkingLevel, hasKey } = options;
      await recordStart(this.#deps, { taskId: task.taskId, input, thinkingLevel, hasKey });
    } catch (error) {
      this.#ledger.unbegin();
      if (!this.#closed) return refuse("storage_failed", `the Prompt could not be recorded: ${reasonOf(error)}`);
    }
    return this.#closed ? refuse("session_not_found", "the Session was deleted") : undefined;
  }

  /** One tick: the Prompt is recorded, the Task is shown, whoever asked may open a stream before its first message. */
  #begin(task: RunningTask, llm: TaskDeps["llm"], thinkingLevel: ThinkingLevel | undefined): void {
    task.started = true;
    this.#ledger.begun();
    this.#deps.begins(task.taskId);
    this.#deps.touch();
    this.#deps.announce();
    void this.#run(task, llm, thinkingLevel);
  }

  async #run(
    task: RunningTask,
    llm: TaskDeps["llm"],
    thinkingLevel: ThinkingLevel | undefined,
    resumption?: Resumption,
  ): Promise<void> {
    // Whoever opens a stream in `onAssigned` does so before the first message.
    await Promise.resolve();
    const deps = taskDeps(task, llm, thinkingLevel, { ...this.#deps, wait: this.wait });
    const outcome = await task.run(deps, resumption);
    try {
      // Nothing is open after a Task that ended as it should. A fault may have left something.
      await this.#deps.session.journal.closeUnfinished("failed");
    } catch {
      // The disk refuses, which the outcome says already: it is closed before the next Prompt.
    }
    await this.#finish(task, outcome);
  }

  /** @param outcome a Task's; a compaction has none */
  async #finish(task: RunningTask, outcome?: TaskOutcome): Promise<void> {
    this.#deps.approvals.clear();
    // However it ended: what it was promised belongs to it, or to the next one, once it is on record.
    task.endSteering();
    await task.accepted();
    if (outcome !== undefined)
      this.#ledger.end(task.taskId, this.#deps.session.clock.iso(), outcome.status, outcome.error);
    this.#task = undefined;
    task.release();
    this.#deps.touch();
    this.#deps.announce(outcome === undefined ? undefined : task.taskId);
    this.#pump();
    if (!this.#closed) await this.#deps.save().catch(this.#deps.session.onFault);
    task.end();
  }

  readonly #whenFree = (): void => this.#pump();

  /** Starts what waits, when the Session is free and the process has a place. */
  #pump(): void {
    this.#cancelPump();
    const item = this.#ledger.next;
    if (this.#closed || this.#task !== undefined || item === undefined || !this.intake.isAccepted(item)) return;
    const claim = this.#deps.session.claimTask({ whenFree: this.#whenFree });
    if (claim.ok) void this.#startWaiting(this.#take(item.itemId, claim), item);
  }

  async #startWaiting(task: RunningTask, item: Waiting): Promise<void> {
    const { session, record } = this.#deps;
    try {
      const llm = await clientForAccepted(record().workspace, session);
      await recordStart(this.#deps, { ...item, taskId: task.taskId, item });
      if (!this.#closed) return this.#begin(task, llm, item.thinkingLevel);
      this.#free(task);
    } catch (error) {
      if (error instanceof Recalled) return this.#free(task);
      session.onFault(error);
      this.#ledger.unbegin();
      void this.#deps.save().catch(() => {}); // Reported above: it is the same disk.
      this.#free(task, STORAGE_RETRY_MS);
    }
  }

  #take(taskId: string, claim: { value: () => void }): RunningTask {
    const task = new RunningTask(taskId, claim.value);
    this.#task = task;
    return task;
  }

  /** Gives the Session back: the Task did not come about. */
  #free(task: RunningTask, pumpInMs = 0): void {
    this.#task = undefined;
    task.release();
    task.end();
    if (pumpInMs === 0) this.#pump();
    else this.#cancelPump = this.#deps.session.clock.after(pumpInMs, () => this.#pump());
  }
}
