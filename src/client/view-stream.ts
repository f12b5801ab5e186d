// What the stream brings takes its place in the view.

import { isPartial, isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import { counted, requested, settled, withoutDecided } from "./approvals.js";
import { childOf, withSince } from "./children.js";
import { addFragment, closeFragment, slotOf } from "./fragments.js";
import { usageOf } from "./view-history.js";
import type { Fragment, View } from "./view-types.js";
import type { ServerEvent, TaskState } from "./wire.js";

/** Takes the next message: one that was seen changes nothing, a hole makes the view stale. */
export function withStreamMessage(view: View, id: string | undefined, message: OmniMessage): View {
  if (view.stale !== null) return view;
  const step = stepOf(view.cursor, id);
  if (step === "seen") return view;
  if (step === "hole") return { ...view, stale: "hole" };
  return withMessage({ ...view, ...settled(view), cursor: id ?? null }, message, `s${id}`);
}

export function withServerEvent(view: View, id: string | undefined, event: ServerEvent): View {
  switch (event.type) {
    case "resync_required":
      return { ...view, stale: event.reason, snapshot: { step: "due" } };
    case "session_updated":
      return { ...view, session: event.session };
    case "shutdown":
      return { ...view, shutdownRetryMs: event.retryMs };
    case "task_state": {
      // The first event of a connection says where it stands.
      if (view.stale === null && id !== undefined && id !== view.cursor) return { ...view, stale: "hole" };
      const { type: _, ...task } = event;
      return withTaskState(view, task);
    }
    case "approval_request": {
      const { type: _, ...approval } = event;
      return { ...view, ...requested(view, approval) };
    }
    case "tool_progress": {
      const { toolCallId, origin, bytes, tail } = event;
      const slot = slotOf({ origin, type: "partial_tool_call_output", toolCallId });
      return { ...view, progress: { ...view.progress, [slot]: { bytes, tail } } };
    }
    default:
      // A newer server's; what it says does not concern what is known here.
      return view;
  }
}

function withTaskState(view: View, task: TaskState): View {
  const next: View = { ...view, task, session: sessionAt(view, task), ...counted(view, task), ...restOf(view, task) };
  if (view.stale !== null) return next;
  const count = view.messages.length - (view.confirmed - view.first);
  const seen = view.confirmed + count;
  if (task.records < seen) return { ...next, stale: "records" };
  if (task.records === seen) return { ...next, confirmed: seen, gap: null };
  return { ...next, gap: { from: view.confirmed, to: task.records, count } };
}

/** What is still going on: at rest, nothing is, and what a child that was cut off had open is over too. */
function restOf(view: View, { state }: TaskState): Partial<View> {
  if (state !== "idle" || view.stale !== null) return {};
  return {
    ...(view.fragments.length > 0 ? { fragments: [] } : {}),
    ...(Object.keys(view.progress).length > 0 ? { progress: {} } : {}),
  };
}

function sessionAt({ session }: View, { state, queued, pendingApprovals }: TaskState): View["session"] {
  if (session === null) return null;
  const isSame = session.state === state && session.queued === queued && session.pendingApprovals === pendingApprovals;
  return isSame ? session : { ...session, state, queued, pendingApprovals };
}

function withMessage(view: View, message: OmniMessage, key: string): View {
  if (isPartial(message)) return { ...view, fragments: addFragment(view.fragments, message, key) };
  const { closed, fragments } = closeFragment(view.fragments, message);
  const entry = { key: closed?.key ?? key, message };
  const next: View = {
    ...view,
    fragments: message.origin === undefined && isPayload(message, "abort") ? ownOf(fragments) : fragments,
    approvals: withoutDecided(view, message),
    progress: withoutOutput(view, message),
  };
  const child = message.origin?.at(-1);
  if (child === undefined) {
    return { ...next, messages: [...view.messages, entry], usage: usageOf(message) ?? view.usage };
  }
  return { ...next, children: { ...view.children, [child]: withSince(childOf(view, child), entry) } };
}

/** An abort may cut a child off: nothing of it comes after. */
const ownOf = (fragments: readonly Fragment[]) => fragments.filter(({ origin }) => origin.length === 0);

function withoutOutput(view: View, message: OmniMessage): View["progress"] {
  if (!isPayload(message, "tool_call_output")) return view.progress;
  const { origin, payload } = message;
  const slot = slotOf({ origin, type: "partial_tool_call_output", toolCallId: payload.tool_call_id });
  if (!(slot in view.progress)) return view.progress;
  const { [slot]: _, ...progress } = view.progress;
  return progress;
}

function stepOf(cursor: string | null, id: string | undefined): "next" | "seen" | "hole" {
  const [epoch, seq] = (cursor ?? "").split("-").map(Number);
  const [idEpoch, idSeq] = (id ?? "").split("-").map(Number);
  if (epoch === undefined || seq === undefined || idEpoch !== epoch || idSeq === undefined) return "hole";
  if (idSeq <= seq) return "seen";
  return idSeq === seq + 1 ? "next" : "hole";
}
