// @ts-check
// The list of Sessions, kept current by the server's events. One tab holds the stream and tells the others.

import { inOneTab, scopeOf } from "./slots.js";
import { eventsOf } from "./sse.js";
import { backoffMs, onReturn, pause, watchdog } from "./waiting.js";

/** @import { Api } from "./api.js" */
/** @import { Session } from "./types.d.ts" */

const SILENCE_MS = 60_000;

/** @typedef {{ type: string, session?: Session, sessionId?: string }} ListEvent */

/**
 * @param {Session[]} sessions newest activity first
 * @param {ListEvent} event @returns {Session[]}
 */
export function withListEvent(sessions, event) {
  const { session } = event;
  if (event.type === "session_deleted") return sessions.filter((each) => each.sessionId !== event.sessionId);
  if (session === undefined || "parentSessionId" in session) return sessions;
  const others = sessions.filter((each) => each.sessionId !== session.sessionId);
  const isArchived = "archived" in session && session.archived === true;
  return isArchived ? others : [session, ...others].sort((a, b) => (a.lastActiveAt < b.lastActiveAt ? 1 : -1));
}

/**
 * Follows the list for as long as the page lives.
 * @param {Api} api @param {(sessions: Session[]) => void} onList @param {(error: unknown) => void} onFault
 */
export async function followList(api, onList, onFault) {
  const life = new AbortController();
  /** @type {Session[]} */
  let sessions = [];
  const list = async () => {
    /** @type {{ sessions: Session[] }} */
    const page = await api.call("GET", "/sessions?limit=200");
    sessions = page.sessions;
    onList(sessions);
  };
  /** @param {ListEvent} event */
  const take = (event) => {
    sessions = withListEvent(sessions, event);
    onList(sessions);
  };
  // The first call is also the one that asks for a token.
  await list().catch(onFault);
  const scope = `omnid-events-${await scopeOf(api.token())}`;
  const tabs = new BroadcastChannel(scope);
  tabs.onmessage = ({ data }) => {
    if (data.type === "listed") void list().catch(onFault);
    else take(data);
  };

  const hold = async () => {
    let failures = 0;
    while (!life.signal.aborted) {
      const connection = new AbortController();
      const dog = watchdog(SILENCE_MS, connection);
      try {
        const response = await api.open("/events", {
          headers: { accept: "text/event-stream" },
          signal: connection.signal,
        });
        // What changes while the list is read comes by the stream after it.
        await list();
        tabs.postMessage({ type: "listed" });
        failures = 0;
        if (response.body === null) throw new TypeError("no body");
        for await (const events of eventsOf(response.body, dog.heard)) {
          for (const { data } of events) {
            const event = JSON.parse(data);
            take(event);
            tabs.postMessage(event);
          }
        }
      } catch {
        // The state of the connection is shown by the Session's own stream; this one just comes back.
      } finally {
        dog.end();
        connection.abort();
      }
      failures += 1;
      await pause(backoffMs(failures), life.signal, onReturn);
    }
  };
  await inOneTab(scope, life.signal, hold);
}
