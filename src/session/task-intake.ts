// What a client gives a Session that is busy, or takes back from it: Tasks that wait, steering into the one that runs.
// Each is on record before it is answered for; what is not yet is listed and not started.

import { reasonOf } from "../reason-of.js";
import { ok, type Result, refuse } from "../result.js";
import { checkInput, checkPrompt } from "./prepare-prompt.js";
import type { RunningTask } from "./running-task.js";
import { type TaskLedger, viewOf, type Waiting } from "./task-ledger.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";
import type { Assigned, Input, QueueItem, SessionRefusal, SubmitOptions } from "./types.js";

type StorageRefusal = Extract<Result<never, "storage_failed">, { ok: false }>;

export class TaskIntake {
  readonly #deps: TaskRunnerDeps;
  readonly #ledger: TaskLedger;
  readonly #onAccepted: () => void;
  readonly #held = new Set<string>();

  /** @param onAccepted a Task waits now: start it, if the Session is free */
  constructor(deps: TaskRunnerDeps, onAccepted: () => void) {
    this.#deps = deps;
    this.#ledger = deps.ledger;
    this.#onAccepted = onAccepted;
  }

  /** False while it is not on record that this item waits. */
  isAccepted(item: Waiting): boolean {
    return !this.#held.has(item.itemId);
  }

  async steer(
    task: RunningTask,
    input: Input,
    options: SubmitOptions,
  ): Promise<Result<{ steerId: string }, SessionRefusal>> {
    const { session } = this.#deps;
    const taken = checkInput(input, session);
    if (!taken.ok) return taken;
    const giveBack = this.#ledger.reserve(input);
    if (giveBack === undefined) return tooMany();
    const steerId = `steer-${session.newId()}`;
    // The Task does not end past what it is accepting.
    const letGo = task.accept();
    try {
      await options.beforeRecorded?.({ taskId: task.taskId, queued: 0, steerId });
      giveBack();
      this.#ledger.add({
        itemId: steerId,
        kind: "steer",
        input,
        createdAt: this.#deps.session.clock.iso(),
        taskId: task.taskId,
      });
      if (options.hasKey) this.#ledger.keyed();
      await this.#deps.save();
    } catch (error) {
      this.#ledger.remove(steerId);
      this.#takeOffRecord();
      return refuse("storage_failed", `the message could not be recorded: ${reasonOf(error)}`);
    } finally {
      giveBack();
      letGo();
    }
    if (this.#deps.isRemoved()) return removed();
    options.onAssigned?.({ taskId: task.taskId, queued: 0, steerId });
    return ok({ steerId });
  }

  async enqueue(
    input: Input,
    options: SubmitOptions,
    where: "first" | "last",
  ): Promise<Result<Assigned, SessionRefusal>> {
    const { session, record } = this.#deps;
    const client = await checkPrompt(input, record().workspace, session);
    if (!client.ok) return client;
    const giveBack = this.#ledger.reserve(input);
    if (giveBack === undefined) return tooMany();
    const taskId = `task-${session.newId()}`;
    const { thinkingLevel, hasKey } = options;
    this.#held.add(taskId);
    try {
      await options.beforeRecorded?.({ taskId, queued: this.#ledger.queued + 1 });
      const item: Waiting = { itemId: taskId, kind: "task", input, createdAt: this.#deps.session.clock.iso() };
      giveBack();
      this.#ledger.add({ ...item, ...(thinkingLevel && { thinkingLevel }), ...(hasKey && { hasKey }) }, where);
      await this.#deps.save();
    } catch (error) {
      this.#ledger.remove(taskId);
      this.#held.delete(taskId);
      // It may have stood in front of others when the Session became free.
      this.#onAccepted();
      this.#takeOffRecord();
      return refuse("storage_failed", `the Task could not be recorded: ${reasonOf(error)}`);
    } finally {
      giveBack();
      this.#held.delete(taskId);
    }
    if (this.#deps.isRemoved()) return removed();
    const assigned = { taskId, queued: this.#ledger.queued };
    this.#deps.announce();
    options.onAssigned?.(assigned);
    this.#onAccepted();
    return ok(assigned);
  }

  async recall(itemId: string): Promise<Result<QueueItem, SessionRefusal>> {
    const item = this.#ledger.recall(itemId, this.#deps.session.clock.iso());
    if (item === undefined) return refuse("not_pending", `nothing waits under ${itemId}`);
    const failure = await this.#saved();
    if (failure !== undefined) {
      this.#unrecall([item]);
      return failure;
    }
    this.#announceRecalled([item]);
    return ok(viewOf(item));
  }

  /** Takes back everything, or nothing. @returns why that is not on record, if so: then all of it waits as before. */
  async clear(): Promise<StorageRefusal | undefined> {
    const items = this.#ledger.clear(this.#deps.session.clock.iso());
    const failure = items.length === 0 ? undefined : await this.#saved();
    if (failure === undefined) this.#announceRecalled(items);
    else this.#unrecall(items);
    return failure;
  }

  /** They wait as before; meanwhile the Session may have become free. */
  #unrecall(items: readonly Waiting[]): void {
    for (const item of [...items].reverse()) this.#ledger.unrecall(item);
    this.#takeOffRecord();
    this.#onAccepted();
  }

  /** What was refused may be on the disk all the same: another write was under way with it. */
  #takeOffRecord(): void {
    void this.#deps.save().catch(() => {}); // Told already: it is the same disk.
  }

  /** Tells of Tasks that end without having run. */
  #announceRecalled(items: readonly Waiting[]): void {
    for (const { kind, itemId } of items) if (kind === "task") this.#deps.announce(itemId);
  }

  async #saved(): Promise<StorageRefusal | undefined> {
    try {
      await this.#deps.save();
      return undefined;
    } catch (error) {
      return refuse("storage_failed", `the change could not be recorded: ${reasonOf(error)}`);
    }
  }
}

const removed = () => refuse("session_not_found", "the Session was deleted");

const tooMany = () => refuse("too_many_queued", "too much waits in this Session already");
