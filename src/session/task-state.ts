// The `task_state` event: how a Session stands at one place of its stream. Authoritative for every reader.

import { toLine } from "../protocol/message.js";
import type { StopReason } from "../protocol/payloads.js";
import type { SessionState, TaskView } from "./types.js";

/** A Task that waits to try its Request again. */
export interface RetryView {
  /** The number of the try that failed, from 1. */
  attempt: number;
  /** ISO 8601. */
  retryAt: string;
  status: StopReason;
}

export interface TaskStateFacts {
  state: SessionState;
  taskId: string | undefined;
  /** Tasks that wait. */
  queued: number;
  pendingApprovals: number;
  records: number;
  retry: RetryView | undefined;
  /** The Task that this very event ends, or that a late reader asked about. */
  ended: TaskView | undefined;
}

/** @returns the event as one line of JSON. */
export function taskStateEvent(facts: TaskStateFacts): string {
  const { state, taskId, queued, pendingApprovals, records, retry, ended } = facts;
  return toLine({
    type: "task_state",
    state,
    ...(taskId === undefined ? {} : { taskId }),
    queued,
    pendingApprovals,
    records,
    ...(retry === undefined ? {} : { retry }),
    ...(ended?.state === "ended"
      ? {
          ended: {
            taskId: ended.taskId,
            ...(ended.status && { status: ended.status }),
            ...(ended.error && { error: ended.error }),
          },
        }
      : {}),
  });
}

/** The tag of the `task_state` that ends a Task: a stream of that Task alone ends after it. */
export const endTag = (taskId: string): string => `ended:${taskId}`;
