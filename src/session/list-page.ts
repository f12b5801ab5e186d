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
  records: readonly SessionRecord[],
  { limit, cursor, archived, parent }: ListQuery,
  owner: Owner,
): { records: SessionRecord[]; nextCursor?: string } | undefined {
  const after = cursor === undefined ? undefined : readCursor(cursor);
  if (cursor !== undefined && after === undefined) return undefined;
  const wanted = records
    .filter((record) => record.owner === owner && (archived || !record.archived))
    .filter((record) => record.parentSessionId === parent)
    .filter((record) => after === undefined || newestFirst(after, record) < 0)
    .sort(newestFirst);
  const page = wanted.slice(0, limit);
  const last = page[page.length - 1];
  return wanted.length > page.length && last !== undefined
    ? { records: page, nextCursor: writeCursor(last) }
    : { records: page };
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
