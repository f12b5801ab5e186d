// What goes with a deleted Session besides its folder.

import { rm } from "node:fs/promises";
import type { SessionProcess } from "./process.js";
import type { SessionRecord } from "./session-record.js";

/** Removes a temporary Workspace that no other Session uses; one that a client named is never touched. */
export async function removeWorkspace(
  process: SessionProcess,
  removed: SessionRecord,
  others: readonly SessionRecord[],
): Promise<void> {
  if (!removed.ownsWorkspace || others.some((other) => other.workspace === removed.workspace)) return;
  try {
    await rm(removed.workspace, { recursive: true, force: true });
  } catch (error) {
    process.log.warn({ err: error, sessionId: removed.sessionId }, "a temporary Workspace could not be removed");
  }
}
