// How all Sessions of the process stand, in numbers.

import type { Figures } from "./process.js";
import type { Held } from "./room.js";

/** @param running Tasks that have a place of their own */
export function figuresOf(entries: ReadonlyMap<string, Held>, running: number): Figures {
  const states = { idle: 0, running: 0, compacting: 0, unloaded: 0 };
  const figures: Figures = {
    sessions: entries.size,
    inMemory: 0,
    running,
    children: 0,
    pendingApprovals: 0,
    oldestApprovalAt: undefined,
    states,
  };
  for (const { session } of entries.values()) {
    if (session === undefined) {
      states.unloaded += 1;
      continue;
    }
    figures.inMemory += 1;
    states[session.state] += 1;
    figures.children += session.childrenAtWork;
    for (const { origin, requestedAt } of session.approvals()) {
      // A child's are the child's.
      if (origin !== undefined) continue;
      figures.pendingApprovals += 1;
      figures.oldestApprovalAt = Math.min(
        figures.oldestApprovalAt ?? Number.POSITIVE_INFINITY,
        Date.parse(requestedAt),
      );
    }
  }
  return figures;
}
