// All Sessions of the process: made, found (loaded from their Traces when needed), listed from their records, removed,
// drained. Owners are kept apart here: another's Session is not found.

import type { Sink } from "../channel/subscription.js";
import { toLine } from "../protocol/message.js";
import { ok, refuse } from "../result.js";
import { StorageError } from "../trace/storage-error.js";
import { createSession, type Made } from "./create.js";
import { drainSessions } from "./drain.js";
import { Family } from "./family.js";
import { figuresOf } from "./figures.js";
import { forkSession } from "./fork.js";
import { hostedChildren } from "./hosted-children.js";
import { importSession } from "./import.js";
import { type ListQuery, pageOf, recordsOf } from "./list-page.js";
import { type HostHooks, loadSession } from "./load.js";
import { mapBounded } from "./map-bounded.js";
import { OwnerEvents } from "./owner-events.js";
import type { Figures, SessionProcess } from "./process.js";
import { recordsOnDisk } from "./rebuild-record.js";
import { removeWorkspace, sweepLeftovers } from "./remove.js";
import { type Held, KEPT_IN_MEMORY, letGo, makeRoom, usedLast } from "./room.js";
import type { Session } from "./session.js";
import type { SessionRecord } from "./session-record.js";
import { TaskPlaces } from "./task-places.js";
import type { CreateOptions, CreateSession, ForkSession, ImportSource, Owner, SessionHost, Taken } from "./types.js";

/** How long a deleted Session's Task may take to end before its files go all the same. */
const REMOVE_GRACE_MS = 3_000;
/** Sessions that are loaded at once at start. */
const RECOVER_CONCURRENCY = 16;

type Entry = Held;

/** Reads the records of the data directory and hosts its Sessions; none of them does anything before `recover`. */
export async function createSessionManager(shared: SessionProcess): Promise<SessionManager> {
  const records = await recordsOnDisk(shared);
  const entries = new Map(records.map((record): [string, Entry] => [record.sessionId, { record, users: 0 }]));
  return new SessionManager(shared, entries);
}

export class SessionManager implements SessionHost {
  readonly #shared: SessionProcess;
  readonly #entries: Map<string, Entry>;
  readonly #family: Family;
  readonly #events: OwnerEvents;
  readonly #places: TaskPlaces;
  /** Sources of forks that are being made. */
  readonly #forking = new Map<SessionRecord, Promise<unknown>>();
  /** Sessions that are being made and not among the entries yet. */
  #creating = 0;
  #draining = false;
  #sweeping: Promise<void> | undefined;

  constructor(shared: SessionProcess, entries: Map<string, Entry>) {
    this.#shared = shared;
    this.#entries = entries;
    this.#family = new Family(entries.values());
    this.#places = new TaskPlaces(shared.maxTasks);
    const { heartbeat, replay, onChannelStat } = shared;
    this.#events = new OwnerEvents({ ...replay, heartbeat, onStat: (stat) => onChannelStat(stat) });
  }

