// Execution of approved calls: each runs at once and beside the others, and its output joins the stream in completion
// order. Whatever happens in a tool, exactly one complete output comes of each call.

import type { Clock } from "../clock.js";
import { subagent, toolCallOutput } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type { ToolCallPayload } from "../protocol/payloads.js";
import { ToolOutputWriter } from "../protocol/segment.js";
import { reasonOf } from "../reason-of.js";
import { denialText, INTERRUPTED, NO_ANSWER, toolFailed } from "./engine-notes.js";
import type { Emit } from "./merge-queue.js";
import type { Decision, Environment, ToolExecution } from "./ports.js";

type Call = OmniMessage<ToolCallPayload>;

export interface DispatchDeps {
  emit: Emit;
  environment: Environment;
  clock: Clock;
  signal: AbortSignal;
  onProgress: ToolExecution["onProgress"];
}

/** Answers a call that was denied: a complete output, without fragments. */
export async function answerDenied(
  deps: Pick<DispatchDeps, "emit" | "clock">,
  call: Call,
  decision: Decision,
  askedForMs: number,
): Promise<void> {
  await deps.emit([
    toolCallOutput(deps.clock.iso(), {
      output: denialText(decision, askedForMs),
      tool_call_id: call.payload.tool_call_id,
      stop_reason: "aborted",
    }),
  ]);
}

/**
 * Runs one allowed call to its complete output.
 * @throws only what `emit` rejects with: the record cannot be written.
 */
export async function dispatch(deps: DispatchDeps, call: Call): Promise<void> {
  const id = call.payload.tool_call_id;
  // What the environment has said, so that a throw or an early end is closed with the same discipline.
  let content = "";
  let started = false;
  let complete = false;
  const fail = async (text: string, stop: "failed" | "aborted"): Promise<void> => {
    const writer = new ToolOutputWriter(() => deps.clock.iso(), id);
    const replayed = started ? [...writer.append(content)] : [];
    const rest = [...writer.append(text), ...writer.end({ stop })];
    // The stream has the start already; without content the writer's own start must not go out a second time.
    await deps.emit(started && replayed.length === 0 ? rest.slice(1) : rest);
  };
  if (deps.signal.aborted) return fail(INTERRUPTED, "aborted");
  let refused: { error: unknown } | undefined;
  try {
    for await (const batch of deps.environment.execute(executionOf(deps, call))) {
      for (const message of batch) {
        if (isPayload(message, "partial_tool_call_output")) {
          started = true;
          content += message.payload.output;
        } else if (isPayload(message, "tool_call_output")) complete = true;
      }
      try {
        const pending = deps.emit(batch);
        if (pending !== undefined) await pending;
      } catch (error) {
        refused = { error };
        throw error;
      }
    }
  } catch (error) {
    if (refused !== undefined) throw refused.error;
    if (!complete) await fail(toolFailed(reasonOf(error)), "failed");
    return;
  }
  if (!complete) await fail(deps.signal.aborted ? INTERRUPTED : NO_ANSWER, "failed");
}

const executionOf = ({ emit, clock, signal, onProgress }: DispatchDeps, call: Call): ToolExecution => ({
  call,
  signal,
  onProgress,
  pointTo: async (childSessionId) => emit([subagent(clock.iso(), childSessionId)]),
});
