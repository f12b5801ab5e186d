// How each Task of a Session stands, the newest ones. In memory, bounded.

import type { RequestError, StopReason } from "../protocol/payloads.js";
import type { TaskView } from "./types.js";

const KEPT = 1000;

export class TaskLog {
  readonly #tasks = new Map<string, TaskView>();

  get(taskId: string): TaskView | undefined {
    return this.#tasks.get(taskId);
  }

  started(taskId: string, startedAt: string): void {
    this.#tasks.set(taskId, { taskId, state: "running", startedAt });
    const oldest = this.#tasks.keys().next().value;
    if (this.#tasks.size > KEPT && oldest !== undefined) this.#tasks.delete(oldest);
  }

  ended(taskId: string, endedAt: string, status: StopReason, error: RequestError | undefined): void {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return;
    this.#tasks.set(taskId, { ...task, state: "ended", status, endedAt, ...(error === undefined ? {} : { error }) });
  }
}
