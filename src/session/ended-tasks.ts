// How the last Tasks of a Session ended. One that an Idempotency-Key answers for is remembered as long as the key, others
// as far as there is room: a repeated key shows how its Task went, also after many more and in another process.

import { z } from "zod";
import { requestErrorSchema, stopReasonSchema } from "../protocol/payloads.js";
import { KEY_KEPT_MS } from "./key-journal.js";
import type { TaskView } from "./types.js";

/** In memory, and across restarts with a key. */
const KEPT = 1000;
/** The newest, which are remembered across restarts with and without a key. */
const RECENT = 128;

export const endedSchema = z.looseObject({
  taskId: z.string(),
  state: z.literal("ended"),
  status: stopReasonSchema,
  error: requestErrorSchema.optional(),
  startedAt: z.string().optional(),
  endedAt: z.string(),
  /** An Idempotency-Key answers for it. */
  hasKey: z.literal(true).optional().catch(undefined),
});
export type Ended = z.infer<typeof endedSchema>;

export class EndedTasks {
  /** In the order of their ends. */
  readonly #tasks: Map<string, Ended>;

  constructor(saved: readonly Ended[]) {
    this.#tasks = new Map(saved.map((task) => [task.taskId, task]));
  }

  /** What goes into the Session record. */
  get onRecord(): Ended[] | undefined {
    const tasks = [...this.#tasks.values()];
    const newest = tasks.at(-1);
    if (newest === undefined) return undefined;
    const keysSince = Date.parse(newest.endedAt) - KEY_KEPT_MS;
    const recentFrom = tasks.length - RECENT;
    return tasks.filter(
      ({ hasKey, endedAt }, index) => index >= recentFrom || (hasKey === true && Date.parse(endedAt) >= keysSince),
    );
  }

  view(taskId: string): TaskView | undefined {
    const task = this.#tasks.get(taskId);
    if (task === undefined) return undefined;
    const { hasKey, ...view } = task;
    return view;
  }

  add(task: Ended): void {
    this.#tasks.set(task.taskId, task);
    if (this.#tasks.size > KEPT) this.delete(this.#leastWanted());
  }

  delete(taskId: string): void {
    this.#tasks.delete(taskId);
  }

  /** The oldest without a key that is not recent, or the oldest of all. */
  #leastWanted(): string {
    const tasks = [...this.#tasks.values()];
    const least = tasks.slice(0, -RECENT).find(({ hasKey }) => hasKey !== true) ?? (tasks[0] as Ended);
    return least.taskId;
  }
}
