// What a client may change about a Session, and what follows from it.

import type { Environment } from "../engine/ports.js";
import { unreachable } from "../result.js";
import type { SessionRecord } from "./session-record.js";
import type { ApprovalMode, PatchSession } from "./types.js";

/** Whether a person is asked before this tool runs. */
export function asksAbout(toolName: string, mode: ApprovalMode, environment: Pick<Environment, "mayWrite">): boolean {
  switch (mode) {
    case "allow-all":
      return false;
    case "read-only":
      return environment.mayWrite(toolName);
    case "always-ask":
      return true;
    default:
      return unreachable(mode);
  }
}

/** The record without a change that could not be written, where nothing newer stands in its place. */
export function takeBack(record: SessionRecord, change: PatchSession, before: SessionRecord): SessionRecord {
  let kept = record;
  for (const key of Object.keys(change) as (keyof PatchSession)[]) {
    if (record[key] === change[key]) kept = { ...kept, [key]: before[key] };
  }
  return kept;
}
