// The beginning of a Task on record, in two writes: that it is about to start, then its Prompt. The ordinal in the first
// tells a restart whether the second was done.

import type { ThinkingLevel } from "../engine/ports.js";
import { acceptedMessages } from "./input.js";
import type { Waiting } from "./task-ledger.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";
import type { Input } from "./types.js";

/** A waiting Task was taken back while it was about to start. */
export class Recalled extends Error {}

export interface Start {
  taskId: string;
  input: Input;
  thinkingLevel?: ThinkingLevel | undefined;
  hasKey?: true | undefined;
  /** Where it waited until now. */
  item?: Waiting;
}

/** What was said into an earlier Task that then ended by itself goes before the new Prompt. */
async function recordCarried({ session, ledger }: Pick<TaskRunnerDeps, "session" | "ledger">): Promise<void> {
  const items = ledger.takeCarried();
  if (items.length === 0) return;
  try {
    const at = session.clock.iso();
    await session.journal.record(items.flatMap(({ input, itemId }) => acceptedMessages(input, at, itemId)));
  } catch (error) {
    ledger.putBack(items);
    throw error;
  }
}

/**
 * @throws Recalled when the item does not wait any more; otherwise what the disk says: the ledger may then hold the
 * beginning, which `unbegin` takes back.
 */
export async function recordStart(deps: Omit<TaskRunnerDeps, "approvals">, start: Start): Promise<void> {
  const { session, ledger, save } = deps;
  const { taskId, input, thinkingLevel, hasKey, item } = start;
  const { journal } = session;
  // After a disk that refused, the last Task still owes its closing records.
  await journal.closeUnfinished("failed");
  await recordCarried(deps);
  if (item !== undefined && ledger.remove(item.itemId) === undefined) throw new Recalled();
  const startedAt = session.clock.iso();
  ledger.begin({
    taskId,
    startedAt,
    ordinal: journal.records,
    ...(thinkingLevel === undefined ? {} : { thinkingLevel }),
    ...(hasKey === undefined ? {} : { hasKey }),
    ...(item === undefined ? {} : { item }),
  });
  await save();
  await journal.record(acceptedMessages(input, startedAt));
}
