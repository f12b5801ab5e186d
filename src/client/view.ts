// The View as a pure fold over the history and the stream: `reduceView` is all there is to it.
//
// Records have ordinals, stream messages have ids, and the stream leaves some records out. So messages that came by the
// stream are unconfirmed until a `task_state` counts them: if it counts more, the records since the last confirmed one
// are read and put in their place. Ids grow by one: one that was seen is dropped, a hole makes the view stale.

import { unreachable } from "../result.js";
import { standing } from "./approvals.js";
import { withChildRecords, withEarlier, withHistory, withRecords } from "./view-history.js";
import { withServerEvent, withStreamMessage } from "./view-stream.js";
import type { View, ViewAction } from "./view-types.js";

/** Before anything is known. */
export const emptyView = (sessionId: string): View => ({
  sessionId,
  session: null,
  connection: { status: "connecting" },
  messages: [],
  first: 0,
  confirmed: 0,
  nextBefore: null,
  gap: null,
  stale: null,
  fragments: [],
  children: {},
  approvals: [],
  snapshot: { step: "due" },
  progress: {},
  task: null,
  queue: [],
  usage: null,
  cursor: null,
  shutdownRetryMs: null,
});

/** @returns the next view; the same one when the action changes nothing. */
export function reduceView(view: View, action: ViewAction): View {
  switch (action.type) {
    case "history":
      return withHistory(view, action.page);
    case "earlier":
      return withEarlier(view, action.page);
    case "records":
      return withRecords(view, action.records);
    case "child_records":
      return withChildRecords(view, action.sessionId, action.records);
    case "session":
      return { ...view, session: action.session };
    case "queue":
      return view.queue.length === 0 && action.items.length === 0 ? view : { ...view, queue: action.items };
    case "standing":
      return { ...view, session: action.session, ...standing(view, action.session, action.approvals) };
    case "connected":
      return { ...view, snapshot: { step: "due" }, shutdownRetryMs: null };
    case "connection":
      return { ...view, connection: action.connection };
    case "stale":
      return view.stale === null ? { ...view, stale: action.reason } : view;
    case "message":
      return withStreamMessage(view, action.id, action.message);
    case "server_event":
      return withServerEvent(view, action.id, action.event);
    default:
      return unreachable(action);
  }
}
