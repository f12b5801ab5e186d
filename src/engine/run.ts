// How a Task runs: turns until the model answers without a call. Never throws; how it ended is its outcome.

import { abort, assistantText, partialText } from "../protocol/builders.js";
import type { RequestError, StopReason, ToolDefinition } from "../protocol/payloads.js";
import type { Context } from "./context.js";
import { maxTurnsNotice } from "./engine-notes.js";
import { type Commit, MergeQueue } from "./merge-queue.js";
import type { ThinkingLevel } from "./ports.js";
import { runTurn, type TurnDeps, type TurnOutcome } from "./turn.js";

export interface TaskDeps extends Omit<TurnDeps, "emit"> {
  sessionId: string;
  systemPrompt: string;
  tools: readonly ToolDefinition[];
  thinkingLevel: ThinkingLevel;
  /** Committed Requests that one Task may take; negative for no limit. */
  maxTurns: number;
  /** The fold over what `commit` recorded. The Task's Prompt is in it. */
  context: Context;
  isCallIdTaken(toolCallId: string): boolean;
  /** The commit point: what resolves here is recorded and shown. */
  commit: Commit;
  /** Why the signal aborted; stands in the `abort` event. */
  abortReason(): string | null;
}

export interface TaskOutcome {
  status: StopReason;
  error?: RequestError;
}

/** Runs one Task to its end. The last message of an interrupted one is `abort`. */
export async function runTask(deps: TaskDeps): Promise<TaskOutcome> {
  const { emit } = new MergeQueue(deps.commit);
  const turnDeps: TurnDeps = { ...deps, emit };
  try {
    for (let turns = 0; ; turns += 1) {
      const outcome = await nextTurn(turnDeps, deps, turns);
      switch (outcome.kind) {
        case "committed":
          if (!outcome.goesOn) return { status: "completed" };
          break;
        case "limit":
          return { status: "completed" };
        case "failed":
          return outcome.error === undefined
            ? { status: outcome.status }
            : { status: outcome.status, error: outcome.error };
        case "interrupted":
          await emit([abort(deps.clock.iso(), deps.abortReason())]);
          return { status: "aborted" };
      }
    }
  } catch (error) {
    return deps.onFault(error);
  }
}

async function nextTurn(turnDeps: TurnDeps, deps: TaskDeps, turns: number): Promise<TurnOutcome | { kind: "limit" }> {
  if (deps.signal.aborted) return { kind: "interrupted" };
  if (deps.maxTurns >= 0 && turns >= deps.maxTurns) {
    const at = deps.clock.iso();
    const notice = maxTurnsNotice(deps.maxTurns);
    await turnDeps.emit([
      partialText(at, "start"),
      partialText(at, "delta", notice),
      partialText(at, "stop"),
      assistantText(at, notice),
    ]);
    return { kind: "limit" };
  }
  return runTurn(turnDeps, {
    sessionId: deps.sessionId,
    systemPrompt: deps.systemPrompt,
    tools: deps.tools,
    messages: deps.context.assemble(),
    thinkingLevel: deps.thinkingLevel,
    isCallIdTaken: deps.isCallIdTaken,
  });
}
