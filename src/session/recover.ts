// What an earlier process left of a Session that did not only wait for a person: closed on record.

import type { TaskRunnerDeps } from "./task-runner.js";

/** Closes what is open, and the Task that ran. A disk that refuses is reported; what is owed is written later. */
export async function closeLeftover({ session, ledger }: Pick<TaskRunnerDeps, "session" | "ledger">): Promise<void> {
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
