// From messages and open fragments to what a reader sees, in order: outputs and decisions hang on their calls, a
// subagent's messages in a card of its own, bookkeeping is left out.
//
// The fold over the messages is kept for as long as they stay the same list, so that a fragment costs what is open and
// not what was ever said.

import {
  type Approval,
  type ChildView,
  type Fragment,
  isPayload,
  type View,
  type ViewMessage,
} from "../client/index.js";
import { type Folded, foldMessages } from "./fold.js";
import type { Item, ToolItem } from "./item-types.js";
import { nameFrom } from "./names.js";
import { type Call, newCall } from "./tool-calls.js";
import { unreachable } from "./unreachable.js";
import { visibleText } from "./visible-text.js";

/** What stands around a list of messages. `childId` is undefined for the Session's own. */
interface Surroundings {
  view: View;
  isBusy: boolean;
  childId: string | undefined;
  read: ReadChildren;
}

/** Children whose records were read by themselves: those that the stream has not carried since the server started. */
export type ReadChildren = ReadonlyMap<string, ChildView>;
const NONE: ReadChildren = new Map();

/** Everything to show of a Session, oldest first. */
export function itemsOf(view: View, read: ReadChildren = NONE): readonly Item[] {
  const isBusy = view.task !== null && view.task.state !== "idle";
  const folded = keptFold(view.messages, view.first, view.confirmed);
  const open = view.fragments.filter(({ origin }) => origin.length === 0);
  return withOpen(folded, open, { view, isBusy, childId: undefined, read });
}

const folds = new WeakMap<readonly ViewMessage[], { first: number; confirmed: number; folded: Folded }>();

function keptFold(messages: readonly ViewMessage[], first: number, confirmed: number): Folded {
  const kept = folds.get(messages);
  if (kept !== undefined && kept.first === first && kept.confirmed === confirmed) return kept.folded;
  const folded = foldMessages(messages, { first, confirmed, isChild: false });
  folds.set(messages, { first, confirmed, folded });
  return folded;
}

const childFolds = new WeakMap<ChildView, Folded>();

function childFold(child: ChildView): Folded {
  const kept = childFolds.get(child);
  if (kept !== undefined) return kept;
  const folded = foldMessages([...child.before, ...child.since], { first: 0, confirmed: 0, isChild: true });
  childFolds.set(child, folded);
  return folded;
}

function withOpen(folded: Folded, open: readonly Fragment[], around: Surroundings): readonly Item[] {
  const calls = new Map<string, Call>();
  const added: { id: string; call: Call }[] = [];
  const callOf = (id: string, key: string): Call => {
    const changed = calls.get(id);
    if (changed !== undefined) return changed;
    const known = folded.calls.get(id);
    const call = known === undefined ? newCall(id, key) : { ...known };
    calls.set(id, call);
    if (known === undefined) added.push({ id, call });
    return call;
  };
  const items: Item[] = [];
  const rest: Item[] = [];
  for (const fragment of open) addFragment(fragment, callOf, (item) => rest.push(item));
  for (const entry of folded.entries) {
    if (entry.kind === "call") items.push(toolItem(calls.get(entry.call.id) ?? entry.call, around));
    else if (entry.kind === "subagent") items.push(subagentItem(entry.key, entry.sessionId, around));
    else items.push(entry);
  }
  // A segment that is open stands behind all that is complete, in the order in which they opened.
  const byKey = new Map(added.map(({ call }) => [call.key, call]));
  for (const { key } of open) {
    const call = byKey.get(key);
    const item = call === undefined ? rest.find((each) => each.key === key) : toolItem(call, around);
    if (item !== undefined) items.push(item);
  }
  return items;
}

function addFragment(
  { type, key, content, name, toolCallId, images }: Fragment,
  callOf: (id: string, key: string) => Call,
  add: (item: Item) => void,
): void {
  switch (type) {
    case "partial_text":
      add({ kind: "text", key, text: content, open: true, stop: "", forkAt: null });
      return;
    case "partial_thinking":
      add({ kind: "thinking", key, text: content, open: true, stop: "" });
      return;
    case "partial_tool_call":
      Object.assign(callOf(toolCallId, key), { name, args: content });
      return;
    case "partial_tool_call_output":
      Object.assign(callOf(toolCallId, key), {
        output: content,
        images,
        hasOutput: content !== "" || images.length > 0,
      });
      return;
    default:
      unreachable(type);
  }
}

const settled = new WeakMap<Call, ToolItem>();

/** A call that nothing can change any more is always the same object. */
function toolItem(call: Call, around: Surroundings): ToolItem {
  const kept = settled.get(call);
  if (kept !== undefined) return kept;
  const { id, decision, isWritten, ...shown } = call;
  const progress = call.isAnswered ? undefined : progressOf(id, around);
  const item: ToolItem = {
    kind: "tool",
    callId: id,
    childId: around.childId,
    ...shown,
    state: stateOf(call, isAsked(id, around), around.isBusy),
    progressBytes: progress?.bytes ?? 0,
    progressTail: progress?.tail ?? "",
  };
  if (call.isAnswered) settled.set(call, item);
  return item;
}

function progressOf(id: string, { view, childId }: Surroundings) {
  // The chain is that of the Session's own view; only its last part tells whose call it is.
  return Object.entries(view.progress).find(([slot]) => {
    const [origin, , toolCallId] = JSON.parse(slot) as [string[], string, string];
    return toolCallId === id && origin.at(-1) === childId;
  })?.[1];
}

const isAsked = (id: string, { view, childId }: Surroundings): boolean =>
  view.approvals.some(
    ({ sessionId, toolCall }: Approval) =>
      toolCall.payload.tool_call_id === id && sessionId === (childId ?? view.sessionId),
  );

function stateOf(call: Call, asked: boolean, isBusy: boolean): ToolItem["state"] {
  if (call.decision === "deny") return call.decidedBy === "abort" ? "aborted" : "denied";
  if (call.isAnswered) {
    if (call.stop === "timeout") return "timeout";
    if (call.stop === "aborted") return "aborted";
    return call.stop === "" || call.stop === "completed" ? "done" : "failed";
  }
  if (call.isWritten && call.stop !== "") return "cut";
  if (asked) return "approval";
  if (!call.isWritten && !call.hasOutput) return "writing";
  if (call.decision === "allow" || call.hasOutput) return isBusy ? "running" : "cut";
  return isBusy ? "waiting" : "cut";
}

function subagentItem(key: string, sessionId: string, around: Surroundings): Item {
  const { children } = around.view;
  const child = Object.hasOwn(children, sessionId) ? children[sessionId] : around.read.get(sessionId);
  const open = around.view.fragments.filter(({ origin }) => origin.at(-1) === sessionId);
  const folded = child === undefined ? foldMessages([], { first: 0, confirmed: 0, isChild: true }) : childFold(child);
  const asked = askedOf(child);
  return { kind: "subagent", key, sessionId, asked, items: withOpen(folded, open, { ...around, childId: sessionId }) };
}

/** How a child's prompt begins, by which it is told from others. */
export function askedOf(child: ChildView | undefined): string {
  for (const { message } of [...(child?.before ?? []), ...(child?.since ?? [])]) {
    if (isPayload(message, "text") && message.payload.role === "user")
      return visibleText(nameFrom(message.payload.text));
  }
  return "";
}
