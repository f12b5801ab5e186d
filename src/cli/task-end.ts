// What became of a Task: the exit code of whoever waited for it, and what is still to be said.

import { isPayload, type Task, type View } from "../client/index.js";
import { EXIT_FAILED, EXIT_INTERRUPTED, EXIT_UNREACHABLE } from "../exit-codes.js";
import { interruptionOf } from "./transcript-text.js";

export interface TaskEnd {
  code: number;
  /** What the Session's own messages do not say. */
  problem?: string;
}

/** @param task undefined when its Session is gone */
export function endOf(task: Task | undefined, view: View): TaskEnd {
  if (task === undefined) {
    const wasDeleted = abortOf(view)?.reason === "session_deleted";
    return { code: wasDeleted ? EXIT_FAILED : EXIT_UNREACHABLE, problem: "the Session is gone" };
  }
  const { status, error } = task;
  if (status === "completed") return { code: 0 };
  if (status !== "aborted") {
    return { code: EXIT_FAILED, problem: `the Task ended as ${status}: ${error?.message ?? "no reason given"}` };
  }
  const abort = abortOf(view, task);
  // One that was taken out of the queue has no abort: that is a person's wish too.
  if (abort === undefined || abort.reason === "user") return { code: EXIT_INTERRUPTED };
  return {
    code: EXIT_FAILED,
    problem: `the Task ended as aborted: ${interruptionOf(abort.reason) ?? "no reason given"}`,
  };
}

/** The last abort, or that of a Task: it may not be the last where another Task has begun since. */
function abortOf(
  { messages }: View,
  { startedAt = "", endedAt }: Pick<Task, "startedAt" | "endedAt"> = {},
): { reason?: unknown } | undefined {
  for (const { message } of messages.toReversed()) {
    if (!isPayload(message, "abort") || (endedAt !== undefined && message.timestamp > endedAt)) continue;
    return message.timestamp < startedAt ? undefined : message.payload;
  }
  return undefined;
}
