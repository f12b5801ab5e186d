// One turn: a Request, the approvals of its calls beside the stream, their tools beside each other. It ends when all
// outputs are in, or closed in the order of an interrupt: model segments, undecided calls, outputs, then the tail of
// the Request if it is still open.

import { setMaxListeners } from "node:events";
import type { Clock } from "../clock.js";
import type { PartialAggregator } from "../protocol/aggregate.js";
import { addTokenCounts, requestBegin, requestEnd, tokenUsage, toolCallOutput } from "../protocol/builders.js";
import type { OmniMessage } from "../protocol/message.js";
import type {
  RequestEndPayload,
  RequestError,
  StopReason,
  TokenCounts,
  ToolCallPayload,
} from "../protocol/payloads.js";
import { streamAnswer } from "./answer.js";
import { type Approvals, approveInOrder } from "./approve-in-order.js";
import { answerDenied, dispatch } from "./dispatch.js";
import { CALL_CUT_OFF, EMPTY_ANSWER } from "./engine-notes.js";
import { type RetryPolicy, retryWait } from "./ladder.js";
import type { Emit } from "./merge-queue.js";
import type { Approver, Environment, LLMClient, LLMOutcome, LLMRequest, ToolExecution } from "./ports.js";

export type Call = OmniMessage<ToolCallPayload>;

export interface TurnDeps {
  llm: LLMClient;
  environment: Environment;
  approver: Approver;
  emit: Emit;
  /** Aborts once a record could not be written: nothing can be said any more, so nothing is waited for. */
  failed: AbortSignal;
  clock: Clock;
  /** The open fragments of what was emitted. */
  fragments: PartialAggregator;
  /** The Session's usage so far, without this Request. */
  sessionUsage(): TokenCounts;
  retry: RetryPolicy;
  onProgress: ToolExecution["onProgress"];
  /** A record that cannot be written, or a bug: reported, and made into the outcome that a client may see. */
  onFault(error: unknown): { status: StopReason; error?: RequestError };
  signal: AbortSignal;
}

export type TurnOutcome =
  /** `goesOn`: the model waits for outputs, or only `paused`. */
  | { kind: "committed"; goesOn: boolean; paused: boolean }
  /** `retry`: when the next try may begin at the earliest, absent when none follows. */
  | { kind: "failed"; status: StopReason; error: RequestError | undefined; retry?: { at: number; wasEmpty: boolean } }
  | { kind: "interrupted" };

/** Which try of a Request this is. */
export interface Try {
  /** From 1. */
  attempt: number;
  /** An earlier try ended well and said nothing: now that is taken for the answer. */
  wasEmpty: boolean;
  /** How often in a row the provider paused in its answer, which this Request goes on with; absent for a new answer. */
  pauses?: number;
}

/** @throws only what `emit` rejects with, after everything it started has ended. */
export async function runTurn(deps: TurnDeps, request: Omit<LLMRequest, "signal">, which: Try): Promise<TurnOutcome> {
  return withLanes(deps, (approvals, tools) => steps(deps, request, which, approvals, tools));
}

/**
 * Ends a turn whose Request committed in an earlier process and whose calls wait for a person.
 * @param calls the undecided ones, in call order
 * @throws as `runTurn`
 */
export async function resumeTurn(deps: TurnDeps, calls: readonly Call[]): Promise<TurnOutcome> {
  return withLanes(deps, async (approvals, tools) => {
    for (const call of calls) approvals.add(call);
    approvals.close();
    const isInterrupted = await settleBatch(deps, approvals, tools);
    return isInterrupted ? { kind: "interrupted" } : { kind: "committed", goesOn: true, paused: false };
  });
}

async function withLanes(
  deps: TurnDeps,
  work: (approvals: Approvals, tools: ToolLane) => Promise<TurnOutcome>,
): Promise<TurnOutcome> {
  const tools = new ToolLane(deps);
  const approvals = approveInOrder({
    ...deps,
    start: (call) => tools.start(call),
    deny: (call, decision, askedForMs) => answerDenied(deps, call, decision, askedForMs),
  });
  // Looked at by the work; until then a failure must not count as unhandled.
  approvals.done.catch(() => {});
  try {
    return await work(approvals, tools);
  } catch (error) {
    approvals.withdraw();
    tools.stop();
    await approvals.done.catch(() => {});
    await tools.ended();
    throw error;
  }
}

/**
 * Waits for every decision and every output. @returns true when an interrupt closed them instead.
 * @throws what a record that cannot be written rejects with, whoever else is still waited for.
 */
async function settleBatch(deps: TurnDeps, approvals: Approvals, tools: ToolLane): Promise<boolean> {
  const { signal, failed } = deps;
  const batch = approvals.done.then(() => tools.done());
  await unlessAborted(AbortSignal.any([signal, failed]), batch);
  failed.throwIfAborted();
  if (signal.aborted) await settle(approvals, tools);
  return signal.aborted;
}

