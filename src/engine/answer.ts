// One answer of the model: drives the LLM client's stream into the Task's queue and hands on each call once it is
// committed. An upstream that ignores the abort is abandoned after a short grace; the engine closes what it left open.

import type { Clock } from "../clock.js";
import { emptyTokenCounts } from "../protocol/builders.js";
import { isPayload } from "../protocol/guards.js";
import type { OmniMessage } from "../protocol/message.js";
import type { RequestError, StopReason, ToolCallPayload } from "../protocol/payloads.js";
import type { Emit } from "./merge-queue.js";
import type { LLMClient, LLMOutcome, LLMRequest } from "./ports.js";

/** How long an aborted stream may take to end and tell its usage. */
const ABANDON_MS = 100;

export interface AnswerDeps {
  llm: LLMClient;
  emit: Emit;
  clock: Clock;
  /** A client that throws is a bug of ours: reported here, and told to nobody else. */
  onFault(error: unknown): { status: StopReason; error?: RequestError };
  /** A call of this answer, committed. Calls with a stop_reason (cut off) come too. */
  onCall(call: OmniMessage<ToolCallPayload>): void;
}

type Read = IteratorResult<readonly OmniMessage[], LLMOutcome> | "abandoned";

/**
 * Streams one answer to its outcome.
 * @throws only what `emit` rejects with: the record cannot be written. The stream is ended first.
 */
export async function streamAnswer(deps: AnswerDeps, request: LLMRequest): Promise<LLMOutcome> {
  const stream = deps.llm.stream(request);
  const reads = abandonable(stream, deps, request.signal);
  try {
    for (;;) {
      const read = await reads.next();
      if (read === "abandoned") return { status: "aborted", usage: emptyTokenCounts() };
      if (read.done === true) return request.signal.aborted ? { ...read.value, status: "aborted" } : read.value;
      const pending = deps.emit(read.value);
      if (pending !== undefined) await pending;
      for (const message of read.value) if (isPayload(message, "tool_call")) deps.onCall(message);
    }
  } finally {
    reads.release();
    // Not waited for: a generator stuck in an await that ignores the abort would hold the Task.
    stream.return({ status: "aborted", usage: emptyTokenCounts() }).catch(() => {});
  }
}

/** Reads a stream so that one that does not end after the abort is given up. A throw of the stream is an outcome. */
function abandonable(
  stream: AsyncGenerator<readonly OmniMessage[], LLMOutcome, void>,
  deps: Pick<AnswerDeps, "clock" | "onFault">,
  signal: AbortSignal,
): { next(): Promise<Read>; release(): void } {
  const released = new AbortController();
  let abandoned = false;
  let settle: (read: Read) => void = () => {};
  const onAbort = () => {
    void deps.clock.sleep(ABANDON_MS, released.signal).then(() => {
      abandoned = true;
      settle("abandoned");
    });
  };
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort, { once: true });
  return {
    next: () =>
      new Promise((resolve) => {
        if (abandoned) return resolve("abandoned");
        settle = resolve;
        stream.next().then(resolve, (error: unknown) => {
          const outcome: LLMOutcome = { usage: emptyTokenCounts(), ...deps.onFault(error) };
          resolve({ done: true, value: outcome });
        });
      }),
    release: () => {
      signal.removeEventListener("abort", onAbort);
      released.abort();
    },
  };
}
