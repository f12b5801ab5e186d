// What of a view was not shown before, in order. Views may be skipped: the next one has it all.

import type { ChildView, OmniMessage, View, ViewMessage } from "../client/index.js";
import { isPayload } from "../client/index.js";

export class Unseen {
  readonly #seen = new Set<string>();
  /** Of each child whose first records were still to be read when it was skipped: how many of them those are. */
  readonly #unread = new Map<string, number>();
  /** Below this ordinal everything was seen, or is not to be. */
  #from = 0;

  /** The first ordinal that is to be looked at. */
  get from(): number {
    return this.#from;
  }

  /** Counts as seen what is there, but for the last `keep` messages of the Session itself. */
  skip(view: View, keep = 0): void {
    const end = Math.max(0, view.messages.length - keep);
    for (const { key } of view.messages.slice(0, end)) this.#seen.add(key);
    for (const [id, child] of Object.entries(view.children)) {
      for (const { key } of childOf(child)) this.#seen.add(key);
      if (!child.isRead) this.#unread.set(id, child.count);
    }
    this.#from = view.first;
  }

  /** The messages that come now: those of a child with its chain, where the Session says that it begins. */
  *take(view: View): Generator<ViewMessage, void, void> {
    if (!isWhole(view)) return;
    // A child that was announced before goes on before what its parent says about its end.
    const announced = new Set(Object.keys(view.children));
    const fresh = view.messages.slice(Math.max(0, this.#from - view.first)).filter(({ key }) => !this.#seen.has(key));
    for (const { message } of fresh) if (isPayload(message, "subagent")) announced.delete(message.payload.session_id);
    for (const id of announced) yield* this.#ofChild(view, id);
    for (const entry of fresh) {
      this.#seen.add(entry.key);
      yield entry;
      if (isPayload(entry.message, "subagent")) yield* this.#ofChild(view, entry.message.payload.session_id);
    }
    // What is confirmed and was seen is not looked at again; a Trace-only record may still come behind it.
    this.#from = Math.max(this.#from, view.confirmed);
  }

  *#ofChild(view: View, id: string): Generator<ViewMessage, void, void> {
    const child = Object.hasOwn(view.children, id) ? view.children[id] : undefined;
    if (child === undefined) return;
    const skipped = this.#unread.get(id);
    if (skipped !== undefined && child.isRead) {
      for (const { key } of child.before.slice(0, skipped)) this.#seen.add(key);
      this.#unread.delete(id);
    }
    for (const { key, message } of childOf(child)) {
      if (this.#seen.has(key)) continue;
      this.#seen.add(key);
      yield { key, message: { ...message, origin: message.origin ?? [id] } as OmniMessage };
    }
  }
}

/** False while records are on their way that belong before others: what is shown now would be out of order. */
export const isWhole = ({ gap, stale, children }: View): boolean =>
  gap === null && stale === null && !Object.values(children).some(({ isBehind }) => isBehind);

/** What is there of a child, or of the Session itself. A child's id may be any word. */
export function messagesOf({ messages, children }: View, child: string | undefined): readonly ViewMessage[] {
  if (child === undefined) return messages;
  return Object.hasOwn(children, child) ? childOf(children[child] as ChildView) : [];
}

const childOf = ({ before, since }: ChildView): readonly ViewMessage[] => [...before, ...since];
