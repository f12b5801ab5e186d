// Room in memory: idle Sessions are unloaded, the least recently used first.

import type { ChannelPosition } from "./load.js";
import type { Session } from "./session.js";
import type { SessionRecord } from "./session-record.js";

/** Idle Sessions that stay in memory where no cap is set; above it the least recently used ones are unloaded. */
export const KEPT_IN_MEMORY = 500;

/** A Session as its host keeps it. */
export interface Held {
  /** What is listed, and what the Session is loaded with when it comes back. */
  record: SessionRecord;
  /** In memory, or on its way there. */
  loading?: Promise<Session>;
  session?: Session;
  position?: ChannelPosition;
  /** Calls that are at work with it: a call awaits this and that before the Session itself knows of it. */
  users: number;
}

/** One call fewer is at work with it. */
export function letGo(entry: Held | undefined): void {
  if (entry !== undefined) entry.users -= 1;
}

/** Puts the Session last in the map's order, which is that of use. */
export function usedLast<Entry>(entries: Map<string, Entry>, id: string): void {
  const entry = entries.get(id);
  if (entry === undefined) return;
  entries.delete(id);
  entries.set(id, entry);
}

/**
 * Unloads until `limit` Sessions are in memory.
 * @param entries in the order of their use, the last one last @param creating Sessions that are not among them yet
 * @returns how many are in memory now.
 */
export function makeRoom(entries: Iterable<Held>, limit: number, creating: number): number {
  const all = [...entries];
  let held = creating + all.filter(({ loading }) => loading !== undefined).length;
  for (const entry of all) {
    if (held <= limit) break;
    if (entry.users > 0 || entry.session?.isIdle !== true) continue;
    entry.position = entry.session.unload();
    // Not everything that is on record was announced.
    entry.record = entry.session.record;
    delete entry.session;
    delete entry.loading;
    held -= 1;
  }
  return held;
}
