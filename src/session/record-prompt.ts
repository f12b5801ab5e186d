// From a client's input to a recorded Prompt: what would make the Task fail before it starts is refused here, and
// nothing is recorded then.

import type { Clock } from "../clock.js";
import type { LLMClient } from "../engine/ports.js";
import { ok, type Result, refuse } from "../result.js";
import { type InputLimits, promptMessages } from "./input.js";
import type { Journal } from "./journal.js";
import type { Input, SessionRefusal } from "./types.js";

/** The Prompt is recorded; this is what answers it. */
export interface ReadyModel {
  llm: LLMClient;
}

export async function recordPrompt(
  input: Input,
  workspace: string,
  deps: {
    clock: Clock;
    journal: Journal;
    model(): Result<{ llm: LLMClient } & InputLimits, "model_unavailable">;
    workspaceExists(): Promise<boolean>;
  },
): Promise<Result<ReadyModel, SessionRefusal>> {
  const model = deps.model();
  if (!model.ok) return model;
  const messages = promptMessages(input, deps.clock.iso(), model.value);
  if (!messages.ok) return messages;
  if (!(await deps.workspaceExists())) return refuse("workspace_missing", `the Workspace ${workspace} is not there`);
  try {
    // After a disk that refused, the last Task still owes its closing records.
    await deps.journal.closeUnfinished("failed");
    await deps.journal.record(messages.value);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return refuse("storage_failed", `the Prompt could not be recorded: ${reason}`);
  }
  return ok({ llm: model.value.llm });
}
