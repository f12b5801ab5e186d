// Room in memory: idle Sessions are unloaded, the least recently used first.

import type { ChannelPosition } from "./load.js";
import type { Session } from "./session.js";

/** A Session that was asked for less than this ago is in use: whoever found it may not have called it yet. */
const IN_USE_MS = 1_000;

/** A Session as its host keeps it. */
export interface Held {
  /** In memory, or on its way there. */
  loading?: Promise<Session>;
  session?: Session;
  position?: ChannelPosition;
  usedAt: number;
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
export function makeRoom(entries: Iterable<Held>, limit: number, creating: number, now: number): number {
  const all = [...entries];
  let held = creating + all.filter(({ loading }) => loading !== undefined).length;
  for (const entry of all) {
    if (held <= limit) break;
    if (entry.session?.isIdle !== true || entry.usedAt > now - IN_USE_MS) continue;
    entry.position = entry.session.unload();
    delete entry.session;
    delete entry.loading;
    held -= 1;
  }
  return held;
}
