// What is being written, for each Session its own: text, files, and the key under which the prompt is sent. What was
// begun in one Session is never sent to another.

import { type Attachment, attachments, draft, selectedId } from "./state.js";
import { newKey } from "./tab-locks.js";

interface Draft {
  text: string;
  files: readonly Attachment[];
  /** Another text is another prompt. Empty until it is sent for the first time. */
  key: string;
}

const EMPTY: Draft = { text: "", files: [], key: "" };
/** Those of the Sessions that are not looked at; null is the one that is yet to be made. */
const kept = new Map<string | null, Draft>();
let key = "";

export const setDraft = (text: string): void => {
  draft.value = text;
  key = "";
};

export const setAttachments = (files: readonly Attachment[]): void => {
  attachments.value = files;
  key = "";
};

/** The key of what is written now: the same until another word of it is. */
export const promptKey = (): string => {
  key ||= newKey();
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
};

/** The Session that was made for it is gone again: it is for the next one, before what was begun for that meanwhile. */
export function draftIsForNext(from: string): void {
  const mine = kept.get(from) ?? EMPTY;
  const isShown = selectedId.value === null;
  const other = isShown ? { text: draft.value, files: attachments.value } : (kept.get(null) ?? EMPTY);
  kept.delete(from);
  // The key would bring back the Session that is gone, so it is another prompt.
  const text = [mine.text, other.text].filter((each) => each !== "").join("\n\n");
  const next: Draft = { text, files: [...mine.files, ...other.files], key: "" };
  if (isShown) show(next);
  else if (text !== "" || next.files.length > 0) kept.set(null, next);
}

/** It was sent. */
export function dropDraft(of: string | null): void {
  if (selectedId.value !== of) kept.delete(of);
  else {
    setDraft("");
    attachments.value = [];
  }
}
