// How a Task runs: turns until the model answers without a call. Never throws; how it ended is its outcome.

import { abort, assistantText, partialText } from "../protocol/builders.js";
import type { RequestError, StopReason, ToolDefinition } from "../protocol/payloads.js";
import { unreachable } from "../result.js";
import { AutoCompaction } from "./auto-compaction.js";
import type { CompactionDeps } from "./compaction.js";
import type { Context } from "./context.js";
import { maxTurnsNotice } from "./engine-notes.js";
import { type Commit, MergeQueue } from "./merge-queue.js";
import type { ThinkingLevel } from "./ports.js";
import { type Call, resumeTurn, runTurn, type Try, type TurnDeps, type TurnOutcome } from "./turn.js";

/** What reaches a Task while it runs. Steering is taken at the next assembly of an input. */
export interface Steering {
  /** Records what waits, so that it is in the context. @returns false when there was nothing. */
  take(): Promise<boolean>;
  /** Takes nothing more from now on. @returns false when something waits: it has to be taken first. */
  end(): boolean;
}

/** Where a Task goes on that waited for a person when its process ended. */
export interface Resumption {
  /** The calls of its last batch that nobody has decided, in call order. */
  calls: readonly Call[];
  /** Requests that the Task has committed. */
  turns: number;
}

export interface TaskDeps extends Omit<TurnDeps, "emit" | "failed"> {
  sessionId: string;
  systemPrompt: string;
  /** Those of the context that the next Request belongs to. */
  tools(): readonly ToolDefinition[];
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
  steering: Steering;
  compaction: Pick<CompactionDeps, "settings" | "contextWindow" | "record" | "onCompacting" | "onFailed">;
  resumption?: Resumption;
  /** Why the signal aborted; stands in the `abort` event. */
  abortReason(): string | null;
}

export interface TaskOutcome {
  status: StopReason;
  error?: RequestError;
}

const FIRST: Try = { attempt: 1, wasEmpty: false };
/** Pauses in a row that one answer may take; a provider that only ever pauses would be asked without end and at once. */
const MAX_PAUSES = 10;
const ABORTED: TaskOutcome = { status: "aborted" };

/** Runs one Task to its end. The last message of an interrupted one is `abort`. */
export async function runTask(deps: TaskDeps): Promise<TaskOutcome> {
  const { emit, failed } = new MergeQueue(deps.commit);
  const turnDeps: TurnDeps = { ...deps, emit, failed };
  try {
    return await turnsOf(turnDeps, deps);
  } catch (error) {
    return deps.onFault(error);
  }
}

async function turnsOf(turnDeps: TurnDeps, deps: TaskDeps): Promise<TaskOutcome> {
  const { resumption, steering } = deps;
  const compaction = new AutoCompaction({ ...deps, ...deps.compaction, emit: turnDeps.emit });
  let turns = resumption?.turns ?? 0;
  let which: Try = FIRST;
  let outcome: TurnOutcome | { kind: "limit" } | undefined =
    resumption === undefined ? undefined : await resumeTurn(turnDeps, resumption.calls);
  // The Request whose calls waited was counted when it committed.
  if (outcome?.kind === "committed") turns -= 1;
  for (;;) {
    outcome ??= await nextTurn(turnDeps, deps, turns, which);
    switch (outcome.kind) {
      case "committed": {
        turns += 1;
        // One pause too many is taken for the end of the turn, with what was said so far for its answer.
        const pauses = (which.pauses ?? 0) + 1;
        const isPaused = outcome.paused && pauses <= MAX_PAUSES;
        which = isPaused ? { ...FIRST, pauses } : FIRST;
        if (isPaused) break;
        if ((await compaction.afterTurn()) === "aborted") return ABORTED;
        const goesOn = outcome.goesOn && !outcome.paused;
        if (!goesOn && (isLimit(deps, turns) || !(await wasSteered(steering)))) return { status: "completed" };
        break;
      }
      case "limit":
        return { status: "completed" };
      case "failed": {
        const again = await afterFailure(deps, compaction, outcome, which);
        if ("status" in again) return again;
        which = again;
        break;
      }
      case "interrupted":
        await turnDeps.emit([abort(deps.clock.iso(), deps.abortReason())]);
        return ABORTED;
      default:
        return unreachable(outcome);
    }
    outcome = undefined;
  }
}

/** @returns the next try, once its time has come, or how the Task ended. */
async function afterFailure(
  deps: TaskDeps,
  compaction: AutoCompaction,
  { status, error, retry }: Extract<TurnOutcome, { kind: "failed" }>,
  which: Try,
): Promise<Try | TaskOutcome> {
  const attempt = which.attempt + 1;
  if (retry !== undefined) {
    await deps.waitToRetry({ attempt: which.attempt, at: retry.at, status }, deps.signal);
    return { ...which, attempt, wasEmpty: which.wasEmpty || retry.wasEmpty };
  }
  const compacted = error?.kind === "context_overflow" ? await compaction.afterOverflow() : "nothing";
  if (compacted === "aborted") return ABORTED;
  if (compacted === "completed") return { attempt, wasEmpty: which.wasEmpty };
  return error === undefined ? { status } : { status, error };
}

const isLimit = (deps: TaskDeps, turns: number): boolean => deps.maxTurns >= 0 && turns >= deps.maxTurns;

/** At the end of a Task: what was accepted before it makes one more Request; after it nothing is accepted. */
async function wasSteered(steering: Steering): Promise<boolean> {
  while (!steering.end()) if (await steering.take()) return true;
  return false;
}

async function nextTurn(
  turnDeps: TurnDeps,
  deps: TaskDeps,
  turns: number,
  which: Try,
): Promise<TurnOutcome | { kind: "limit" }> {
  if (deps.signal.aborted) return { kind: "interrupted" };
  if (isLimit(deps, turns)) {
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
  // A paused answer goes back as it is: nothing may come between it and what the provider adds.
  if (which.pauses === undefined) await deps.steering.take();
  const request = {
    sessionId: deps.sessionId,
    systemPrompt: deps.systemPrompt,
    tools: deps.tools(),
    messages: deps.context.assemble(),
    thinkingLevel: deps.thinkingLevel,
    isCallIdTaken: deps.isCallIdTaken,
  };
  return runTurn(turnDeps, request, which);
}
