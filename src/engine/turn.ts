// One turn: a Request, the approvals of its calls beside the stream, their tools beside each other. It ends when all
// outputs are in, or closed in the order of an interrupt: model segments, undecided calls, outputs, then the tail of
// the Request if it is still open.

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
import { CALL_CUT_OFF } from "./engine-notes.js";
import type { Emit } from "./merge-queue.js";
import type { Approver, Environment, LLMClient, LLMOutcome, LLMRequest, ToolExecution } from "./ports.js";

type Call = OmniMessage<ToolCallPayload>;

export interface TurnDeps {
  llm: LLMClient;
  environment: Environment;
  approver: Approver;
  emit: Emit;
  clock: Clock;
  /** The open fragments of what was emitted. */
  fragments: PartialAggregator;
  /** The Session's usage so far, without this Request. */
  sessionUsage(): TokenCounts;
  onProgress: ToolExecution["onProgress"];
  /** A record that cannot be written, or a bug: reported, and made into the outcome that a client may see. */
  onFault(error: unknown): { status: StopReason; error?: RequestError };
  signal: AbortSignal;
}

export type TurnOutcome =
  /** `goesOn`: the model waits for outputs, or only paused. */
  | { kind: "committed"; goesOn: boolean }
  | { kind: "failed"; status: StopReason; error: RequestError | undefined }
  | { kind: "interrupted" };

/** @throws only what `emit` rejects with, after everything it started has ended. */
export async function runTurn(deps: TurnDeps, request: Omit<LLMRequest, "signal">): Promise<TurnOutcome> {
  const tools = new ToolLane(deps);
  const approvals = approveInOrder({
    ...deps,
    start: (call) => tools.start(call),
    deny: (call, decision, askedForMs) => answerDenied(deps, call, decision, askedForMs),
  });
  // Looked at below; until then a failure must not count as unhandled.
  approvals.done.catch(() => {});
  try {
    return await steps(deps, request, approvals, tools);
  } catch (error) {
    approvals.withdraw();
    tools.stop();
    await Promise.allSettled([approvals.done, tools.done()]);
    throw error;
  }
}

async function steps(
  deps: TurnDeps,
  request: Omit<LLMRequest, "signal">,
  approvals: Approvals,
  tools: ToolLane,
): Promise<TurnOutcome> {
  const { emit, clock, signal } = deps;
  const cutOff: Call[] = [];
  let calls = 0;
  await emit([requestBegin(clock.iso())]);
  const outcome = await streamAnswer(
    {
      ...deps,
      onCall: (call) => {
        calls += 1;
        if (call.payload.stop_reason === undefined) approvals.add(call);
        else cutOff.push(call);
      },
    },
    { ...request, signal },
  );
  if (signal.aborted) {
    await emit(deps.fragments.closers(clock.iso(), "aborted", "model"));
    await settle(approvals, tools);
    await emit(tail(deps, { ...outcome, status: "aborted" }));
    return { kind: "interrupted" };
  }
  await emit([...deps.fragments.closers(clock.iso(), outcome.status, "model"), ...tail(deps, outcome)]);
  if (outcome.status !== "completed") {
    // What already runs may finish; nothing that was not decided starts any more.
    approvals.withdraw();
    await approvals.done;
  } else {
    await emit(cutOff.map((call) => cutOffOutput(clock, call)));
    approvals.close();
  }
  await unlessAborted(signal, Promise.all([approvals.done, approvals.done.then(() => tools.done())]));
  if (signal.aborted) {
    await settle(approvals, tools);
    return { kind: "interrupted" };
  }
  return outcome.status === "completed"
    ? { kind: "committed", goesOn: calls > 0 || outcome.pause === true }
    : { kind: "failed", status: outcome.status, error: outcome.error };
}

/** Denies what is undecided, then stops what runs, in that order, and waits for both. */
async function settle(approvals: Approvals, tools: ToolLane): Promise<void> {
  approvals.withdraw();
  await approvals.done;
  tools.stop();
  await tools.done();
}

/** The two messages that end every Request; nothing comes between them. */
function tail(deps: TurnDeps, outcome: LLMOutcome): OmniMessage[] {
  const { status, usage, error, finishReason, truncated } = outcome;
  const end: Omit<RequestEndPayload, "type"> & { status: StopReason } = { status };
  if (error !== undefined && status !== "completed" && status !== "aborted") end.error = error;
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
  }

  start(call: Call): void {
    const run = dispatch({ ...this.#deps, signal: this.#stop.signal }, call);
    run.catch(() => {});
    this.#running.push(run);
  }

  stop(): void {
    this.#stop.abort();
  }

  /** Resolves when every tool started so far has its output. */
  async done(): Promise<void> {
    await Promise.all(this.#running);
  }
}
