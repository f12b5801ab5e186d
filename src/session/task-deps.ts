// What the engine needs to run a Task of a Session.

import type { ThinkingLevel } from "../engine/ports.js";
import type { TaskDeps } from "../engine/run.js";
import { compactionOf } from "./compacting.js";
import type { RetryWait } from "./retry-wait.js";
import type { RunDeps, RunningTask } from "./running-task.js";
import { steeringOf } from "./steering.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";

/** @param thinkingLevel the Task's own; left out: the Session's */
export function taskDeps(
  task: RunningTask,
  llm: TaskDeps["llm"],
  thinkingLevel: ThinkingLevel | undefined,
  deps: TaskRunnerDeps & { wait: RetryWait },
): RunDeps {
  const { session, approvals, record, wait } = deps;
  return {
    ...session,
    sessionId: record().sessionId,
    llm,
    approver: approvals.approver,
    thinkingLevel: thinkingLevel ?? record().thinkingLevel,
    maxTurns: record().maxTurns ?? session.defaultMaxTurns,
    waitToRetry: wait.wait,
    steering: steeringOf(task, deps),
    compaction: compactionOf(task, deps),
    onProgress: deps.progress,
  };
}
