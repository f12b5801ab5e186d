// @ts-check
// What a Session's page shows, as a pure fold over the history and the stream. Every step gives a new view.
//
// Records have ordinals, stream messages have ids, and the stream leaves some records out. So entries that came by the
// stream are unconfirmed until a `task_state` counts them: if it counts more, the records since the last confirmed one
// are read and put in their place. Ids grow by one: one that was seen is dropped, a hole makes the view stale.

import { addFragment, close, fragmentOf, isPartial, slotOf } from "./fragments.js";

/** @import { Approval, Child, Entry, HistoryPage, HistoryRecord, Message, Session, StreamEvent, TaskState, View } from "./types.d.ts" */

/** @returns {View} */
export const emptyView = () => ({
  cursor: null,
  stale: null,
  first: 0,
  nextBefore: null,
  entries: [],
  confirmed: 0,
  gap: null,
  fragments: [],
  children: {},
  approvals: [],
  snapshotDue: true,
  progress: {},
  task: null,
  session: null,
  usage: null,
  shutdownRetryMs: null,
});

/**
 * Takes a history as the truth. Older records that were loaded stay (a record never changes) where they join it.
 * @param {View} view @param {HistoryPage} page @returns {View}
 */
export function withHistory(view, page) {
  const first = page.messages[0]?.ordinal ?? 0;
  const known = view.entries.slice(0, view.confirmed - view.first);
  const joins = view.first < first && view.confirmed >= first;
  const older = joins ? known.slice(0, first - view.first) : [];
  const keyAt = (/** @type {number} */ ordinal) => known[ordinal - view.first]?.key ?? `r${ordinal}`;
  const fresh = page.messages.map((record) => ({ key: keyAt(record.ordinal), message: record }));
  const entries = [...older, ...fresh];
  const fragments = (page.live?.fragments ?? []).map((message, index) => {
    const open = fragmentOf(message, `f${page.cursor}.${index}`);
    return { ...open, key: view.fragments.find((each) => each.slot === open.slot)?.key ?? open.key };
  });
  /** @type {Record<string, Child>} */
  const children = {};
  for (const [id, count] of Object.entries(page.children ?? {})) children[id] = { before: null, count, since: [] };
  return {
    ...emptyView(),
    cursor: page.cursor,
    first: joins ? view.first : first,
    nextBefore: joins ? view.nextBefore : (page.nextBefore ?? null),
    entries,
    confirmed: first + page.messages.length,
    fragments,
    children,
    // Until the snapshot says which are open; one that the history decides is gone at once.
    approvals: view.approvals.filter((approval) => !isDecided(entries, approval)),
    task: view.task,
    session: view.session,
    usage: fresh.reduce((usage, entry) => usageOf(entry.message) ?? usage, view.usage),
  };
}

/** Puts a page of older records before the first. @param {View} view @param {HistoryPage} page @returns {View} */
export function withEarlier(view, page) {
  const older = page.messages.filter((record) => record.ordinal < view.first);
  const start = older[0]?.ordinal;
  if (start === undefined || start + older.length !== view.first) return view;
  const entries = [...older.map((message) => ({ key: `r${message.ordinal}`, message })), ...view.entries];
  return { ...view, entries, first: start, nextBefore: page.nextBefore ?? null };
}

/**
 * Fills the gap with records read from `view.gap.from` on. Too few of them leave the gap open.
 * @param {View} view @param {HistoryRecord[]} records @returns {View}
 */
export function withRecords(view, records) {
  const { gap } = view;
  if (gap === null) return view;
  const missing = records.filter((record) => record.ordinal >= gap.from && record.ordinal < gap.to);
  if (missing.length !== gap.to - gap.from) return view;
  const sure = view.confirmed - view.first;
  const streamed = view.entries.slice(sure, sure + gap.count);
  const filled = missing.map((record) => {
    const same = streamed[0] !== undefined && isSame(streamed[0].message, record) ? streamed.shift() : undefined;
    return { key: same?.key ?? `r${record.ordinal}`, message: record };
  });
  const entries = [...view.entries.slice(0, sure), ...filled, ...view.entries.slice(sure + gap.count)];
  return { ...view, entries, confirmed: gap.to, gap: null };
}

/**
 * Gives a child the records that it had at the history's position.
 * @param {View} view @param {string} id @param {HistoryRecord[]} records @returns {View}
 */
export function withChildRecords(view, id, records) {
  const child = view.children[id];
  if (child === undefined || child.before !== null) return view;
  const before = records
    .filter((record) => record.ordinal < child.count)
    .map((message) => ({ key: `${id}.r${message.ordinal}`, message }));
  return { ...view, children: { ...view.children, [id]: { ...child, before } } };
}

/** A new connection from `view.cursor` has been answered. @param {View} view @returns {View} */
export const connected = (view) => ({ ...view, snapshotDue: true, shutdownRetryMs: null });

/** @param {View} view @param {Session} session @returns {View} */
export const withSession = (view, session) => ({ ...view, session });

/** How a Session stands where there is no stream to say it. @param {View} view @param {Session} session @param {Approval[]} approvals @returns {View} */
export const withStanding = (view, session, approvals) => ({
  ...view,
  session,
  approvals,
  task: {
    state: session.state,
    queued: session.queued,
    pendingApprovals: session.pendingApprovals,
    records: view.confirmed,
  },
});

