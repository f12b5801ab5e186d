// Steering as the engine of one Task takes it: from the ledger into the Trace, at the Task's next assembly of an input.

import type { Steering } from "../engine/run.js";
import { acceptedMessages } from "./input.js";
import type { RunningTask } from "./running-task.js";
import type { TaskRunnerDeps } from "./task-runner-deps.js";

export function steeringOf(task: RunningTask, { session, ledger, announce, save }: TaskRunnerDeps): Steering {
  return {
    take: async () => {
      await task.accepted();
      const items = ledger.takeSteering(task.taskId);
      if (items.length === 0) return false;
      try {
        const at = session.clock.iso();
        await session.journal.record(items.flatMap((item) => acceptedMessages(item.input, at, item.itemId)));
      } catch (error) {
        ledger.putBack(items);
        throw error;
      }
      announce();
      // The Trace tells of the delivery, should this not be written.
      void save().catch(session.onFault);
      return true;
    },
    end: () => {
      if (task.isAccepting || ledger.hasSteering(task.taskId)) return false;
      task.endSteering();
      return true;
    },
  };
}
