// The client of one server. It needs nothing but fetch and streams: a browser has them, and so has Node from 20 on.

import { type FollowingSessions, type FollowSessionsOptions, followSessions, hostEvents } from "./follow-sessions.js";
import { createSessionClient, type SessionClient } from "./session-client.js";
import { type ClientOptions, createTransport } from "./transport.js";
import type {
  Approval,
  CallOptions,
  CreateSession,
  Decide,
  HostEvent,
  ListQuery,
  ModelList,
  OnceOptions,
  Session,
  SessionList,
} from "./wire.js";

export interface ImportOptions extends CallOptions {
  /** What to do with lines that hold no record: refuse the file (default), or leave them out. */
  damaged?: "refuse" | "skip";
}

export interface SessionsClient {
  /** One page, newest activity first. */
  list(query?: ListQuery, options?: CallOptions): Promise<SessionList>;
  /** All of them, page by page. */
  all(query?: Omit<ListQuery, "cursor">, options?: CallOptions): AsyncGenerator<Session, void, void>;
  create(body?: CreateSession, options?: OnceOptions): Promise<Session>;
  /** A new Session of a downloaded Trace. */
  import(trace: Blob | ReadableStream<Uint8Array> | string, options?: ImportOptions): Promise<Session>;
  /** What becomes of them, over one connection. Nothing is replayed; it throws when the connection breaks. */
  events(options?: CallOptions): AsyncGenerator<HostEvent, void, void>;
  /** Keeps the list for as long as it is wanted. */
  follow(options?: FollowSessionsOptions): FollowingSessions;
}

export interface Client {
  readonly sessions: SessionsClient;
  /** One Session, by its id. Asks nothing of the server. */
  session(id: string): SessionClient;
  models(options?: CallOptions): Promise<ModelList>;
  /** Answers an approval at the Session that it belongs to, a child's at the child. */
  decide(approval: Approval, decision: Decide | Decide["decision"], options?: CallOptions): Promise<void>;
}

/** Everything the server at `baseUrl` can be asked. What it refuses is thrown as an OmnidError. */
export function createClient(options: ClientOptions): Client {
  const transport = createTransport(options);
  const list: SessionsClient["list"] = (query, more) =>
    transport.json({ path: "/sessions", query: { ...query }, ...more });
  const session = (id: string): SessionClient => createSessionClient(id, transport);
  return {
    session,
    models: (more) => transport.json({ path: "/models", ...more }),
    decide: ({ sessionId, toolCall }, decision, more) =>
      session(sessionId).decide(toolCall.payload.tool_call_id, decision, more),
    sessions: {
      list,
      async *all(query, more) {
        let cursor: string | undefined;
        do {
          const page = await list({ limit: 200, ...query, ...(cursor === undefined ? {} : { cursor }) }, more);
          yield* page.sessions;
          cursor = page.nextCursor;
        } while (cursor !== undefined);
      },
      create: (body, { idempotencyKey, ...more } = {}) =>
        transport.json({
          method: "POST",
          path: "/sessions",
          body: body ?? {},
          headers: { "idempotency-key": idempotencyKey },
          ...more,
        }),
      import: (trace, { damaged, ...more } = {}) =>
        transport.json({
          method: "POST",
          path: "/sessions/import",
          query: { damaged },
          raw: { type: "application/x-ndjson", body: trace },
          ...more,
        }),
      events: (more) => hostEvents(transport, more),
      follow: (more) => followSessions(transport, more),
    },
  };
}
