// What was read takes its place in the view: histories, older pages, records that the stream leaves out, children's
// records. A message that is there already keeps its identity and its key.

import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type { TokenCounts } from "../protocol/payloads.js";
import { undecided } from "./approvals.js";
import { childOf, isOwed, leavesBehind } from "./children.js";
import { liveFragments } from "./fragments.js";
import type { ChildView, View, ViewMessage } from "./view-types.js";
import type { History, HistoryRecord } from "./wire.js";

/** Takes a history as the truth. Older records that were loaded stay (a record never changes) where they join it. */
export function withHistory(view: View, page: History): View {
  const first = page.messages[0]?.ordinal ?? 0;
  const joins = view.first < first && view.confirmed >= first;
  const older = joins ? view.messages.slice(0, first - view.first) : [];
  // What is known from there on; where this history begins before it, nothing is.
  const known = view.messages.slice(Math.max(0, first - view.first));
  const fresh = placed(page.messages, known, "r");
  const messages = [...older, ...fresh];
  return {
    ...view,
    messages: sameList(view.messages, messages),
    first: joins ? view.first : first,
    confirmed: first + page.messages.length,
    nextBefore: joins ? view.nextBefore : (page.nextBefore ?? null),
    gap: null,
    stale: null,
    fragments: liveFragments(page.live?.fragments ?? [], view.fragments, page.cursor),
    children: childrenAt(view, page.children ?? {}),
    // Until the snapshot says which are open; one that the history decides is gone at once.
    approvals: undecided(view, messages),
    snapshot: { step: "due" },
    progress: {},
    usage: usageIn(fresh, view.usage),
    cursor: page.cursor,
    shutdownRetryMs: null,
  };
}

/** Puts a page of older records before the first. */
export function withEarlier(view: View, page: History): View {
  const older = page.messages.filter(({ ordinal }) => ordinal < view.first);
  const start = older[0]?.ordinal;
  if (start === undefined || start + older.length !== view.first) return view;
  const fresh = placed(older, [], "r");
  return {
    ...view,
    messages: [...fresh, ...view.messages],
    first: start,
    nextBefore: page.nextBefore ?? null,
    usage: view.usage ?? usageIn(fresh, null),
  };
}

/** Fills the gap with records read from `view.gap.from` on. Too few of them leave the gap open. */
export function withRecords(view: View, records: readonly HistoryRecord[]): View {
  const { gap } = view;
  if (gap === null) return view;
  const missing = records.filter(({ ordinal }) => ordinal >= gap.from && ordinal < gap.to);
  if (missing.length !== gap.to - gap.from) return view;
  const sure = view.confirmed - view.first;
  const filled = placed(missing, view.messages.slice(sure, sure + gap.count), "r");
  const messages = [...view.messages.slice(0, sure), ...filled, ...view.messages.slice(sure + gap.count)];
  return { ...view, messages, confirmed: gap.to, gap: null };
}

/** Gives a child its records: those up to its `count`, and what the stream left out among what came since. */
export function withChildRecords(view: View, id: string, records: readonly HistoryRecord[]): View {
  const child = childOf(view, id);
  if (child === undefined || !isOwed(child)) return view;
  const next = withRead(child, records, `${id}.r`);
  return next === undefined ? view : { ...view, children: { ...view.children, [id]: next } };
}

/** @returns undefined when the records do not reach to where the child's are known. */
function withRead(child: ChildView, records: readonly HistoryRecord[], prefix: string): ChildView | undefined {
  const { since, count, isRead } = child;
  // It is gone: what the stream brings is all there is.
  if (records.length === 0 && child.isBehind) return { ...child, isBehind: false };
  const first = records.filter(({ ordinal }) => ordinal < count);
  if (!isRead && first.length < count) return undefined;
  const before = isRead ? child.before : placed(first, child.before, prefix);
  const { filled, left } = woven(since, records.slice(first.length), prefix);
  // Where nothing of it is found these are not its records, and never will be.
  const isBehind = left.length < since.length && left.some(({ message }) => leavesBehind(message));
  return { before: [...before, ...filled], since: left, count: count + filled.length, isRead: true, isBehind };
}

/** Messages of the stream with the records that it leaves out between them, up to the last one that is among them. */
function woven(since: readonly ViewMessage[], records: readonly HistoryRecord[], prefix: string) {
  const found: ViewMessage[] = [];
  let taken = 0;
  let end = 0;
  for (const { ordinal, ...message } of records) {
    const next = since[taken];
    if (next === undefined) break;
    const isNext = isSame(next.message, message);
    found.push(isNext ? next : { key: `${prefix}${ordinal}`, message });
    if (!isNext) continue;
    taken += 1;
    end = found.length;
  }
  return { filled: found.slice(0, end), left: since.slice(taken) };
}

/** The tokens that a message counts for the Session itself. */
export function usageOf(message: OmniMessage): TokenCounts | undefined {
  return message.origin === undefined && isPayload(message, "token_usage") ? message.payload.session : undefined;
}

const usageIn = (messages: readonly ViewMessage[], before: TokenCounts | null): TokenCounts | null =>
  messages.reduce((usage, { message }) => usageOf(message) ?? usage, before);

/** Records as messages of a view. Those of `known` that are among them, in the same order, are taken from there. */
function placed(
  records: readonly HistoryRecord[],
  known: readonly ViewMessage[],
  prefix: string,
): readonly ViewMessage[] {
  let next = 0;
  return records.map(({ ordinal, ...message }) => {
    const same = known[next];
    if (same !== undefined && isSame(same.message, message)) {
      next += 1;
      return same;
    }
    return { key: `${prefix}${ordinal}`, message };
  });
}

/** A child that was known keeps what is known of it until its records are read. */
function childrenAt(view: View, counts: Readonly<Record<string, number>>): View["children"] {
  const entries = Object.entries(counts).map(([id, count]): [string, ChildView] => {
    const known = childOf(view, id);
    const isSame = known?.isRead === true && known.count === count && known.since.length === 0;
    const before = known === undefined ? [] : [...known.before, ...known.since];
    return [id, isSame ? known : { before, since: [], count, isRead: false, isBehind: false }];
  });
  return Object.fromEntries(entries);
}

function sameList(before: readonly ViewMessage[], after: readonly ViewMessage[]): readonly ViewMessage[] {
  return before.length === after.length && before.every((each, index) => each === after[index]) ? before : after;
}

/** A stream's message carries a child's chain, its record does not. */
function isSame(a: OmniMessage, b: OmniMessage): boolean {
  return a.timestamp === b.timestamp && a.type === b.type && JSON.stringify(a.payload) === JSON.stringify(b.payload);
}