  /** Loads the Sessions whose work an earlier process left: what waited goes on, the rest is closed. Never rejects. */
  async recover(): Promise<void> {
    const open = [...this.#entries.values()].filter(
      ({ record }) => record.running !== undefined || record.queue?.length,
    );
    await mapBounded(open, RECOVER_CONCURRENCY, (entry) => {
      const { sessionId } = entry.record;
      return this.#load(entry, this.#shared.traces.open(sessionId)).catch((err) =>
        this.#shared.log.error({ err, sessionId }, "a Session could not be recovered"),
      );
    });
    this.#sweeping = sweepLeftovers(this.#shared, () => (this.#draining ? undefined : this.#atWork));
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Figures for the metrics. */
  get figures(): Figures {
    return figuresOf(this.#entries, this.#places.taken);
  }

  create(request: CreateSession, owner: Owner, options: CreateOptions = {}): Promise<Taken<Session>> {
    return this.#adopt(() => createSession(this.#shared, request, owner, options));
  }

  async fork(id: string, request: ForkSession, owner: Owner): Promise<Taken<Session> | undefined> {
    if (!this.hasRoomFor(id, owner)) return tooMany(this.#shared.maxSessions);
    return this.use(id, owner, (session) => session && this.#fork(session, request));
  }

  async #fork(session: Session, request: ForkSession): Promise<Taken<Session> | undefined> {
    if (session.view().state !== "idle") return refuse("task_in_progress", "the Session is busy");
    const source = { ...session.record };
    const forking = this.#copy(source, request).finally(() => this.#forking.delete(source));
    this.#forking.set(source, forking);
    return forking;
  }

  async #copy(source: SessionRecord, request: ForkSession): Promise<Taken<Session> | undefined> {
    const { sessionId } = source;
    const trace = await this.#shared.traces.open(sessionId);
    if (trace === undefined) return undefined;
    const isGone = () => !this.#entries.has(sessionId);
    const made = await this.#adopt(() => forkSession(this.#shared, { record: source, trace, isGone }, request));
    return made.ok || !isGone() ? made : undefined;
  }

  importTrace(source: ImportSource, owner: Owner): Promise<Taken<Session>> {
    return this.#adopt(() => importSession(this.#shared, source, owner));
  }

  /** Hosts a Session that is made now. @param users who are at work with it from the beginning */
  async #adopt(make: () => Promise<Taken<Made>>, users = 0): Promise<Taken<Session>> {
    if (this.#draining) return refuse("shutting_down", "the server is shutting down");
    const { maxSessions } = this.#shared;
    const held = this.#makeRoom((maxSessions ?? KEPT_IN_MEMORY) - 1);
    if (maxSessions !== undefined && held >= maxSessions) return tooMany(maxSessions);
    // The place is taken before anything is awaited: many creates at once do not slip past the cap together.
    this.#creating += 1;
    let made: Taken<Made>;
    try {
      made = await make();
    } finally {
      // From this tick on it counts among the entries.
      this.#creating -= 1;
    }
    if (!made.ok) return made;
    const { record, trace } = made.value;
    const entry: Entry = { record, users };
    this.#entries.set(record.sessionId, entry);
    this.#family.add(entry);
    const session = await this.#load(entry, Promise.resolve(trace)).catch(async (error) => {
      // All or nothing: whoever made it was not told of it.
      await this.remove(record.sessionId, record.owner);
      throw error;
    });
    this.#events.created(record.owner, session.view());
    return ok(session);
  }

  async list(query: ListQuery, owner: Owner): ReturnType<SessionHost["list"]> {
    const page = pageOf(recordsOf(this.#entries.values()), query, owner);
    if (page === undefined) return refuse("invalid_request", "cursor: not one that this server gave");
    const { records, nextCursor } = page;
    return ok({
      sessions: records.map(
        (record) => this.#entries.get(record.sessionId)?.session?.view() ?? this.#family.view(record),
      ),
      ...(nextCursor === undefined ? {} : { nextCursor }),
    });
  }

  hasRoomFor(id: string, owner: Owner): boolean {
    const { maxSessions } = this.#shared;
    const entry = this.#entries.get(id);
    if (maxSessions === undefined || entry?.record.owner !== owner || entry.loading !== undefined) return true;
    return this.#makeRoom(maxSessions - 1) < maxSessions;
  }

  async use<T>(id: string, owner: Owner, work: (session: Session | undefined) => T | Promise<T>): Promise<T> {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.record.owner !== owner) return work(undefined);
    usedLast(this.#entries, id);
    if (entry.loading === undefined) this.#makeRoom((this.#shared.maxSessions ?? KEPT_IN_MEMORY) - 1);
    entry.users += 1;
    try {
      return await work(await this.#load(entry, this.#shared.traces.open(id)));
    } finally {
      letGo(entry);
    }
  }

  /** `use` for one look: whoever makes room next may unload it. */
  find(id: string, owner: Owner): Promise<Session | undefined> {
    return this.use(id, owner, (session) => session);
  }

  async remove(id: string, owner: Owner): Promise<boolean> {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.record.owner !== owner) return false;
    // Not to be found from this tick on; what still runs writes to a Trace that nobody will read.
    this.#entries.delete(id);
    // It does not go on with what its children leave: it is stopped first.
    entry.session?.remove();
    const children = Promise.all(this.#family.childrenOf(id).map((child) => this.remove(child, owner)));
    children.catch(() => {}); // Looked at below.
    const session = await entry.loading?.catch(() => undefined);
    if (session !== undefined) {
      session.remove();
      await Promise.race([session.settled(), this.#shared.clock.sleep(REMOVE_GRACE_MS)]);
      // The interrupt's records have gone out; readers see them before the end.
      session.endStreams();
    }
    try {
      await children;
      await this.#family.remove(entry, this.#entries.get(entry.record.parentSessionId ?? ""), this.#shared);
      await this.#shared.traces.remove(id, () => this.#takeAlong(entry.record));
    } catch (error) {
      // It is still on the disk, so it is still there: another DELETE may have more luck.
      delete entry.session;
      delete entry.loading;
      this.#entries.set(id, entry);
      this.#family.add(entry);
      throw error;
    }
    this.#events.deleted(owner, id);
    return true;
  }

  /** Not before its forks are there with their own records: nobody else would tell the next process of the Workspace. */
  async #takeAlong(removed: SessionRecord): Promise<void> {
    const forks = [...this.#forking].filter(([source]) => source.sessionId === removed.sessionId);
    await Promise.allSettled(forks.map(([, forking]) => forking));
    await removeWorkspace(this.#shared, removed, this.#atWork);
  }

  models(): ReturnType<SessionHost["models"]> {
    const { models } = this.#shared;
    return { models: models.views(), defaultModel: models.defaultModel };
  }

  followEvents(sink: Sink, owner: Owner): void {
    this.#events.follow(owner, sink);
  }

  async ready(): Promise<boolean> {
    return !this.#draining && (await this.#shared.traces.isWritable());
  }

  /**
   * Takes no further work, ends every stream, interrupts what runs (but for what only waits for a person) and waits
   * for it. Resolves when the last record is written.
   */
  async drain(retryMs: number): Promise<void> {
    this.#draining = true;
    this.#places.close();
    const farewell = toLine({ type: "shutdown", retryMs });
    this.#events.end(farewell);
    await drainSessions([...this.#entries.values()], farewell);
    await this.#sweeping;
    await this.#shared.traces.close();
  }

  #load(entry: Entry, opening: Promise<Awaited<ReturnType<SessionProcess["traces"]["open"]>>>): Promise<Session> {
    entry.loading ??= opening.then(async (trace) => {
      if (trace === undefined) throw new StorageError("read_failed", "the Trace of this Session is gone");
      entry.session = await loadSession(this.#shared, entry.record, trace, this.#hooks(entry), entry.position);
      entry.record = entry.session.record;
      return entry.session;
    });
    // A failed load is tried again by the next who asks.
    entry.loading.catch(() => {
      delete entry.loading;
    });
    return entry.loading;
  }

  #hooks(entry: Entry): HostHooks {
    const { sessionId, owner } = entry.record;
    return {
      claimTask: this.#places.claim,
      children: hostedChildren({
        make: (request) =>
          this.#adopt(() => createSession(this.#shared, request, owner, { parentSessionId: sessionId }), 1),
        remove: (childId) => this.remove(childId, owner),
        letGo: (childId) => letGo(this.#entries.get(childId)),
        usage: () => this.#family.usageByChild(sessionId),
        goesOn: () => this.#entries.get(sessionId) === entry && !this.#draining,
        allowOutside: this.#shared.allowOutside,
        onFault: (error) => this.#shared.log.error({ err: error, sessionId }, "a child could not be taken back"),
      }),
      onUpdated: (record, view) => {
        entry.record = record;
        if (this.#entries.get(record.sessionId) !== entry) return;
        // A Task that ends was use, whoever has asked for another Session meanwhile.
        usedLast(this.#entries, record.sessionId);
        this.#events.updated(record.owner, view);
      },
    };
  }

  /** Whose Workspaces are in use. */
  get #atWork(): SessionRecord[] {
    return [...recordsOf(this.#entries.values()), ...this.#forking.keys()];
  }

  /** @returns how many Sessions are in memory then. */
  #makeRoom(limit: number): number {
    return makeRoom(this.#entries.values(), limit, this.#creating);
  }
}

const tooMany = (max: number | undefined) => refuse("too_many_sessions", `${max} Sessions are in memory and in use`);
