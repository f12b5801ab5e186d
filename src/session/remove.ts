// What goes with a deleted Session besides its folder, and what an earlier process did not come to removing.

import { realpath, rm } from "node:fs/promises";
import { basename, join, sep } from "node:path";
import { errnoOf } from "../trace/storage-error.js";
import { isDirectory } from "./load.js";
import type { SessionProcess } from "./process.js";
import type { SessionRecord } from "./session-record.js";

type Owned = Pick<SessionRecord, "sessionId" | "workspace" | "ownsWorkspace">;
type Other = Pick<SessionRecord, "workspace">;

/**
 * Removes a temporary Workspace with the last of the Session that it was made for and its forks, unless another Session
 * works in it or below it. A folder that a client named is never touched, whatever the record says. Never rejects.
 */
export async function removeWorkspace(shared: SessionProcess, removed: Owned, others: readonly Other[]): Promise<void> {
  const own = join(shared.workspacesFolder, basename(removed.workspace));
  if (!removed.ownsWorkspace || removed.workspace !== own) return;
  try {
    // The Session that it was made for is there, though perhaps its record cannot be read today.
    if (await isDirectory(shared.traces.folder(basename(own)))) return;
    const real = await realpath(own);
    const inUse = await Promise.all(others.map((other) => isWithin(other.workspace, real)));
    // Retries: a command that is just being killed may still put a file into it.
    if (!inUse.includes(true)) await rm(own, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 });
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return;
    shared.log.warn({ err: error, sessionId: removed.sessionId }, "a temporary Workspace could not be removed");
  }
}

/**
 * Removes what earlier processes left of Sessions that they were making or deleting when they ended, Workspaces first.
 * Never rejects. @param others the Sessions that there are; undefined when it is time to stop
 */
export async function sweepLeftovers(
  shared: SessionProcess,
  others: () => readonly Other[] | undefined,
): Promise<void> {
  try {
    for await (const { sessionId, folder } of shared.traces.sweep()) {
      // One that was still to be written tells nothing of a Workspace but the one that was made with it.
      const own = { sessionId, workspace: join(shared.workspacesFolder, sessionId), ownsWorkspace: true };
      const left = (await shared.records.readIn(folder, sessionId)) ?? own;
      const there = others();
      if (there === undefined) return;
      await removeWorkspace(shared, left, there);
    }
  } catch (error) {
    shared.log.warn({ err: error }, "what an earlier process left could not be removed");
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
