// What a Session has promised and how it went: the Task that runs, the Tasks and the steering that wait, how the last
// ones ended. Plain data, kept in the Session record, so that a 202 survives the process. Each change happens in one
// tick: of a start and a recall, of a delivery and a recall, exactly one finds the item.

import { z } from "zod";
import { THINKING_LEVELS } from "../engine/ports.js";
import type { RequestError, StopReason } from "../protocol/payloads.js";
import { type Ended, EndedTasks, endedSchema } from "./ended-tasks.js";
import type { Input, QueueItem, TaskView } from "./types.js";

/** What may wait at once: items, and bytes of the JSON that they are on record; one alone may be larger. */
const MAX_ITEMS = 256;
const MAX_QUEUE_BYTES = 8 * 1024 * 1024;

const inputSchema = z.union([
  z.string(),
  z.array(
    z.discriminatedUnion("type", [
      z.object({ type: z.literal("text"), text: z.string() }),
      z.object({ type: z.literal("image_url"), imageUrl: z.string() }),
      z.object({ type: z.literal("file"), fileName: z.string(), dataUrl: z.string() }),
    ]),
  ),
]);

/** An Idempotency-Key answers for the Task: how it went is remembered as long as the key. */
const hasKey = z.literal(true).optional().catch(undefined);

const waitingSchema = z.looseObject({
  itemId: z.string(),
  kind: z.enum(["task", "steer"]),
  input: inputSchema,
  createdAt: z.string(),
  thinkingLevel: z.enum(THINKING_LEVELS).optional(),
  /**
   * The Task that a steering message is for. After an abort no other gets it; absent, its Task ended otherwise, and the
   * next one does.
   */
  taskId: z.string().optional(),
  hasKey,
});
export type Waiting = z.infer<typeof waitingSchema>;

const runningSchema = z.looseObject({
  taskId: z.string(),
  startedAt: z.string(),
  /** The ordinal that the Prompt's first record gets: what tells whether it was recorded. */
  ordinal: z.number().int().nonnegative(),
  thinkingLevel: z.enum(THINKING_LEVELS).optional(),
  /** Where it came from, when it had waited: it waits again if its Prompt was not recorded. */
  item: waitingSchema.optional(),
  /** The approval that is open, and since when (ISO 8601). */
  asked: z.object({ toolCallId: z.string(), requestedAt: z.string() }).optional(),
  hasKey,
});
export type Running = z.infer<typeof runningSchema>;

/** A broken entry is dropped by itself: the others are promises too. */
const listOf = <T>(item: z.ZodType<T>) =>
  z
    .array(z.unknown())
    .catch([])
    .transform((entries) => entries.flatMap((entry) => item.safeParse(entry).data ?? []));

/** The ledger in a Session record. */
export const ledgerFields = {
  running: runningSchema.optional().catch(undefined),
  queue: listOf(waitingSchema).optional(),
  ended: listOf(endedSchema).optional(),
};

export interface LedgerFields {
  running?: Running | undefined;
  queue?: Waiting[] | undefined;
  ended?: Ended[] | undefined;
}

export class TaskLedger {
  #running: Running | undefined;
  #waiting: Waiting[];
  /** The item of `#running` while its Prompt is not recorded: for readers it still waits. */
  #starting: Waiting | undefined;
  readonly #ended: EndedTasks;
  /** What is being accepted. */
  readonly #reserved = new Set<Measured>();

  constructor(saved: LedgerFields) {
    this.#running = saved.running;
    this.#waiting = saved.queue ?? [];
    this.#ended = new EndedTasks(saved.ended ?? []);
  }

  /** What goes into the Session record. */
  get fields(): LedgerFields {
    return {
      running: this.#running,
      queue: this.#waiting.length === 0 ? undefined : [...this.#waiting],
      ended: this.#ended.onRecord,
    };
  }

  get running(): Running | undefined {
    return this.#running;
  }

  /** Tasks that wait, one that is about to start included. */
  get queued(): number {
    return this.#listed.filter(({ kind }) => kind === "task").length;
  }

