// A page of history that fits the stream without a seam: the cursor, the open fragments and the number of records are
// taken in one tick, then exactly those records are read, whatever is appended meanwhile.

import type { Channel } from "../channel/channel.js";
import { ok, type Result, refuse } from "../result.js";
import type { Trace } from "../trace/trace-store.js";
import type { Journal } from "./journal.js";
import type { HistoryPage, HistoryQuery } from "./types.js";

export interface HistoryDeps {
  journal: Journal;
  channel: Channel;
  trace: Pick<Trace, "read">;
  /** How many records of each child the Channel's position includes. */
  children: Record<string, number> | undefined;
}

export async function readHistory(
  { journal, channel, trace, children }: HistoryDeps,
  query: HistoryQuery,
): Promise<Result<HistoryPage, "storage_failed">> {
  const cursor = channel.headId;
  const fragments = journal.fragments.fragments();
  const range = rangeOf(query, journal.records, journal.contextStart);
  try {
    const records: HistoryPage["records"] = [];
    for await (const batch of trace.read(range)) for (const { ordinal, json } of batch) records.push({ ordinal, json });
    return ok({
      records,
      cursor,
      ...(fragments.length > 0 ? { live: { fragments } } : {}),
      ...(children === undefined ? {} : { children }),
      ...(range.from > range.floor && range.from < range.to ? { nextBefore: range.from } : {}),
    });
  } catch (error) {
    return refuse("storage_failed", `the Trace cannot be read: ${error instanceof Error ? error.message : error}`);
  }
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
