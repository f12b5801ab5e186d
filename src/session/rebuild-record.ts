// The records of all Sessions at start; that of one whose own is missing or broken is made of its Trace.

import { isSessionMeta } from "../protocol/guards.js";
import type { SessionProcess } from "./process.js";
import { recordFromMeta, type SessionRecord } from "./session-record.js";

/** Opens no Trace but where there is no record. */
export async function recordsOnDisk(shared: SessionProcess): Promise<SessionRecord[]> {
  const ids = await shared.traces.list();
  const records = await shared.records.readAll(ids);
  const found: SessionRecord[] = [];
  for (const [index, id] of ids.entries()) {
    const record = records[index] ?? (await rebuildRecord(shared, id));
    if (record !== undefined) found.push(record);
  }
  return found;
}

/** @returns undefined when the Trace does not tell what Session it is of; that is logged where it is a fault. */
async function rebuildRecord(shared: SessionProcess, sessionId: string): Promise<SessionRecord | undefined> {
  try {
    const trace = await shared.traces.open(sessionId);
    if (trace === undefined) return undefined;
    const first = await firstOf(trace.read({ from: 0, to: 1 }));
    const meta = await firstOf(trace.read({ from: trace.contextStart, to: trace.contextStart + 1 }));
    const last = await firstOf(trace.read({ from: trace.count - 1 }));
    if (first === undefined || meta === undefined || !isSessionMeta(meta.message)) return undefined;
    const lastActiveAt = last?.message.timestamp ?? first.message.timestamp;
    const record = recordFromMeta(meta.message.payload, {
      sessionId,
      createdAt: first.message.timestamp,
      lastActiveAt,
      workspacesFolder: shared.workspacesFolder,
    });
    // The last epoch went with the record; the Channel was alive when the last message was written.
    return { ...record, epoch: Math.max(0, Date.parse(lastActiveAt) || 0) };
  } catch (error) {
    shared.log.error({ err: error, sessionId }, "a Session without a record could not be read from its Trace");
    return undefined;
  }
}

async function firstOf<T>(batches: AsyncIterable<readonly T[]>): Promise<T | undefined> {
  for await (const batch of batches) return batch[0];
  return undefined;
}