  get #listed(): readonly Waiting[] {
    return this.#starting === undefined ? this.#waiting : [this.#starting, ...this.#waiting];
  }

  /** What waits, the oldest first. */
  get items(): QueueItem[] {
    return this.#listed
      .map(viewOf)
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));
  }

  /**
   * Keeps room for one more item of this input while it is being accepted.
   * @returns what gives it back, or undefined when it does not fit what may wait at once.
   */
  reserve(input: Input): (() => void) | undefined {
    const place = { input };
    const taken: readonly Measured[] = [...this.#waiting, ...this.#reserved];
    const bytes = taken.reduce((sum, each) => sum + sizeOf(each), sizeOf(place));
    if (taken.length > 0 && (taken.length >= MAX_ITEMS || bytes > MAX_QUEUE_BYTES)) return undefined;
    this.#reserved.add(place);
    return () => void this.#reserved.delete(place);
  }

  view(taskId: string): TaskView | undefined {
    if (this.#listed.some((item) => item.kind === "task" && item.itemId === taskId)) return { taskId, state: "queued" };
    if (this.#running?.taskId === taskId) return { taskId, state: "running", startedAt: this.#running.startedAt };
    return this.#ended.view(taskId);
  }

  /** True for a Task that is remembered, and for steering that waits. */
  holds(itemId: string): boolean {
    return this.view(itemId) !== undefined || this.#waiting.some((item) => item.itemId === itemId);
  }

  add(item: Waiting, where: "last" | "first" = "last"): void {
    if (where === "first") this.#waiting.unshift(item);
    else this.#waiting.push(item);
  }

  /** Takes an item out. @returns undefined when it does not wait (any more). */
  remove(itemId: string): Waiting | undefined {
    const item = this.#waiting.find((each) => each.itemId === itemId);
    if (item !== undefined) this.#waiting = this.#waiting.filter((each) => each !== item);
    return item;
  }

  /** Takes an item back: a Task of that id is over without having run. @returns undefined when it does not wait. */
  recall(itemId: string, at: string): Waiting | undefined {
    const item = this.remove(itemId);
    if (item?.kind === "task") this.#ended.add(endOf(itemId, { hasKey: item.hasKey }, "aborted", at));
    return item;
  }

  /** Undoes a recall that could not be recorded. */
  unrecall(item: Waiting): void {
    this.#ended.delete(item.itemId);
    this.putBack([item]);
  }

  /** Takes back everything. */
  clear(at: string): Waiting[] {
    return [...this.#waiting].flatMap((item) => this.recall(item.itemId, at) ?? []);
  }

  /**
   * Forgets steering that the Trace says was delivered: the process ended before the record told so.
   * @returns what it forgot
   */
  dropDelivered(delivered: ReadonlyMap<string, unknown>): Waiting[] {
    const items = this.#waiting.filter((item) => delivered.has(item.itemId));
    this.#waiting = this.#waiting.filter((item) => !items.includes(item));
    return items;
  }

  /** The Task that would start next. */
  get next(): Waiting | undefined {
    return this.#waiting.find(({ kind }) => kind === "task");
  }

  hasSteering(taskId: string): boolean {
    return this.#waiting.some((item) => item.kind === "steer" && item.taskId === taskId);
  }

  /** Takes out the steering for a Task, in the order in which it came. */
  takeSteering(taskId: string): Waiting[] {
    const items = this.#waiting.filter((item) => item.kind === "steer" && item.taskId === taskId);
    if (items.length > 0) this.#waiting = this.#waiting.filter((item) => !items.includes(item));
    return items;
  }

  /** Takes out the steering that an earlier Task could not be given any more, though nobody interrupted it. */
  takeCarried(): Waiting[] {
    const items = this.#waiting.filter((item) => item.kind === "steer" && item.taskId === undefined);
    if (items.length > 0) this.#waiting = this.#waiting.filter((item) => !items.includes(item));
    return items;
  }

  /** Puts items back where they came from, in front. */
  putBack(items: readonly Waiting[]): void {
    this.#waiting = [...items, ...this.#waiting];
  }

  /** A Task is about to start: what waited cannot be taken back any more. */
  begin(running: Running): void {
    this.#running = running;
    this.#starting = running.item;
  }

  /** Its Prompt is recorded: it runs. */
  begun(): void {
    this.#starting = undefined;
  }

  /** An Idempotency-Key answers for the running Task too. */
  keyed(): void {
    if (this.#running !== undefined) this.#running = { ...this.#running, hasKey: true };
  }

  /** The open approval of the running Task. */
  asked(asked: Running["asked"]): void {
    if (this.#running !== undefined) this.#running = { ...this.#running, asked };
  }

  /** The running Task did not come about: nothing of it was recorded. */
  unbegin(): void {
    const item = this.#running?.item;
    this.#running = undefined;
    this.#starting = undefined;
    if (item !== undefined) this.putBack([item]);
  }

  /** A Task is over. Unless it was interrupted, the next one gets its steering. */
  end(taskId: string, endedAt: string, status: StopReason, error?: RequestError): void {
    if (status !== "aborted" && this.hasSteering(taskId)) {
      this.#waiting = this.#waiting.map(({ taskId: own, ...item }) =>
        own === undefined || own === taskId ? item : { ...item, taskId: own },
      );
    }
    const own = this.#running?.taskId === taskId ? this.#running : undefined;
    if (own !== undefined) {
      this.#running = undefined;
      this.#starting = undefined;
    }
    this.#ended.add({ ...endOf(taskId, own ?? {}, status, endedAt), ...(error === undefined ? {} : { error }) });
  }
}

function endOf(
  taskId: string,
  { startedAt, hasKey }: Partial<Pick<Running, "startedAt" | "hasKey">>,
  status: StopReason,
  endedAt: string,
): Ended {
  return {
    taskId,
    state: "ended",
    status,
    ...(startedAt === undefined ? {} : { startedAt }),
    endedAt,
    ...(hasKey === undefined ? {} : { hasKey }),
  };
}

/** An item as a client sees it. */
export function viewOf({ itemId, kind, input, createdAt }: Waiting): QueueItem {
  return { itemId, kind, input, createdAt };
}

interface Measured {
  readonly input: Input;
}

const sizes = new WeakMap<Measured, number>();

/** Bytes of the JSON, measured once. */
function sizeOf(item: Measured): number {
  const known = sizes.get(item);
  if (known !== undefined) return known;
  const size = Buffer.byteLength(JSON.stringify(item.input));
  sizes.set(item, size);
  return size;
}
