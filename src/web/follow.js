// @ts-check
// Keeps a view of one Session: the history first, then the stream from its cursor, again and again for as long as the
// page wants it. How the connection fares and how the Task fares are two things and are told apart.

import { ApiError, inWords } from "./api.js";
import { takeStreamSlot } from "./slots.js";
import { eventsOf } from "./sse.js";
import {
  connected,
  emptyView,
  withChildRecords,
  withEarlier,
  withEvent,
  withHistory,
  withRecords,
  withSession,
  withStanding,
} from "./view.js";
import { backoffMs, onReturn, pause, watchdog } from "./waiting.js";

/** @import { Api } from "./api.js" */
/** @import { Approval, HistoryPage, LinkState, Session, View } from "./types.d.ts" */

const PAGE = 400;
/** Four times the server's usual heartbeat. */
const SILENCE_MS = 60_000;
const POLL_MS = 2_000;
/** A connection that lived this long was a good one. */
const GOOD_MS = 5_000;

/**
 * @typedef {object} Following
 * @property {() => View} view
 * @property {() => Promise<void>} loadEarlier
 * @property {() => void} retryNow
 * @property {() => void} close
 */

/**
 * @param {string} sessionId @param {Api} api @param {(view: View) => void} onView @param {(link: LinkState) => void} onLink
 * @returns {Following}
 */
export function follow(sessionId, api, onView, onLink) {
  const over = new AbortController();
  const base = `/sessions/${encodeURIComponent(sessionId)}`;
  let view = emptyView();
  let wake = () => {};

  /** @param {View} next */
  const set = (next) => {
    if (next === view || over.signal.aborted) return;
    view = next;
    onView(view);
  };
  /** @param {LinkState} link */
  const tell = (link) => {
    if (!over.signal.aborted) onLink(link);
  };
  /** @param {string} path @returns {Promise<HistoryPage>} */
  const read = async (path) => (await api.open(path, { signal: over.signal })).json();

  const refresh = async () => {
    if (view.session === null) set(withSession(view, await api.call("GET", base)));
    set(withHistory(view, await read(`${base}/messages?limit=${PAGE}`)));
    for (const [id, { before, count }] of Object.entries(view.children)) {
      if (before !== null) continue;
      // A child that is gone leaves what the stream brings.
      const page = await read(`/sessions/${encodeURIComponent(id)}/messages?before=${count}`).catch(() => undefined);
      if (page !== undefined) set(withChildRecords(view, id, page.messages));
    }
  };

  /** @type {AbortController | undefined} */
  let connection;
  let isFilling = false;
  const fillGap = async () => {
    if (isFilling) return;
    isFilling = true;
    try {
      // Also for a gap that a later connection leaves while this one is still being read.
      while (view.gap !== null && view.stale === null && !over.signal.aborted) {
        const { from } = view.gap;
        const { messages } = await read(`${base}/messages${from > 0 ? `?after=${from - 1}` : ""}`);
        const filled = withRecords(view, messages);
        if (filled === view) await pause(200, over.signal);
        else set(filled);
      }
    } catch {
      // The history will bring it, as soon as there is a server again.
      set({ ...view, stale: "gap" });
      connection?.abort();
    } finally {
      isFilling = false;
    }
  };

  /** @param {boolean} resynced */
  const stream = async (resynced) => {
    const own = new AbortController();
    connection = own;
    const end = () => own.abort();
    over.signal.addEventListener("abort", end, { once: true });
    const dog = watchdog(SILENCE_MS, own);
    try {
      const response = await api.open(`${base}/stream`, {
        headers: { accept: "text/event-stream", ...(view.cursor === null ? {} : { "last-event-id": view.cursor }) },
        signal: own.signal,
      });
      if (response.body === null) throw new TypeError("no body");
      set(connected(view));
      tell({ kind: "live", resynced });
      for await (const events of eventsOf(response.body, dog.heard)) {
        set(events.reduce(withEvent, view));
        if (view.stale !== null) return;
        if (view.gap !== null) void fillGap();
      }
    } finally {
      dog.end();
      over.signal.removeEventListener("abort", end);
      own.abort();
    }
  };

  const poll = async () => {
    tell({ kind: "polling" });
    const [session, { approvals }] = await Promise.all([
      /** @type {Promise<Session>} */ (api.call("GET", base)),
      /** @type {Promise<{ approvals: Approval[] }>} */ (api.call("GET", `${base}/approvals`)),
    ]);
    set(withStanding(view, session, approvals));
    await pause(POLL_MS, over.signal, (done) => {
      wake = done;
      return () => {};
    });
    set({ ...view, stale: "polled" });
  };

  /** One connection, from its history to its end. */
  const connect = async () => {
    const isResync = view.stale !== null && view.stale !== "polled";
    if (view.cursor === null || view.stale !== null) await refresh();
    const release = await takeStreamSlot();
    if (release === undefined) return poll();
    try {
      await stream(isResync);
    } finally {
      release();
    }
  };

  const run = async () => {
    let failures = 0;
    tell({ kind: "connecting" });
    while (!over.signal.aborted) {
      const beganAt = Date.now();
      let why = "The connection was closed.";
      let isFailed = true;
      try {
        await connect();
        isFailed = view.stale !== "polled";
      } catch (error) {
        if (error instanceof ApiError && error.code === "session_not_found") return tell({ kind: "gone" });
        if (!(error instanceof DOMException)) why = inWords(error);
      }
      if (!isFailed || Date.now() - beganAt > GOOD_MS) failures = 0;
      if (!isFailed || over.signal.aborted) continue;
      failures += 1;
      // The first time that the place is gone nothing is wrong with the connection.
      if (view.stale !== null && failures === 1) continue;
      const delayMs =
        view.shutdownRetryMs === null ? backoffMs(failures) : Math.max(view.shutdownRetryMs, backoffMs(failures));
      tell({ kind: "reconnecting", at: Date.now() + delayMs, why });
      await pause(delayMs, over.signal, (done) => {
        wake = done;
        return onReturn(done);
      });
      tell({ kind: "connecting" });
    }
  };

  void run();
  return {
    view: () => view,
    retryNow: () => wake(),
    close: () => over.abort(),
    loadEarlier: async () => {
      if (view.nextBefore === null) return;
      set(withEarlier(view, await read(`${base}/messages?limit=${PAGE}&before=${view.nextBefore}`)));
    },
  };
}
