// What a prompt needs before anything of it is recorded: a model that can be used and takes this input, a Workspace.

import type { LLMClient } from "../engine/ports.js";
import { emptyTokenCounts } from "../protocol/builders.js";
import type { ErrorKind } from "../protocol/payloads.js";
import { ok, type Result, refuse } from "../result.js";
import { promptMessages } from "./input.js";
import type { SessionDeps } from "./session-deps.js";
import type { Input, SessionRefusal } from "./types.js";

type PromptDeps = Pick<SessionDeps, "clock" | "model" | "workspaceExists">;

/** Looks whether a prompt could run now. Records nothing. @returns what answers it. */
export async function checkPrompt(
  input: Input,
  workspace: string,
  deps: PromptDeps,
): Promise<Result<LLMClient, SessionRefusal>> {
  const taken = checkInput(input, deps);
  if (!taken.ok) return taken;
  if (!(await deps.workspaceExists())) return refuse("workspace_missing", `the Workspace ${workspace} is not there`);
  return taken;
}

/** Looks whether the Session's model can be used and takes this input. */
export function checkInput(input: Input, deps: Pick<PromptDeps, "clock" | "model">): Result<LLMClient, SessionRefusal> {
  const model = deps.model();
  if (!model.ok) return model;
  const messages = promptMessages(input, deps.clock.iso(), model.value);
  return messages.ok ? ok(model.value.llm) : messages;
}

/**
 * The client for a Task that was accepted earlier: the Session's model, or one whose Requests fail with what is missing
 * now, so that the Task ends with its reason on record.
 */
export async function clientForAccepted(workspace: string, deps: PromptDeps): Promise<LLMClient> {
  const model = deps.model();
  if (!model.ok) return failingClient(model.kind, model.message);
  if (!(await deps.workspaceExists())) {
    return failingClient("invalid_request", `the Workspace ${workspace} is not there`);
  }
  return model.value.llm;
}

function failingClient(kind: ErrorKind, message: string): LLMClient {
  return {
    // biome-ignore lint/correctness/useYield: it says nothing before it fails
    async *stream() {
      return { status: "failed", usage: emptyTokenCounts(), error: { kind, message, unsent: true } };
    },
  };
}
