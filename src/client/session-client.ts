// Every call that concerns one Session.

import { channelEventOf, eventsOf } from "./event-stream.js";
import { type Following, type FollowOptions, follow } from "./follow.js";
import { OmnidError } from "./omnid-error.js";
import { pathOf } from "./session-reads.js";
import { broken, type Call, type Transport } from "./transport.js";
import type {
  AbortTask,
  Approval,
  CallOptions,
  ChannelEvent,
  Decide,
  ForkSession,
  History,
  HistoryQuery,
  OnceOptions,
  PatchSession,
  Prompt,
  QueueItem,
  Session,
  Steered,
  SubmitTask,
  Task,
  TaskAccepted,
} from "./wire.js";

export interface StreamOptions extends CallOptions {
  /** Where to go on; left out: from now. */
  lastEventId?: string;
}

export type RunOptions = OnceOptions & StreamOptions;

/** One Session, by its id. Making this asks nothing of the server. */
export interface SessionClient {
  readonly id: string;
  get(options?: CallOptions): Promise<Session>;
  update(change: PatchSession, options?: CallOptions): Promise<Session>;
  delete(options?: CallOptions): Promise<void>;
  /** A new Session whose history is this one's up to and including a record. */
  fork(body: ForkSession, options?: CallOptions): Promise<Session>;

  /** Starts a Task, or what `whenBusy` says. Resolves once it is recorded. */
  submit(task: SubmitTask | string, options?: OnceOptions): Promise<TaskAccepted>;
  /**
   * Starts a Task and gives its own stream, from a `task_state` to the one with `ended`, over one connection. It throws
   * when the connection breaks: `follow` is what comes back by itself.
   */
  run(task: SubmitTask | string, options?: RunOptions): AsyncGenerator<ChannelEvent, void, void>;
  task(taskId: string, options?: CallOptions): Promise<Task>;
  /** Says something into the running Task. */
  steer(input: Prompt, options?: CallOptions): Promise<Steered>;
  /** What waits, the oldest first. */
  queue(options?: CallOptions): Promise<QueueItem[]>;
  /** Takes back what waits. */
  recall(itemId: string, options?: CallOptions): Promise<QueueItem>;
  /** Open approvals, children's included. */
  approvals(options?: CallOptions): Promise<Approval[]>;
  /** Answers a call of this very Session; `Client.decide` finds the Session of an approval by itself. */
  decide(toolCallId: string, decision: Decide | Decide["decision"], options?: CallOptions): Promise<void>;
  /** Ends the running Task. Resolves once that is accepted. @returns whether anything was running. */
  abort(body?: AbortTask, options?: CallOptions): Promise<boolean>;
  compact(options?: CallOptions): Promise<void>;
  /** Ends the wait for a further try. @returns whether there was one. */
  retryNow(options?: CallOptions): Promise<boolean>;

  messages(query?: HistoryQuery, options?: CallOptions): Promise<History>;
  /** The Trace, byte for byte as stored: JSON Lines. */
  trace(options?: CallOptions): Promise<ReadableStream<Uint8Array>>;
  /** The Channel over one connection, until it ends. It throws when the connection breaks. */
  stream(options?: StreamOptions): AsyncGenerator<ChannelEvent, void, void>;
  /** Keeps a view of the Session for as long as it is wanted. */
  follow(options?: FollowOptions): Following;
}

/** Neither this answer of `abort` nor the other has a body. */
const ACCEPTED = 202;

export function createSessionClient(id: string, transport: Transport): SessionClient {
  const path = pathOf(id);
  const json = <T>(call: Omit<Call, "path">, below = "") => transport.json<T>({ ...call, path: `${path}${below}` });
  const events = (call: Omit<Call, "path">, below: string) =>
    channelEvents(transport, { ...call, path: `${path}${below}` });

  return {
    id,
    get: (options) => json({ ...options }),
    update: (body, options) => json({ method: "PATCH", body, ...options }),
    delete: (options) => json({ method: "DELETE", ...options }),
    fork: (body, options) => json({ method: "POST", body, ...options }, "/fork"),

    submit: (task, { idempotencyKey, ...options } = {}) =>
      json({ method: "POST", body: submitOf(task), headers: onceOf(idempotencyKey), ...options }, "/tasks"),
    run: (task, { idempotencyKey, lastEventId, ...options } = {}) => {
      const headers = { ...streamHeaders(lastEventId), ...onceOf(idempotencyKey) };
      return events({ method: "POST", body: submitOf(task), headers, ...options }, "/tasks");
    },
    task: (taskId, options) => json({ ...options }, `/tasks/${encodeURIComponent(taskId)}`),
    steer: (input, options) => json({ method: "POST", body: { input }, ...options }, "/steer"),
    queue: async (options) => (await json<{ items: QueueItem[] }>({ ...options }, "/queue")).items,
    recall: (itemId, options) => json({ method: "DELETE", ...options }, `/queue/${encodeURIComponent(itemId)}`),
    approvals: async (options) => (await json<{ approvals: Approval[] }>({ ...options }, "/approvals")).approvals,
    decide: (toolCallId, decision, options) => {
      const body = typeof decision === "string" ? { decision } : decision;
      return json({ method: "POST", body, ...options }, `/approvals/${encodeURIComponent(toolCallId)}`);
    },
    abort: async (body, options) => {
      const { status } = await transport.open({ method: "POST", path: `${path}/abort`, body, ...options });
      return status === ACCEPTED;
    },
    compact: (options) => json({ method: "POST", ...options }, "/compact"),
    retryNow: async (options) =>
      (await json<{ skipped: boolean }>({ method: "POST", ...options }, "/retry-now")).skipped,

    messages: (query, options) => json({ query: { ...query }, ...options }, "/messages"),
    trace: async (options) => bodyOf(await transport.open({ path: `${path}/trace`, ...options })),
    stream: ({ lastEventId, ...options } = {}) =>
      events({ headers: streamHeaders(lastEventId), ...options }, "/stream"),
    follow: (options) => follow(id, transport, options),
  };
}

async function* channelEvents(transport: Transport, call: Call): AsyncGenerator<ChannelEvent, void, void> {
  const body = bodyOf(await transport.open(call));
  try {
    for await (const events of eventsOf(body)) {
      for (const raw of events) {
        const event = channelEventOf(raw);
        if (event === "unreadable") throw new OmnidError("unreadable", "an event of the stream is no JSON");
        if (event !== undefined) yield event;
      }
    }
  } catch (error) {
    throw broken(error, call.signal);
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  if (response.body === null) throw new OmnidError("unreadable", "the answer has no body", { status: response.status });
  return response.body;
}

const submitOf = (task: SubmitTask | string): SubmitTask => (typeof task === "string" ? { input: task } : task);
const onceOf = (key: string | undefined) => ({ "idempotency-key": key });
const streamHeaders = (lastEventId: string | undefined) => ({
  accept: "text/event-stream",
  "last-event-id": lastEventId,
});
