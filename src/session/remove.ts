// What goes with a deleted Session besides its folder.

import { realpath, rm } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import type { SessionProcess } from "./process.js";
import type { SessionRecord } from "./session-record.js";

/**
 * Removes a temporary Workspace with the last of the Session that it was made for and its forks, unless another Session
 * works in it or below it. A folder that a client named is never touched, whatever the record says.
 */
export async function removeWorkspace(
  process: SessionProcess,
  removed: SessionRecord,
  others: readonly Pick<SessionRecord, "workspace">[],
): Promise<void> {
  const own = join(process.workspacesFolder, basename(removed.workspace));
  if (!removed.ownsWorkspace || removed.workspace !== own) return;
  try {
    const real = await realpath(own);
    const inUse = await Promise.all(others.map((other) => isWithin(other.workspace, real)));
    if (!inUse.includes(true)) await rm(own, { recursive: true, force: true });
  } catch (error) {
    process.log.warn({ err: error, sessionId: removed.sessionId }, "a temporary Workspace could not be removed");
  }
}

async function isWithin(path: string, folder: string): Promise<boolean> {
  try {
    const real = await realpath(path);
    return real === folder || real.startsWith(folder + sep);
  } catch {
    // Not there (any more): nobody works in it.
    return false;
  }
}
