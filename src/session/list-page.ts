// A page of the list of Sessions. It ends at a last activity and an id, so that the next page goes on in the same place
// whatever was made or removed meanwhile.

import type { SessionRecord } from "./session-record.js";
import type { Owner } from "./types.js";

export interface ListQuery {
  limit: number;
  cursor?: string;
  archived: boolean;
  parent?: string;
}

type Position = Pick<SessionRecord, "lastActiveAt" | "sessionId">;

/** The newest activity first. @returns undefined when the cursor is not one of ours. */
export function pageOf(
  records: Iterable<SessionRecord>,
  { limit, cursor, archived, parent }: ListQuery,
  owner: Owner,
): { records: SessionRecord[]; nextCursor?: string } | undefined {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  if (cursor !== undefined && after === undefined) return undefined;
  // One more than the page: whether another follows.
  const page = new Newest(limit + 1);
  for (const record of records) {
    if (record.owner !== owner || record.parentSessionId !== parent || (record.archived && !archived)) continue;
    if (after === undefined || newestFirst(after, record) < 0) page.offer(record);
  }
  const { found } = page;
  const last = found[limit - 1];
  return found.length > limit && last !== undefined
    ? { records: found.slice(0, limit), nextCursor: writeCursor(last) }
    : { records: found };
}

/** The newest of many: of ten thousand Sessions most are looked at once, and none is sorted that is not shown. */
class Newest {
  readonly found: SessionRecord[] = [];
  readonly #limit: number;

  constructor(limit: number) {
    this.#limit = limit;
  }

  offer(record: SessionRecord): void {
    const { found } = this;
    if (found.length === this.#limit && newestFirst(found[found.length - 1]!, record) < 0) return;
    let low = 0;
    for (let high = found.length; low < high; ) {
      const middle = (low + high) >> 1;
      if (newestFirst(found[middle]!, record) < 0) low = middle + 1;
      else high = middle;
    }
    found.splice(low, 0, record);
    if (found.length > this.#limit) found.pop();
  }
}

function newestFirst(a: Position, b: Position): number {
  if (a.lastActiveAt !== b.lastActiveAt) return a.lastActiveAt < b.lastActiveAt ? 1 : -1;
  return a.sessionId < b.sessionId ? 1 : a.sessionId > b.sessionId ? -1 : 0;
}

const writeCursor = ({ lastActiveAt, sessionId }: Position): string =>
  Buffer.from(JSON.stringify([lastActiveAt, sessionId])).toString("base64url");

function readCursor(cursor: string): Position | undefined {
  try {
    const [lastActiveAt, sessionId] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    return typeof lastActiveAt === "string" && typeof sessionId === "string" ? { lastActiveAt, sessionId } : undefined;
  } catch {
    // Whatever it was, it was not ours.
    return undefined;
  }
}

export function* recordsOf(entries: Iterable<{ record: SessionRecord }>): Iterable<SessionRecord> {
  for (const { record } of entries) yield record;
}
