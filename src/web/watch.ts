// Which Session is looked at, and what is known of it. What comes is shown once a frame at most, and also while the tab
// is hidden.

import type { Approval, Following, View } from "../client/index.js";
import { approvalNews, askedTogether } from "./asked.js";
import { background, client, reachable } from "./connect.js";
import { changeDraft, keepOfGone } from "./drafts.js";
import { learnName } from "./names.js";
import { endText } from "./spoken.js";
import { announcement, error, now, readChildren, selectedId, sending, view } from "./state.js";
import { takeStreamSlot } from "./tab-locks.js";

let following: Following | undefined;

/** Goes to a Session, or to the start with null. */
export function select(id: string | null): void {
  if (id === selectedId.value) return;
  following?.close();
  following = undefined;
  changeDraft(selectedId.value, id);
  selectedId.value = id;
  view.value = null;
  readChildren.value = new Map();
  error.value = "";
  if (id === null) return;
  const own = client.session(id).follow({ takeStreamSlot });
  following = own;
  view.value = own.view;
  const show = oncePerFrame(() => {
    if (following === own) showView(own.view);
  });
  own.subscribe(show);
}

function showView(next: View): void {
  const before = view.value;
  view.value = next;
  learnName(next);
  const { taskId, ended } = next.task ?? {};
  const sent = sending.value?.taskId;
  if (sent !== undefined && [taskId, ended?.taskId].includes(sent)) sending.value = null;
  if (next.connection.status === "gone") {
    if (location.hash === `#${next.sessionId}`) location.hash = "";
    select(null);
    const isKept = keepOfGone(next.sessionId);
    error.value = `This Session is not there any more.${isKept ? " What was written for it is kept." : ""}`;
    return;
  }
  if (before?.connection.status !== "live" && next.connection.status === "live") reachable();
  announceChange(before, next);
}

/** A screen reader is told what is over, not each word of it. */
function announceChange(before: View | null, next: View): void {
  const wasBusy = before?.task !== null && before?.task !== undefined && before.task.state !== "idle";
  const isNew = (approval: Approval) => before?.approvals.includes(approval) !== true;
  if (next.approvals.some(isNew)) {
    const asked = askedTogether(next.approvals, next).filter(({ approval }) => isNew(approval));
    announce(asked.map(approvalNews).join(" "));
  } else if (wasBusy && next.task?.state === "idle") {
    announce(endText(next));
  } else if (before?.connection.status === "live" && next.connection.status === "waiting") {
    announce("The connection is lost. It is tried again.");
  }
}

/** The same words again are another announcement only where they are not the same text. */
function announce(text: string): void {
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}

const HIDDEN_MS = 250;

function oncePerFrame(work: () => void): () => void {
  let isDue = false;
  const run = () => {
    isDue = false;
    work();
  };
  return () => {
    if (isDue) return;
    isDue = true;
    if (document.visibilityState === "visible") requestAnimationFrame(run);
    else setTimeout(run, HIDDEN_MS);
  };
}

/** Records; the last of them, where there are more. */
const MOST_OF_A_CHILD = 1_000;

/** The loading of older records that is under way. */
let loading: Promise<unknown> | undefined;

export function loadEarlier(): Promise<unknown> {
  const own = following;
  if (own === undefined || own.view.nextBefore === null) return Promise.resolve();
  loading ??= background(() => own.loadEarlier()).finally(() => {
    loading = undefined;
  });
  return loading;
}

/** Reads what a child said, where the stream does not bring it: it was at work before the server was started. */
export async function readChild(id: string): Promise<void> {
  const own = following;
  const isKnown = () => following !== own || readChildren.value.has(id) || Object.hasOwn(own?.view.children ?? {}, id);
  if (isKnown()) return;
  const page = await client
    .session(id)
    .messages({ limit: MOST_OF_A_CHILD })
    // Its card says that there is nothing.
    .catch(() => ({ messages: [] }));
  if (isKnown()) return;
  const before = page.messages.map(({ ordinal, ...message }) => ({ key: `${id}.r${ordinal}`, message }));
  const child = { before, since: [], count: before.length, isRead: true, isBehind: false };
  readChildren.value = new Map([...readChildren.value, [id, child]]);
}

export const reconnectNow = (): void => following?.retryNow();
/** What waits is read again; that it may fail is the connection's matter. */
export const refreshQueue = (): void => void following?.refreshQueue().catch(() => {});

/** Keeps what depends on the browser: the hash, the network, the time. */
export function watchBrowser(isOnline: { value: boolean }): void {
  const fromHash = () => select(idIn(location.hash));
  addEventListener("hashchange", fromHash);
  const back = () => {
    isOnline.value = navigator.onLine;
    if (document.visibilityState === "visible" && navigator.onLine) reconnectNow();
  };
  for (const type of ["online", "offline"]) addEventListener(type, back);
  document.addEventListener("visibilitychange", back);
  setInterval(() => {
    const isCounting = view.value?.connection.status === "waiting" || view.value?.task?.retry !== undefined;
    if (isCounting || Date.now() - now.value > 30_000) now.value = Date.now();
  }, 500);
  fromHash();
}

function idIn(hash: string): string | null {
  if (hash.length <= 1) return null;
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1); // typed by hand; no Session has such an id, which is said as of any other
  }
}
