// A page of history that fits the stream without a seam: the cursor, the open fragments and the number of records are
// taken in one tick, then exactly those records are read, whatever is appended meanwhile.
//
// They are read as they are taken: of a history as long as the disk, the memory holds one batch, and of a long record a piece.

import type { Channel } from "../channel/channel.js";
import type { Trace } from "../trace/trace-store.js";
import type { Journal } from "./journal.js";
import type { HistoryPage, HistoryQuery } from "./types.js";

export interface HistoryDeps {
  journal: Journal;
  channel: Channel;
  trace: Pick<Trace, "readStored">;
  /** How many records of each child the Channel's position includes. */
  children: Record<string, number> | undefined;
}

export function readHistory(
  { journal, channel, trace, children }: HistoryDeps,
  query: HistoryQuery,
  gone?: AbortSignal,
): HistoryPage {
  const fragments = journal.fragments.fragments();
  const range = rangeOf(query, journal.records, journal.contextStart);
  return {
    records: trace.readStored(range, gone),
    cursor: channel.headId,
    ...(fragments.length > 0 ? { live: { fragments } } : {}),
    ...(children === undefined ? {} : { children }),
    ...(range.from > range.floor && range.from < range.to ? { nextBefore: range.from } : {}),
  };
}

/** The ordinals a query asks for; `floor` is the oldest that it could reach. */
function rangeOf(
  query: HistoryQuery,
  count: number,
  contextStart: number,
): { from: number; to: number; floor: number } {
  const floor = Math.max(
    query.context === "current" ? contextStart : 0,
    query.after === undefined ? 0 : query.after + 1,
  );
  const to = Math.min(count, query.before ?? count);
  const from = query.limit === undefined ? floor : Math.max(floor, to - query.limit);
  return { from: Math.min(from, to), to, floor };
}
