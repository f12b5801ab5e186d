// Keeps a View current: the history first, then the stream from its cursor, again and again for as long as it is wanted.
// Whatever breaks is mended here: the connection, a place that is gone, a hole, records that the stream leaves out. What
// a reader sees is never wrong meanwhile, only old.

import { ChildReader } from "./child-reader.js";
import { channelEventOf, eventsOf, type RawEvent } from "./event-stream.js";
import type { FollowOptions } from "./follow.js";
import { linkedTo } from "./linked.js";
import { OmnidError } from "./omnid-error.js";
import { type Outcome, Retrying, type Wait } from "./retrying.js";
import { SessionReads } from "./session-reads.js";
import type { Transport } from "./transport.js";
import { emptyView } from "./view.js";
import { type FollowStep, ViewStore } from "./view-store.js";
import type { Connection, View, ViewAction } from "./view-types.js";
import type { Session } from "./wire.js";

const PAGE_SIZE = 400;
const SILENCE_MS = 60_000;
const POLL_MS = 2_000;
/** What one answer did not fill is read again after this. */
const AGAIN_MS = 200;

export class Follower {
  readonly retryNow: () => void;
  readonly #options: FollowOptions;
  readonly #over = new AbortController();
  readonly #store: ViewStore;
  readonly #retrying: Retrying;
  readonly #reads: SessionReads;
  #endConnection: (reason: unknown) => void = () => {};
  #polledChildren: ChildReader | undefined;
  #isFilling = false;
  #isReadingQueue = false;
  #isQueueStale = false;
  #isReadingSession = false;

  constructor(sessionId: string, transport: Transport, options: FollowOptions) {
    const { silenceMs = SILENCE_MS, backoff, onError } = options;
    const { signal } = this.#over;
    this.#options = options;
    this.#store = new ViewStore(emptyView(sessionId), onError);
    this.#retrying = new Retrying(transport.clock, signal, backoff);
    this.#reads = new SessionReads(sessionId, transport, { signal, silenceMs });
    this.retryNow = this.#retrying.retryNow;
  }

  get view(): View {
    return this.#store.view;
  }

  readonly subscribe = (listener: () => void): (() => void) => this.#store.subscribe(listener);

  readonly steps = (): AsyncIterator<FollowStep, void, void> => this.#store.steps.read();

  readonly close = (): void => {
    if (this.#over.signal.aborted) return;
    // First of all, whatever those do who hear of it: they may close it too.
    this.#over.abort();
    if (this.view.connection.status !== "gone") {
      void this.#store.take({ type: "connection", connection: { status: "closed" } });
    }
    this.#store.end();
  };

  readonly loadEarlier = async (): Promise<void> => {
    const { nextBefore } = this.view;
    if (nextBefore === null) return;
    this.#take({ type: "earlier", page: await this.#reads.history({ limit: this.#pageSize, before: nextBefore }) });
  };

  readonly refreshQueue = async (): Promise<void> => {
    this.#take({ type: "queue", items: await this.#reads.queue() });
  };

  /** Runs until it is closed or the Session is gone. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#options;
    signal?.addEventListener("abort", this.close, { once: true });
    if (signal?.aborted) this.close();
    try {
      await this.#retrying.run(
        () => this.#attempt(),
        (wait) => this.#connectionIs(waiting(wait, this.view)),
      );
    } finally {
      signal?.removeEventListener("abort", this.close);
      this.close();
    }
  }

  get #pageSize(): number {
    return this.#options.pageSize ?? PAGE_SIZE;
  }

  #take(action: ViewAction): void {
    if (!this.#over.signal.aborted) void this.#store.take(action);
  }

  #connectionIs(connection: Connection): void {
    this.#take({ type: "connection", connection });
  }

  /** One connection, from its history to its end. */
  async #attempt(): Promise<Outcome> {
    if (this.view.connection.status !== "polling") this.#connectionIs({ status: "connecting" });
    try {
      const { stale, cursor } = this.view;
      const isResync = stale !== null && stale !== "polled";
      if (cursor === null || stale !== null) await this.#refresh();
      const { takeStreamSlot } = this.#options;
      const release = takeStreamSlot === undefined ? () => {} : await takeStreamSlot();
      if (release === undefined) return await this.#poll();
      try {
        await this.#stream(isResync);
      } finally {
        release();
      }
      // The first time that the place is gone nothing is wrong with the connection.
      if (this.view.stale !== null && stale === null) return { next: "again" };
      const { shutdownRetryMs } = this.view;
      return { next: "wait", ...(shutdownRetryMs === null ? {} : { minMs: shutdownRetryMs }) };
    } catch (error) {
      if (!(error instanceof OmnidError) || error.code !== "session_not_found") throw error;
      this.#connectionIs({ status: "gone" });
      return { next: "over" };
    }
  }

