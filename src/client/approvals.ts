// Which approvals are open, for a view. A connection begins with all that are; what was open before is shown until that
// list is whole, so that nobody loses the reason that is being typed.

import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import { childOf } from "./children.js";
import type { Snapshot, View, ViewMessage } from "./view-types.js";
import type { Approval, Session, TaskState } from "./wire.js";

type Approvals = Pick<View, "approvals" | "snapshot">;

const callIdOf = ({ toolCall }: Approval): string => toolCall.payload.tool_call_id;
const isSame = (a: Approval, b: Approval): boolean => a.sessionId === b.sessionId && callIdOf(a) === callIdOf(b);

/** What a `task_state` says of them: the first of a connection begins the list anew. */
export function counted(view: View, { pendingApprovals }: TaskState): Approvals {
  if (pendingApprovals === 0) return { approvals: none(view.approvals), snapshot: TAKEN };
  if (view.snapshot.step !== "due") return settled(view);
  return { approvals: view.approvals, snapshot: { step: "listing", left: pendingApprovals, listed: [] } };
}

/** One that is open. */
export function requested(view: View, approval: Approval): Approvals {
  const known = view.approvals.find((each) => isSame(each, approval)) ?? approval;
  const isOpen = !isDecided(messagesOf(view, approval.sessionId), approval);
  if (view.snapshot.step !== "listing") {
    if (!isOpen || view.approvals.includes(known)) return view;
    return { approvals: [...view.approvals, known], snapshot: view.snapshot };
  }
  const listed = isOpen ? [...view.snapshot.listed, known] : view.snapshot.listed;
  const left = view.snapshot.left - 1;
  if (left <= 0) return { approvals: listed, snapshot: TAKEN };
  return { approvals: view.approvals, snapshot: { step: "listing", left, listed } };
}

/** The snapshot is over: what it did not list is not open. */
export function settled(view: View): Approvals {
  if (view.snapshot.step !== "listing") return view;
  return { approvals: view.snapshot.listed, snapshot: TAKEN };
}

/** What a decision leaves. */
export function withoutDecided(view: View, message: OmniMessage): readonly Approval[] {
  if (!isPayload(message, "approval_decision") || view.approvals.length === 0) return view.approvals;
  const sessionId = message.origin?.at(-1) ?? view.sessionId;
  const left = view.approvals.filter(
    (each) => each.sessionId !== sessionId || callIdOf(each) !== message.payload.tool_call_id,
  );
  return left.length === view.approvals.length ? view.approvals : left;
}

/** Those that these messages do not decide, of the Session's own. */
export function undecided(view: View, messages: readonly ViewMessage[]): readonly Approval[] {
  return view.approvals.filter((each) => each.sessionId !== view.sessionId || !isDecided(messages, each));
}

/** How a Session stands that is looked at from time to time. */
export function standing(view: View, session: Session, approvals: readonly Approval[]): Approvals & Pick<View, "task"> {
  const { state, queued, pendingApprovals } = session;
  return {
    approvals: approvals.map((approval) => view.approvals.find((each) => isSame(each, approval)) ?? approval),
    snapshot: view.snapshot,
    task: { state, queued, pendingApprovals, records: view.confirmed },
  };
}

const TAKEN: Snapshot = { step: "taken" };
const none = (approvals: readonly Approval[]): readonly Approval[] => (approvals.length === 0 ? approvals : []);

function messagesOf(view: View, sessionId: string): readonly ViewMessage[] {
  if (sessionId === view.sessionId) return view.messages;
  const child = childOf(view, sessionId);
  return child === undefined ? [] : [...child.before, ...child.since];
}

function isDecided(messages: readonly ViewMessage[], approval: Approval): boolean {
  return messages.some(
    ({ message }) => isPayload(message, "approval_decision") && message.payload.tool_call_id === callIdOf(approval),
  );
}
