// Compaction in a Session: within a Task, and alone, when a client asks for it. Alone it has the Session as a Task has
// it: one at a time, with a place of the process, ended by an abort.

import type { LLMClient } from "../engine/ports.js";
import type { TaskDeps } from "../engine/run.js";
import { emptyTokenCounts } from "../protocol/builders.js";
import { ok, type Result, refuse } from "../result.js";
import type { RetryWait } from "./retry-wait.js";
import type { RunningTask } from "./running-task.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";
import type { SessionRefusal } from "./types.js";

type Deps = Pick<TaskRunnerDeps, "session" | "record" | "announce">;

/** How this Task compacts. */
export function compactionOf(task: RunningTask, { session, announce }: Deps): TaskDeps["compaction"] {
  const model = session.model();
  return {
    settings: session.compaction,
    contextWindow: model.ok ? model.value.contextWindow : 0,
    record: async (messages) => {
      await session.journal.record(messages);
      announce();
    },
    onCompacting: (isCompacting) => {
      task.isCompacting = isCompacting;
      announce();
    },
    onFailed: session.onCompactionFailed,
  };
}

/** Looks whether there is something to compact and a model for it. */
export function checkCompaction({ session }: Pick<Deps, "session">): Result<LLMClient, SessionRefusal> {
  const { journal } = session;
  if (journal.context.size.turns === 0 || journal.meta === undefined) {
    return refuse("nothing_to_compact", "the model has said nothing since the context began");
  }
  const model = session.model();
  if (model.ok) return ok(model.value.llm);
  return session.compaction.mode === "discard" ? ok(SILENT) : model;
}

/** Discarding asks no model. */
const SILENT: LLMClient = {
  // biome-ignore lint/correctness/useYield: it says nothing
  async *stream() {
    return { status: "failed", usage: emptyTokenCounts() };
  },
};

/**
 * Compacts in place of a Task. Never rejects.
 * @param onBegun called once it is on record that it has begun
 */
export async function compactAlone(
  task: RunningTask,
  llm: LLMClient,
  deps: Deps & { wait: RetryWait },
  onBegun: () => void,
): Promise<void> {
  const { session, record, announce, wait } = deps;
  const { journal } = session;
  task.isCompacting = true;
  announce();
  try {
    // After a disk that refused, the last Task still owes its closing records.
    await journal.closeUnfinished("failed");
    await task.compact({
      ...session,
      sessionId: record().sessionId,
      llm,
      thinkingLevel: record().thinkingLevel,
      waitToRetry: wait.wait,
      ...compactionOf(task, deps),
      // It has the Session to its end: nobody reads `idle` while a prompt would be refused.
      onCompacting: () => {},
      emit: async (batch) => {
        await journal.commit(batch);
        onBegun();
      },
    });
  } catch (error) {
    session.onFault(error);
    await journal.closeUnfinished("failed").catch(() => {}); // The same disk; it is tried again before the next Prompt.
  }
}