  async #refresh(): Promise<void> {
    const [session, page] = await Promise.all([this.#reads.session(), this.#reads.history({ limit: this.#pageSize })]);
    if (!this.#over.signal.aborted) await this.#store.take({ type: "session", session }, { type: "history", page });
  }

  async #stream(resynced: boolean): Promise<void> {
    const connection = linkedTo(this.#over.signal);
    this.#endConnection = connection.abort;
    try {
      await this.#reads.stream(this.view.cursor, connection.signal, async ({ body, silence }) => {
        this.#take({ type: "connected" });
        this.#connectionIs({ status: "live", resynced });
        const children = this.#childReader(connection.signal);
        children.look();
        // Steering that an abort left undelivered is in no count.
        this.#readQueue();
        for await (const events of eventsOf(body, silence)) {
          await this.#takeEvents(events);
          if (this.view.stale !== null) return;
          if (this.view.gap !== null) void this.#fillGap();
          children.look();
        }
      });
    } finally {
      connection.release();
      connection.abort();
    }
  }

  async #takeEvents(events: readonly RawEvent[]): Promise<void> {
    const { task } = this.view;
    await this.#store.takeAll(actionsOf(events));
    if (this.view.task === task) return;
    this.#syncQueue();
    if (this.view.task?.ended !== undefined) this.#readSession();
  }

  async #fillGap(): Promise<void> {
    if (this.#isFilling) return;
    this.#isFilling = true;
    try {
      // Also a gap that a later connection leaves while this one is still being read.
      while (this.view.gap !== null && this.view.stale === null && !this.#over.signal.aborted) {
        const { gap } = this.view;
        const { messages } = await this.#reads.history(gap.from > 0 ? { after: gap.from - 1 } : {});
        this.#take({ type: "records", records: messages });
        if (this.view.gap === gap) await this.#retrying.pause(AGAIN_MS);
      }
    } catch (error) {
      // The history will bring it, as soon as there is a server again.
      this.#take({ type: "stale", reason: "gap" });
      this.#endConnection(error);
    } finally {
      this.#isFilling = false;
    }
  }

  #childReader(signal: AbortSignal): ChildReader {
    return new ChildReader({
      signal,
      view: () => this.view,
      take: (action) => this.#take(action),
      read: (sessionId, from) => this.#reads.childRecords(sessionId, from),
      pause: () => this.#retrying.pause(AGAIN_MS),
    });
  }

  #syncQueue(): void {
    const { task, queue } = this.view;
    if ((task?.queued ?? 0) > 0 || queue.length > 0) this.#readQueue();
  }

  #readQueue(): void {
    this.#isQueueStale = true;
    if (this.#isReadingQueue) return;
    this.#isReadingQueue = true;
    const read = async () => {
      while (this.#isQueueStale) {
        // What changes while it is read asks for it again.
        this.#isQueueStale = false;
        await this.refreshQueue();
      }
    };
    const done = () => {
      this.#isReadingQueue = false;
    };
    // Where it fails the connection does too, and the next one asks.
    void read().then(done, done);
  }

  /** What a Task cost, and when it ended, is in no event of the stream. */
  #readSession(): void {
    if (this.#isReadingSession) return;
    this.#isReadingSession = true;
    const read = async () => {
      let asked: View;
      let session: Session;
      do {
        asked = this.view;
        session = await this.#reads.session();
        // What the stream said meanwhile may be newer than the answer.
      } while (this.view.task !== asked.task || this.view.session !== asked.session);
      this.#take({ type: "session", session });
    };
    const done = () => {
      this.#isReadingSession = false;
    };
    // Where it fails the connection does too, and the next one reads it.
    void read().then(done, done);
  }

  async #poll(): Promise<Outcome> {
    this.#connectionIs({ status: "polling" });
    const [session, approvals] = await Promise.all([this.#reads.session(), this.#reads.approvals()]);
    this.#take({ type: "standing", session, approvals });
    // One for all looks: what cannot be read yet is asked for once at a time.
    this.#polledChildren ??= this.#childReader(this.#over.signal);
    this.#polledChildren.look();
    await this.#retrying.pause(this.#options.pollMs ?? POLL_MS);
    this.#take({ type: "stale", reason: "polled" });
    return { next: "again" };
  }
}

function* actionsOf(events: readonly RawEvent[]): Generator<ViewAction, void, void> {
  for (const raw of events) {
    const said = channelEventOf(raw);
    if (said === undefined) continue;
    if (said === "unreadable") yield { type: "stale", reason: "unreadable" };
    else if (said.kind === "message") yield { type: "message", id: said.id, message: said.message };
    else yield { type: "server_event", id: said.id, event: said.event };
  }
}

function waiting({ attempt, retryAt, error }: Wait, { shutdownRetryMs }: View): Connection {
  const facts = { status: "waiting", attempt, retryAt } as const;
  if (error instanceof OmnidError) return { ...facts, code: error.code, reason: error.message };
  if (error !== undefined) return { ...facts, code: "network", reason: String(error) };
  if (shutdownRetryMs !== null) return { ...facts, code: "shutdown", reason: "the server is going down" };
  return { ...facts, code: "closed", reason: "the connection was closed" };
}
