// Which Session is whose child, and what the children have used. A parent counts the usage of each child once: that of
// the child while it is there, what the parent's record kept of it afterwards.

import type { SessionProcess } from "./process.js";
import type { SessionRecord } from "./session-record.js";
import { recordView } from "./session-view.js";
import type { SessionView, Usage } from "./types.js";
import { addUsage } from "./usage.js";

/** A Session as its host keeps it. */
export interface Member {
  record: SessionRecord;
  /** In memory, or on its way there. */
  loading?: Promise<{ keepChildUsage(): Promise<void> }>;
  /** Only while it is in memory. */
  session?: { readonly ownUsage: Usage };
}

type Stores = Pick<SessionProcess, "records" | "log">;

export class Family {
  /** By parent, then by child. A child stays until nothing of it is left. */
  readonly #children = new Map<string, Map<string, Member>>();

  constructor(members: Iterable<Member>) {
    for (const member of members) this.add(member);
  }

  add(member: Member): void {
    const { sessionId, parentSessionId } = member.record;
    if (parentSessionId === undefined) return;
    const siblings = this.#children.get(parentSessionId);
    if (siblings === undefined) this.#children.set(parentSessionId, new Map([[sessionId, member]]));
    else siblings.set(sessionId, member);
  }

  childrenOf(parentId: string): string[] {
    return [...(this.#children.get(parentId)?.keys() ?? [])];
  }

  /** What each child has used that is there. */
  usageByChild(parentId: string): Record<string, Usage> {
    const children = [...(this.#children.get(parentId) ?? [])];
    return Object.fromEntries(children.map(([id, { session, record }]) => [id, session?.ownUsage ?? record.usage]));
  }

  /** A Session that is not in memory. */
  view(record: SessionRecord): SessionView {
    return { ...recordView(record), usage: addUsage([record.usage, ...Object.values(this.#lastKnown(record))]) };
  }

  /** A Session is about to go for good: what it used stays on the record of its parent, if there is one. Never rejects. */
  async remove({ record }: Member, parent: Member | undefined, { records, log }: Stores): Promise<void> {
    this.#children.delete(record.sessionId);
    if (record.parentSessionId === undefined) return;
    try {
      const session = await parent?.loading?.catch(() => undefined);
      if (session !== undefined) await session.keepChildUsage();
      else if (parent !== undefined) {
        parent.record = { ...parent.record, childUsage: this.#lastKnown(parent.record) };
        await records.write(parent.record);
      }
    } catch (error) {
      log.warn({ err: error }, "what a child used could not be kept on its parent's record");
    } finally {
      this.#children.get(record.parentSessionId)?.delete(record.sessionId);
    }
  }

  #lastKnown({ sessionId, childUsage }: SessionRecord): Record<string, Usage> {
    return { ...childUsage, ...this.usageByChild(sessionId) };
  }
}
