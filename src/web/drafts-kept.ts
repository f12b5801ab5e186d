// Drafts over a reload: texts, bounded, and the key of each where it is the same prompt then. Files are too large to be
// kept, and without them it is another one.

export interface KeptDraft {
  /** Null: for the Session that is yet to be made. */
  readonly of: string | null;
  readonly text: string;
  readonly key: string;
}

const MOST_DRAFTS = 50;
/** Of all together; a browser gives a tab five million at most. */
const MOST_CHARACTERS = 200_000;

/** Those that are kept, of a list with the latest at the end. */
export function draftsToKeep(drafts: readonly KeptDraft[]): KeptDraft[] {
  const kept: KeptDraft[] = [];
  let left = MOST_CHARACTERS;
  for (const draft of [...drafts].reverse()) {
    if (draft.text === "" || draft.text.length > left) continue;
    if (kept.length === MOST_DRAFTS) break;
    left -= draft.text.length;
    kept.push(draft);
  }
  return kept.reverse();
}

/** What was kept, as far as it can be read. */
export function readDrafts(value: unknown): KeptDraft[] {
  if (!Array.isArray(value)) return [];
  return value.filter(
    (each): each is KeptDraft =>
      typeof each === "object" &&
      each !== null &&
      (each.of === null || typeof each.of === "string") &&
      typeof each.text === "string" &&
      typeof each.key === "string",
  );
}
