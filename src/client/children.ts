// A child's place in a view. Its id comes from the server and may be any word, `constructor` and `__proto__` included, so
// only what the view itself holds under it counts.
//
// Some of its records are in its Trace alone: its prompt, steering, a compaction's own output. No `task_state` counts
// them here. All of them stand before a Request, so one that begins makes the child be read up to there.

import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type { ChildView, View } from "./view-types.js";

export function childOf({ children }: View, id: string): ChildView | undefined {
  return Object.hasOwn(children, id) ? children[id] : undefined;
}

export const NEW_CHILD: ChildView = { before: [], since: [], count: 0, isRead: true, isBehind: false };

/** Whether its records have to be read. */
export const isOwed = ({ isRead, isBehind }: ChildView): boolean => !isRead || isBehind;

/** Whether records may stand before this message that the stream leaves out. An abort may come before any Request. */
export const leavesBehind = (message: OmniMessage): boolean =>
  isPayload(message, "request_begin") || isPayload(message, "abort");

/** A child with one more message of the stream. */
export function withSince(child: ChildView | undefined, entry: ChildView["since"][number]): ChildView {
  const known = child ?? NEW_CHILD;
  return { ...known, since: [...known.since, entry], isBehind: known.isBehind || leavesBehind(entry.message) };
}