/** Takes the next event of the stream. @param {View} view @param {StreamEvent} event @returns {View} */
export function withEvent(view, event) {
  /** @type {Record<string, unknown>} */
  let value;
  try {
    value = JSON.parse(event.data);
  } catch {
    // Half a frame or a proxy's own words: the history knows better.
    return { ...view, stale: "unreadable" };
  }
  if (event.event === "server_event") return withServerEvent(view, value, event.id);
  if (event.event !== "" && event.event !== "message") return view;
  if (view.stale !== null) return view;
  const step = stepOf(view.cursor, event.id);
  if (step === "seen") return view;
  if (step === "hole") return { ...view, stale: "hole" };
  const message = /** @type {Message} */ (/** @type {unknown} */ (value));
  return withMessage({ ...view, cursor: event.id ?? null }, message, `s${event.id}`);
}

/** @param {View} view @param {Record<string, unknown>} value @param {string | undefined} id @returns {View} */
function withServerEvent(view, value, id) {
  switch (value.type) {
    case "resync_required":
      return { ...view, stale: String(value.reason), snapshotDue: true };
    case "session_updated":
      return withSession(view, /** @type {Session} */ (value.session));
    case "shutdown":
      return { ...view, shutdownRetryMs: Number(value.retryMs) || 0 };
    case "task_state":
      // The first event of a connection says where it stands.
      if (view.stale === null && id !== undefined && id !== view.cursor) return { ...view, stale: "hole" };
      return withTaskState(view, /** @type {TaskState} */ (/** @type {unknown} */ (value)));
    case "approval_request": {
      const approval = /** @type {Approval} */ (/** @type {unknown} */ (value));
      if (isDecided(entriesOf(view, approval.sessionId), approval)) return view;
      return { ...view, approvals: [...view.approvals.filter((each) => !isFor(each, approval)), approval] };
    }
    case "tool_progress": {
      const { toolCallId, origin, bytes, tail } =
        /** @type {{ toolCallId: string, origin?: string[], bytes: number, tail: string }} */ (value);
      const slot = slotOf({ origin, type: "partial_tool_call_output", toolCallId });
      return { ...view, progress: { ...view.progress, [slot]: { bytes, tail } } };
    }
    default:
      return view;
  }
}

/** @param {View} view @param {TaskState} task @returns {View} */
function withTaskState(view, task) {
  const approvals = view.snapshotDue || task.pendingApprovals === 0 ? [] : view.approvals;
  const next = { ...view, task, approvals, snapshotDue: false };
  if (view.stale !== null) return next;
  const count = view.entries.length - (view.confirmed - view.first);
  const seen = view.confirmed + count;
  if (task.records < seen) return { ...next, stale: "records" };
  if (task.records === seen) return { ...next, confirmed: seen, gap: null };
  return { ...next, gap: { from: view.confirmed, to: task.records, count } };
}

/** @param {View} view @param {Message} message @param {string} key @returns {View} */
function withMessage(view, message, key) {
  if (isPartial(message)) return { ...view, fragments: addFragment(view.fragments, message, key) };
  const { closed, fragments } = close(view.fragments, message);
  const entry = { key: closed?.key ?? key, message };
  const next = { ...view, fragments, ...settle(view, message) };
  const chain = message.origin ?? [];
  const child = chain[chain.length - 1];
  if (child === undefined) {
    return { ...next, entries: [...view.entries, entry], usage: usageOf(message) ?? view.usage };
  }
  const known = view.children[child] ?? { before: [], count: 0, since: [] };
  return { ...next, children: { ...view.children, [child]: { ...known, since: [...known.since, entry] } } };
}

/** What a decision or an output brings to an end. @param {View} view @param {Message} message @returns {Partial<View>} */
function settle(view, message) {
  const { type, tool_call_id: toolCallId = "" } = message.payload;
  if (type === "approval_decision") {
    const chain = message.origin ?? [];
    const child = chain[chain.length - 1];
    const isSettled = (/** @type {Approval} */ approval) =>
      callIdOf(approval) === toolCallId &&
      (child === undefined ? !isChild(view, approval) : approval.sessionId === child);
    return { approvals: view.approvals.filter((approval) => !isSettled(approval)) };
  }
  if (type !== "tool_call_output") return {};
  const slot = slotOf({ origin: message.origin, type: "partial_tool_call_output", toolCallId });
  const { [slot]: _, ...progress } = view.progress;
  return { progress };
}

/** @param {string | null} cursor @param {string | undefined} id @returns {"next" | "seen" | "hole"} */
function stepOf(cursor, id) {
  const [epoch, seq] = (cursor ?? "").split("-").map(Number);
  const [idEpoch, idSeq] = (id ?? "").split("-").map(Number);
  if (epoch === undefined || seq === undefined || idEpoch !== epoch || idSeq === undefined) return "hole";
  if (idSeq <= seq) return "seen";
  return idSeq === seq + 1 ? "next" : "hole";
}

/** @param {Approval} approval */
const callIdOf = (approval) => approval.toolCall.payload.tool_call_id ?? "";
/** @param {Approval} a @param {Approval} b */
const isFor = (a, b) => a.sessionId === b.sessionId && callIdOf(a) === callIdOf(b);
/** @param {View} view @param {Approval} approval */
const isChild = (view, approval) => (approval.toolCall.origin ?? []).length > 0 || approval.sessionId in view.children;

/** @param {View} view @param {string} sessionId @returns {Entry[]} */
function entriesOf(view, sessionId) {
  const child = view.children[sessionId];
  return child === undefined ? view.entries : [...(child.before ?? []), ...child.since];
}

/** @param {Entry[]} entries @param {Approval} approval */
const isDecided = (entries, approval) =>
  entries.some(
    ({ message }) =>
      message.payload.type === "approval_decision" && message.payload.tool_call_id === callIdOf(approval),
  );

/** @param {Message} message */
const usageOf = (message) =>
  message.payload.type === "token_usage" && message.origin === undefined ? message.payload.session : undefined;

/** @param {Message} a @param {Message} b */
const isSame = (a, b) => a.timestamp === b.timestamp && JSON.stringify(a.payload) === JSON.stringify(b.payload);
