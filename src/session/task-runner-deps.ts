// What those who bring a Task about need of the Session that it runs in.

import type { PendingApprovals } from "./pending-approvals.js";
import type { SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import type { TaskLedger } from "./task-ledger.js";

export interface TaskRunnerDeps {
  session: SessionDeps;
  ledger: TaskLedger;
  approvals: PendingApprovals;
  record(): SessionRecord;
  /** Writes the Session record, the ledger in it. Rejects when it cannot be written. */
  save(): Promise<void>;
  /** Something happened in the Session: its last activity is now. */
  touch(): void;
  /** True once the Session was deleted. */
  isRemoved(): boolean;
  /** Tells the readers how things stand; `endedTaskId` is over at this place. */
  announce(endedTaskId?: string): void;
  /** What the readers are told from here on is of this Task. */
  begins(taskId: string): void;
  /** Tells the readers that a tool lives whose output is held back. */
  progress(event: object): void;
}
