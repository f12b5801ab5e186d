// Keeps the list of a token's Sessions: it is read after each connection to the events, since those are not replayed, and
// every event changes it.

import { eventsOf, objectOf } from "./event-stream.js";
import { guarded, Listeners, type OnError } from "./listeners.js";
import { OmnidError } from "./omnid-error.js";
import { type Backoff, type Outcome, Retrying } from "./retrying.js";
import { broken, type Transport } from "./transport.js";
import type { Connection } from "./view-types.js";
import { readJson, withBody } from "./watched.js";
import type { CallOptions, HostEvent, Session, SessionList } from "./wire.js";

export interface FollowSessionsOptions {
  signal?: AbortSignal;
  /** Sessions of the first reading; 200, the most there are in a page, unless asked otherwise. */
  limit?: number;
  /** Also archived ones. */
  archived?: boolean;
  silenceMs?: number;
  backoff?: Backoff;
  /** Given every event, for tabs that share one stream. */
  onEvent?: (event: HostEvent) => void;
  /** Given what a subscriber or `onEvent` throws, which ends nothing; the console has it otherwise. */
  onError?: OnError;
}

export interface SessionsView {
  /** Newest activity first. */
  readonly sessions: readonly Session[];
  readonly connection: Connection;
  /** False until the list has been read. */
  readonly isRead: boolean;
}

export interface FollowingSessions {
  /** Immutable: another object after each change. */
  readonly view: SessionsView;
  readonly subscribe: (listener: () => void) => () => void;
  readonly retryNow: () => void;
  readonly close: () => void;
  /** Resolves when it was closed. Never rejects. */
  readonly closed: Promise<void>;
}

const SILENCE_MS = 60_000;
const ACCEPT = { accept: "text/event-stream" };

/** The list after an event; the same one when nothing of it is another. Children are not in it. */
export function withHostEvent(sessions: readonly Session[], event: HostEvent, archived = false): readonly Session[] {
  switch (event.type) {
    case "session_deleted": {
      const left = sessions.filter(({ sessionId }) => sessionId !== event.sessionId);
      return left.length === sessions.length ? sessions : left;
    }
    case "session_created":
    case "session_updated": {
      const { session } = event;
      if (session.parentSessionId !== undefined) return sessions;
      const others = sessions.filter(({ sessionId }) => sessionId !== session.sessionId);
      if (session.archived && !archived) return others.length === sessions.length ? sessions : others;
      return [session, ...others].sort((a, b) => (a.lastActiveAt < b.lastActiveAt ? 1 : -1));
    }
    default:
      return sessions;
  }
}

/** The events of one connection, until it ends. */
export async function* hostEvents(
  transport: Transport,
  options: CallOptions = {},
): AsyncGenerator<HostEvent, void, void> {
  const { body } = await transport.open({ path: "/events", headers: ACCEPT, ...options });
  if (body === null) throw new OmnidError("unreadable", "the answer has no body");
  try {
    for await (const events of eventsOf(body)) for (const { data } of events) yield* hostEventOf(data);
  } catch (error) {
    throw broken(error, options.signal);
  }
}

function* hostEventOf(data: string): Generator<HostEvent, void, void> {
  const event = objectOf(data);
  // Anything else is a proxy's own words.
  if (typeof event?.type === "string") yield event as unknown as HostEvent;
}

export function followSessions(transport: Transport, options: FollowSessionsOptions = {}): FollowingSessions {
  const { limit = 200, archived = false, silenceMs = SILENCE_MS, backoff, onEvent, onError } = options;
  const over = new AbortController();
  const watch = { signal: over.signal, silenceMs };
  const retrying = new Retrying(transport.clock, over.signal, backoff);
  const listeners = new Listeners(onError);
  let view: SessionsView = { sessions: [], connection: { status: "connecting" }, isRead: false };

  const tell = (change: Partial<SessionsView>) => {
    view = { ...view, ...change };
    listeners.tell();
  };
  const set = (change: Partial<SessionsView>) => {
    if (!over.signal.aborted) tell(change);
  };
  const take = (event: HostEvent) => {
    guarded(() => onEvent?.(event), onError);
    const sessions = withHostEvent(view.sessions, event, archived);
    if (sessions !== view.sessions) set({ sessions });
  };
  const attempt = (): Promise<Outcome> => {
    set({ connection: { status: "connecting" } });
    return withBody(
      transport,
      { path: "/events", headers: ACCEPT },
      watch,
      async ({ body, silence }): Promise<Outcome> => {
        // What changes while the list is read comes by the stream after it.
        const query = { limit, archived };
        const { sessions } = await readJson<SessionList>(transport, { path: "/sessions", query }, watch);
        set({ sessions, isRead: true, connection: { status: "live", resynced: view.isRead } });
        let minMs = 0;
        for await (const events of eventsOf(body, silence)) {
          for (const event of events.flatMap(({ data }) => [...hostEventOf(data)])) {
            if (event.type === "shutdown") minMs = event.retryMs;
            take(event);
          }
        }
        return { next: "wait", minMs };
      },
    );
  };
  const close = () => {
    if (over.signal.aborted) return;
    over.abort();
    options.signal?.removeEventListener("abort", close);
    tell({ connection: { status: "closed" } });
    listeners.clear();
  };

  options.signal?.addEventListener("abort", close, { once: true });
  if (options.signal?.aborted) close();
  const closed = retrying.run(attempt, ({ attempt: count, retryAt, error }) => {
    const code = error instanceof OmnidError ? error.code : "closed";
    const reason = error instanceof Error ? error.message : "the connection was closed";
    set({ connection: { status: "waiting", attempt: count, retryAt, reason, code } });
  });
  return {
    get view() {
      return view;
    },
    subscribe: (listener) => listeners.add(listener),
    retryNow: retrying.retryNow,
    close,
    closed,
  };
}
