// What an earlier process left of a Session, put in order on record: what was promised is whole, what did not only wait
// for a person is closed.

import { append } from "../append.js";
import type { OmniMessage } from "../protocol/message.js";
import { acceptedMessages } from "./input.js";
import type { Running } from "./task-ledger.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";

type Deps = Pick<TaskRunnerDeps, "session" | "ledger" | "record">;

/**
 * Closes what is open, and the Task that ran. A disk that refuses is reported; what is owed is written later.
 * @returns the Task that goes on, because it only waits for a person.
 */
export async function settleLeftover(deps: Deps): Promise<Running | undefined> {
  const { session, ledger, record } = deps;
  const { journal } = session;
  const { running } = ledger;
  const isRecorded = running !== undefined && journal.records > running.ordinal;
  if (!isRecorded) ledger.unbegin();
  try {
    await completeTorn(deps);
  } catch (error) {
    session.onFault(error);
  }
  // A child ends with its parent, also when it only waits.
  const isChild = record().parentSessionId !== undefined;
  if (isRecorded && !isChild && journal.unfinished.awaitsDecisionOnly) return running;
  await closeLeftover(deps);
  return undefined;
}

/**
 * An input of many parts is one write, which a kill may cut between two records. What waited was promised as a whole,
 * and is not waiting any more: the rest of it is recorded.
 */
async function completeTorn({ session, ledger }: Deps): Promise<void> {
  const { journal, clock } = session;
  const { running } = ledger;
  const rest: OmniMessage[] = [];
  if (running?.item !== undefined) {
    const prompt = acceptedMessages(running.item.input, running.startedAt);
    append(rest, prompt.slice(journal.records - running.ordinal));
  }
  for (const { input, itemId } of ledger.dropDelivered(journal.steering)) {
    append(rest, acceptedMessages(input, clock.iso(), itemId).slice(journal.steering.get(itemId)));
  }
  if (rest.length > 0) await journal.record(rest);
}

async function closeLeftover({ session, ledger }: Deps): Promise<void> {
  const { journal, clock } = session;
  const { running } = ledger;
  const wasOpen = journal.unfinished.isOpen;
  try {
    await journal.closeUnfinished("aborted", "server_restarted");
  } catch (error) {
    session.onFault(error);
  }
  if (running === undefined) return;
  const { status, error } = wasOpen ? { status: "aborted" as const } : journal.unfinished.lastEnd;
  ledger.end(running.taskId, clock.iso(), status, error);
}