async function steps(
  deps: TurnDeps,
  request: Omit<LLMRequest, "signal">,
  which: Try,
  approvals: Approvals,
  tools: ToolLane,
): Promise<TurnOutcome> {
  const { emit, clock, signal, failed } = deps;
  const cutOff: Call[] = [];
  let calls = 0;
  await emit([requestBegin(clock.iso())]);
  let isEmpty = true;
  const answered = await streamAnswer(
    {
      ...deps,
      emit: (messages) => {
        isEmpty = false;
        return emit(messages);
      },
      onCall: (call) => {
        calls += 1;
        if (call.payload.stop_reason === undefined) approvals.add(call);
        else cutOff.push(call);
      },
    },
    { ...request, signal: AbortSignal.any([signal, failed]) },
  );
  failed.throwIfAborted();
  if (signal.aborted) {
    await emit(deps.fragments.closers(clock.iso(), "aborted", "model"));
    await settle(approvals, tools);
    await emit(tail(deps, { ...answered, status: "aborted" }, which));
    return { kind: "interrupted" };
  }
  const outcome = isEmpty && !which.wasEmpty ? judgeEmpty(deps.retry, answered) : answered;
  const waitMs = retryWait(deps.retry, outcome, which.attempt);
  const retryAt = clock.now() + (waitMs ?? 0);
  await emit([...deps.fragments.closers(clock.iso(), outcome.status, "model"), ...tail(deps, outcome, which, waitMs)]);
  if (outcome.status !== "completed") {
    // What already runs may finish; nothing that was not decided starts any more.
    approvals.withdraw();
    await approvals.done;
  } else {
    await emit(cutOff.map((call) => cutOffOutput(clock, call)));
    approvals.close();
  }
  if (await settleBatch(deps, approvals, tools)) return { kind: "interrupted" };
  const { status, error } = outcome;
  if (status === "completed") {
    const paused = outcome.pause === true && calls === 0;
    return { kind: "committed", goesOn: calls > 0 || paused, paused };
  }
  return {
    kind: "failed",
    status,
    error,
    ...(waitMs === undefined ? {} : { retry: { at: retryAt, wasEmpty: isEmpty } }),
  };
}

/**
 * An answer that ended well and held nothing is tried once more, unless tries are switched off. One of reasoning alone is
 * not empty: it is on the stream already, was paid for, and most often means that the model had nothing to add.
 */
function judgeEmpty(policy: RetryPolicy, outcome: LLMOutcome): LLMOutcome {
  if (outcome.status !== "completed" || outcome.pause === true || policy.limit === 0) return outcome;
  return { ...outcome, status: "malformed", error: { kind: "malformed", message: EMPTY_ANSWER } };
}

/** Denies what is undecided, then stops what runs, in that order, and waits for both. */
async function settle(approvals: Approvals, tools: ToolLane): Promise<void> {
  approvals.withdraw();
  await approvals.done;
  tools.stop();
  await tools.done();
}

/** The two messages that end every Request; nothing comes between them. */
function tail(deps: TurnDeps, outcome: LLMOutcome, which: Try, waitMs?: number): OmniMessage[] {
  const { status, usage, error, finishReason, truncated } = outcome;
  const end: Omit<RequestEndPayload, "type"> & { status: StopReason } = { status };
  if (error !== undefined && status !== "completed" && status !== "aborted") end.error = error;
  if (which.attempt > 1 || end.error !== undefined) end.attempt = which.attempt;
  if (waitMs !== undefined) end.retry_in_ms = waitMs;
  if (finishReason !== undefined) end.finish_reason = finishReason;
  if (truncated === true) end.truncated = true;
  const at = deps.clock.iso();
  return [tokenUsage(at, addTokenCounts(deps.sessionUsage(), usage), usage), requestEnd(at, end)];
}

const cutOffOutput = (clock: Clock, call: Call): OmniMessage =>
  toolCallOutput(clock.iso(), { output: CALL_CUT_OFF, tool_call_id: call.payload.tool_call_id, stop_reason: "failed" });

/** Resolves when `work` ends or the signal aborts, whichever is first; rejects when `work` does. */
function unlessAborted(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve, reject) => {
    const done = () => resolve();
    if (signal.aborted) done();
    signal.addEventListener("abort", done, { once: true });
    work.then(done, reject).finally(() => signal.removeEventListener("abort", done));
  });
}

/** The tools of one turn: started one by one, stopped together. */
class ToolLane {
  readonly #deps: TurnDeps;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(deps: TurnDeps) {
    this.#deps = deps;
    // Each running tool listens to it, and a model may call any number at once.
    setMaxListeners(0, this.#stop.signal);
  }

  start(call: Call): void {
    const run = dispatch({ ...this.#deps, signal: this.#stop.signal }, call);
    run.catch(() => {});
    this.#running.push(run);
  }

  /** The tools learn why the Task was interrupted, if it was. */
  stop(): void {
    this.#stop.abort(this.#deps.signal.reason);
  }

  /** Resolves when no tool runs any more, whatever became of its output. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** Resolves when every tool started so far has its output; rejects with the first that could not be recorded. */
  async done(): Promise<void> {
    await Promise.all(this.#running);
  }
}
