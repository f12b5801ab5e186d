// Where a page of the list of Sessions ends: the last activity and the id, so that a page goes on in the same place
// whatever was made or removed meanwhile.

import type { SessionRecord } from "./session-record.js";

type Position = Pick<SessionRecord, "lastActiveAt" | "sessionId">;

/** Orders Sessions for a list: the newest activity first. */
export function newestFirst(a: Position, b: Position): number {
  if (a.lastActiveAt !== b.lastActiveAt) return a.lastActiveAt < b.lastActiveAt ? 1 : -1;
  return a.sessionId < b.sessionId ? 1 : a.sessionId > b.sessionId ? -1 : 0;
}

/** The cursor of the page after this Session. */
export const writeCursor = ({ lastActiveAt, sessionId }: Position): string =>
  Buffer.from(JSON.stringify([lastActiveAt, sessionId])).toString("base64url");

/** @returns undefined when it is not a cursor of ours. */
export function readCursor(cursor: string): Position | undefined {
  try {
    const [lastActiveAt, sessionId] = JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[];
    return typeof lastActiveAt === "string" && typeof sessionId === "string" ? { lastActiveAt, sessionId } : undefined;
  } catch {
    // Whatever it was, it was not ours.
    return undefined;
  }
}
