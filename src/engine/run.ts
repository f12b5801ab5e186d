// How a Task runs: turns until the model answers without a call. Never throws; how it ended is its outcome.

import { abort, assistantText, partialText } from "../protocol/builders.js";
import type { RequestError, StopReason, ToolDefinition } from "../protocol/payloads.js";
import type { Context } from "./context.js";
import { maxTurnsNotice } from "./engine-notes.js";
import { type Commit, MergeQueue } from "./merge-queue.js";
import type { ThinkingLevel } from "./ports.js";
import { runTurn, type Try, type TurnDeps, type TurnOutcome } from "./turn.js";

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
  /** Waits until `at` (ms since 1970) before the next try, or until the signal aborts. */
  waitToRetry(wait: { attempt: number; at: number; status: StopReason }, signal: AbortSignal): Promise<void>;
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
    let turns = 0;
    let which: Try = { attempt: 1, wasEmpty: false };
    for (;;) {
      const outcome = await nextTurn(turnDeps, deps, turns, which);
      switch (outcome.kind) {
        case "committed":
          if (!outcome.goesOn) return { status: "completed" };
          turns += 1;
          which = { attempt: 1, wasEmpty: false };
          break;
        case "limit":
          return { status: "completed" };
        case "failed": {
          const { status, error, retry } = outcome;
          if (retry === undefined) return error === undefined ? { status } : { status, error };
          await deps.waitToRetry({ attempt: which.attempt, at: retry.at, status }, deps.signal);
          which = { attempt: which.attempt + 1, wasEmpty: which.wasEmpty || retry.wasEmpty };
          break;
        }
        case "interrupted":
          await emit([abort(deps.clock.iso(), deps.abortReason())]);
          return { status: "aborted" };
      }
    }
  } catch (error) {
    return deps.onFault(error);
  }
}

async function nextTurn(
  turnDeps: TurnDeps,
  deps: TaskDeps,
  turns: number,
  which: Try,
): Promise<TurnOutcome | { kind: "limit" }> {
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
  const request = {
    sessionId: deps.sessionId,
    systemPrompt: deps.systemPrompt,
    tools: deps.tools,
    messages: deps.context.assemble(),
    thinkingLevel: deps.thinkingLevel,
    isCallIdTaken: deps.isCallIdTaken,
  };
  return runTurn(turnDeps, request, which);
}
