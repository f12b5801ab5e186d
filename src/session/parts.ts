// What a Session is made of while it is in memory, put together: each part knows the others only by what it asks for.

import { Announcements } from "./announcements.js";
import { childRequest } from "./child-request.js";
import { Children } from "./children.js";
import { PendingApprovals } from "./pending-approvals.js";
import type { SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import { asksAbout } from "./settings.js";
import { TaskLedger } from "./task-ledger.js";
import { TaskRunner } from "./task-runner.js";
import type { ApprovalMode, ApprovalView } from "./types.js";

export interface Parts {
  ledger: TaskLedger;
  approvals: PendingApprovals;
  children: Children;
  readers: Announcements;
  runner: TaskRunner;
  /** The Session's own open approval and its children's. */
  openApprovals(): ApprovalView[];
}

/** The Session to which the parts belong. */
export interface PartsOwner {
  record(): SessionRecord;
  /** The mode that holds for the Session itself. */
  mode(): ApprovalMode;
  /** Writes the record, the ledger in it. Rejects when it cannot be written. */
  save(): Promise<void>;
  /** The Session was deleted: its record is not written any more. */
  isRemoved(): boolean;
  /** Something happened: the last activity is now. */
  touch(): void;
  /** How the Session stands has changed. */
  onChange(): void;
  /** A child is over: what it used is kept. */
  onChildEnded(): void;
}

export function assembleParts(deps: SessionDeps, owner: PartsOwner): Parts {
  const { journal, channel, clock } = deps;
  const { record } = owner;
  const ledger = new TaskLedger(record());
  const openApprovals = () => [...approvals.views, ...children.approvals];
  const mode = () => readers.inheritedMode ?? owner.mode();
  const readers: Announcements = new Announcements({
    channel,
    facts: () => ({
      state: runner.state,
      taskId: runner.taskId,
      queued: ledger.queued,
      pendingApprovals: openApprovals().length,
      records: journal.records,
      retry: runner.wait.view,
    }),
    approvals: openApprovals,
    task: (taskId) => ledger.view(taskId),
    onChange: owner.onChange,
  });
  const approvals = new PendingApprovals({
    sessionId: record().sessionId,
    clock,
    timeoutMs: deps.approvalTimeoutMs,
    asks: (toolName) => asksAbout(toolName, mode(), deps.environment),
    isDecided: (toolCallId) => journal.decidedCalls.has(toolCallId),
    asked: () => ledger.running?.asked,
    recordAsked: async (asked) => {
      ledger.asked(asked);
      await owner.save().catch(deps.onFault);
    },
    onOpen: (view) => {
      readers.state();
      readers.event({ type: "approval_request", ...view });
      runner.noteProgress();
    },
  });
  const children = new Children(
    {
      clock,
      journal,
      spawn: (task) => {
        const thinkingLevel = ledger.running?.thinkingLevel ?? record().thinkingLevel;
        return deps.children.spawn(childRequest(record(), journal.meta, task, thinkingLevel));
      },
      discard: deps.children.discard,
      approvalMode: mode,
      announce: (json) => channel.announce(json),
      onPending: () => readers.state(),
      onEnded: (childId) => {
        deps.children.letGo(childId);
        owner.onChildEnded();
      },
    },
    deps.carried,
  );
  const runner = new TaskRunner({
    session: deps,
    ledger,
    approvals,
    record,
    save: owner.save,
    touch: owner.touch,
    isRemoved: owner.isRemoved,
    announce: (endedTaskId) => readers.state(endedTaskId),
    begins: (taskId) => readers.begins(taskId),
    progress: (event) => readers.event({ type: "tool_progress", ...event }),
  });
  return { ledger, approvals, children, readers, runner, openApprovals };
}
