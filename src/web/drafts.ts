// What is being written, for each Session its own: text, files, and the key under which the prompt is sent. What was
// begun in one Session is never sent to another. Texts outlive a reload of the tab.

import { draftsToKeep, readDrafts } from "./drafts-kept.js";
import { bothTexts, restOf, type Written } from "./prompts.js";
import { type Attachment, attachments, draft, selectedId } from "./state.js";
import { newKey } from "./tab-locks.js";
import { recalled, remember } from "./tab-memory.js";

interface Draft extends Written {
  /** Another text is another prompt. Empty until it is sent for the first time. */
  readonly key: string;
}

const EMPTY: Draft = { text: "", files: [], key: "" };
/** Those of the Sessions that are not looked at; null is the one that is yet to be made. */
const kept = new Map<string | null, Draft>();
let key = "";

export const setDraft = (text: string): void => {
  draft.value = text;
  if (text === "" && selectedId.value === null) isOfGone = false;
  key = "";
  keepSoon();
};

export const setAttachments = (files: readonly Attachment[]): void => {
  attachments.value = files;
  key = "";
  keepSoon();
};

/** The key of what is written now: the same until another word of it is. */
export const promptKey = (): string => {
  key ||= newKey();
  // Whoever reloads while it is on its way and sends it again has sent it once.
  keep();
  return key;
};

/** Goes from what was written for one Session to what was written for another. */
export function changeDraft(from: string | null, to: string | null): void {
  if (draft.value !== "" || attachments.value.length > 0) {
    kept.set(from, { text: draft.value, files: attachments.value, key });
  }
  const next = kept.get(to) ?? EMPTY;
  kept.delete(to);
  show(next);
}

function show(next: Draft): void {
  draft.value = next.text;
  attachments.value = next.files;
  key = next.key;
}

/** The Session that was to be made is there, and what is written is for it. */
export const draftIsFor = (to: string): void => {
  kept.set(to, { text: draft.value, files: attachments.value, key });
  draft.value = "";
  attachments.value = [];
  keep();
};

/** The Session that was made for it is gone again: it is for the next one, before what was begun for that meanwhile. */
export function draftIsForNext(from: string): void {
  const mine = kept.get(from) ?? EMPTY;
  const isShown = selectedId.value === null;
  const other = isShown ? { text: draft.value, files: attachments.value } : (kept.get(null) ?? EMPTY);
  kept.delete(from);
  // The key would bring back the Session that is gone, so it is another prompt.
  const next: Draft = bothOf(mine, other);
  if (isShown) show(next);
  else if (next.text !== "" || next.files.length > 0) kept.set(null, next);
  keep();
}

const bothOf = (one: Written, other: Written): Draft => ({
  text: bothTexts(one.text, other.text),
  files: [...one.files, ...other.files],
  key: "",
});

/** Behind what is written for a Session, wherever the reader is by now. */
export function addToDraft(of: string | null, more: Written): void {
  const isShown = selectedId.value === of;
  const before = isShown ? { text: draft.value, files: attachments.value } : (kept.get(of) ?? EMPTY);
  if (isShown) show(bothOf(before, more));
  else kept.set(of, bothOf(before, more));
  keepSoon();
}

/** What is written for the next Session was meant for one that is gone. */
let isOfGone = false;

/** A Session was deleted while something was being written for it. @returns whether there is something to keep */
export function keepOfGone(from: string): boolean {
  const mine = kept.get(from);
  if (mine === undefined) return false;
  draftIsForNext(from);
  isOfGone = true;
  return true;
}

/** Says once that what is written was meant for a Session that is gone: it would begin another one. */
export function wasOfGone(): boolean {
  const was = isOfGone && selectedId.value === null;
  if (was) isOfGone = false;
  return was;
}

/** It was sent. What came to it meanwhile stays. */
export function dropDraft(of: string | null, sent: Written): void {
  if (selectedId.value === of) {
    const { text, files } = restOf({ text: draft.value, files: attachments.value }, sent);
    setDraft(text);
    attachments.value = files;
  } else {
    const rest = restOf(kept.get(of) ?? EMPTY, sent);
    if (rest.text === "" && rest.files.length === 0) kept.delete(of);
    else kept.set(of, { ...rest, key: "" });
  }
  keep();
}

/** Nobody can send it any more. */
export function forgetDraft(of: string): void {
  if (kept.delete(of)) keepSoon();
}

const SOON_MS = 300;
let timer: ReturnType<typeof setTimeout> | undefined;

function keepSoon(): void {
  timer ??= setTimeout(keep, SOON_MS);
}

function keep(): void {
  clearTimeout(timer);
  timer = undefined;
  const shown = { text: draft.value, files: attachments.value, key };
  const all = [...kept, [selectedId.value, shown] as const].map(([of, each]) => ({
    of,
    text: each.text,
    // What a Session is made of is chosen anew, and would not fit the key.
    key: of === null || each.files.length > 0 ? "" : each.key,
  }));
  const drafts = draftsToKeep(all);
  remember("drafts", drafts.length === 0 ? undefined : drafts);
}

/** Takes up what was written before the page was loaded again, and keeps what will be. */
export function keepDrafts(): void {
  for (const { of, ...written } of readDrafts(recalled("drafts"))) kept.set(of, { ...written, files: [] });
  changeDraft(null, null);
  addEventListener("pagehide", keep);
}
