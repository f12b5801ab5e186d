// What a client may change about a Session, and what follows from it.

import type { Environment } from "../engine/ports.js";
import { ok, type Result, refuse, unreachable } from "../result.js";
import type { SessionRecord } from "./session-record.js";
import { APPROVAL_MODES, type ApprovalMode, type PatchSession, type SessionRefusal } from "./types.js";

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

/** What is set at a Session that works for a parent would not hold: its parent's mode does, `inherited`. */
export function mayChange(
  { approvalMode }: PatchSession,
  inherited: ApprovalMode | undefined,
): Result<void, SessionRefusal> {
  if (inherited === undefined || approvalMode === undefined || approvalMode === inherited) return ok(undefined);
  return refuse("task_in_progress", `it works for its parent, whose approval mode holds until then: ${inherited}`);
}

/**
 * Changes on their way into the record. Whatever is written next, by whomever, holds them; they count once that is done,
 * in the order in which they came. A narrower mode alone counts at once.
 */
export class PendingChanges {
  readonly #changes = new Set<PatchSession>();

  get isEmpty(): boolean {
    return this.#changes.size === 0;
  }

  add(change: PatchSession): void {
    this.#changes.add(change);
  }

  delete(change: PatchSession): void {
    this.#changes.delete(change);
  }

  /** What is to be written. */
  applied(record: SessionRecord): SessionRecord {
    return Object.assign({}, record, ...this.#changes);
  }

  /** The mode that holds: of the recorded one and those that are being recorded, the one that asks most. */
  mode(recorded: ApprovalMode): ApprovalMode {
    const modes = [recorded, ...[...this.#changes].map(({ approvalMode }) => approvalMode)];
    return APPROVAL_MODES.find((mode) => modes.includes(mode)) ?? recorded;
  }
}
