// Compaction: a summary takes the place of the conversation. Its Request runs against the old context with the same
// tools and prefix, so that prompt caches hold; what the model says to it goes to the Trace only. Until the summary is
// recorded as completed the old context stays, so nothing is lost by a failure, an abort or a crash. From then on
// the context is the new one; its file begins with the next record, whoever writes it.

import type { Clock } from "../clock.js";
import { abort, addTokenCounts, compactionBegin, compactionEnd, tokenUsage, userText } from "../protocol/builders.js";
import { isCompleteModelMessage, isPayload } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type {
  CompactionMode,
  CompactionReason,
  RequestError,
  StopReason,
  TokenCounts,
  ToolDefinition,
} from "../protocol/payloads.js";
import { streamAnswer } from "./answer.js";
import { joined } from "./compaction-fold.js";
import type { Context } from "./context.js";
import { CALL_FOR_SUMMARY, EMPTY_SUMMARY } from "./engine-notes.js";
import { type RetryPolicy, retryWait } from "./ladder.js";
import type { Emit } from "./merge-queue.js";
import type { LLMClient, LLMOutcome, LLMRequest, ThinkingLevel } from "./ports.js";
import { sizeOf, sizeOfAll, withoutOldest } from "./shorten.js";

export interface CompactionSettings {
  /** Tokens from which a context is compacted; -1 switches that off, also where a provider says that it is too long. */
  maxContextLength: number;
  /** Committed Requests from which a context is compacted; -1 for no limit. */
  maxSessionTurns: number;
  mode: CompactionMode;
  /** The last user text of a summary's Request. */
  prompt: string;
}

export interface CompactionDeps {
  sessionId: string;
  llm: LLMClient;
  clock: Clock;
  /** The fold over what was recorded. */
  context: Context;
  systemPrompt: string;
  tools(): readonly ToolDefinition[];
  thinkingLevel: ThinkingLevel;
  isCallIdTaken(toolCallId: string): boolean;
  /** The Session's usage so far. */
  sessionUsage(): TokenCounts;
  settings: CompactionSettings;
  /** The model's, in tokens; 0 where it is not known. */
  contextWindow: number;
  retry: RetryPolicy;
  /** Waits until `at` (ms since 1970) before the next try, or until the signal aborts. */
  waitToRetry(wait: { attempt: number; at: number; status: StopReason }, signal: AbortSignal): Promise<void>;
  /** Records and shows. */
  emit: Emit;
  /** Records what is not shown. */
  record(messages: readonly OmniMessage[]): Promise<void>;
  /** Told before the first record of a compaction, and behind the last. */
  onCompacting(isCompacting: boolean): void;
  /** A compaction failed for good; the client is told that it did, and not why. */
  onFailed(error: RequestError | undefined): void;
  onFault(error: unknown): { status: StopReason; error?: RequestError };
  signal: AbortSignal;
  /** Why the signal aborted; stands in the `abort` event. */
  abortReason(): string | null;
}

/** `aborted`: its `abort` is out already. `nothing`: no Request of this context has committed, so nothing was done. */
export type CompactionResult = "completed" | "failed" | "aborted" | "nothing";

/**
 * Compacts the current context, between two turns.
 * @throws only what a record that cannot be written rejects with.
 */
export async function compact(deps: CompactionDeps, reason: CompactionReason): Promise<CompactionResult> {
  const { context, emit, clock } = deps;
  const { mode } = deps.settings;
  const { tokens, turns } = context.size;
  if (turns === 0) return "nothing";
  deps.onCompacting(true);
  try {
    await emit([compactionBegin(clock.iso(), { reason, mode, context: tokens, turns })]);
    const status = mode === "discard" ? "completed" : await summarize(deps);
    const end = compactionEnd(clock.iso(), { reason, mode, status });
    // One write: nothing may come between the two, and no crash either.
    await emit(status === "aborted" ? [end, abort(clock.iso(), deps.abortReason())] : [end]);
    return status;
  } finally {
    deps.onCompacting(false);
  }
}

async function summarize(deps: CompactionDeps): Promise<"completed" | "failed" | "aborted"> {
  const { clock, retry, signal } = deps;
  let messages = thatFit(deps);
  for (let attempt = 1; ; ) {
    if (signal.aborted) return "aborted";
    const outcome = await oneTry(deps, messages);
    if (outcome.status === "completed" || outcome.status === "aborted") return outcome.status;
    if (outcome.error?.kind === "context_overflow") {
      // The provider counts otherwise than we do. Each such try is half as long, so they end.
      const shorter = withoutOldest(messages, sizeOfAll(messages) / 2, clock.iso());
      if (shorter !== undefined && sizeOfAll(shorter) < sizeOfAll(messages)) {
        messages = shorter;
        continue;
      }
    }
    const waitMs = retryWait(retry, outcome, attempt);
    if (waitMs === undefined) {
      deps.onFailed(outcome.error);
      return "failed";
    }
    await deps.waitToRetry({ attempt, at: clock.now() + waitMs, status: outcome.status }, signal);
    attempt += 1;
  }
}

/** One Request for a summary, to its recorded end. */
async function oneTry(deps: CompactionDeps, messages: readonly CompleteMessage[]): Promise<LLMOutcome> {
  const { clock, signal } = deps;
  const texts: string[] = [];
  let isAnswered = false;
  let calls = 0;
  const answer = await streamAnswer(
    {
      ...deps,
      emit: (batch) => {
        const records = batch.filter(isCompleteModelMessage);
        if (records.length === 0) return undefined;
        isAnswered = true;
        for (const record of records) {
          if (isPayload(record, "text")) texts.push(record.payload.text);
        }
        return deps.record(records);
      },
      onCall: () => {
        calls += 1;
      },
    },
    { ...requestOf(deps, messages), signal },
  );
  if (isAnswered || answer.usage.total > 0 || answer.status === "completed") {
    await deps.record([tokenUsage(clock.iso(), addTokenCounts(deps.sessionUsage(), answer.usage), answer.usage)]);
  }
  if (answer.status !== "completed") return answer;
  if (calls > 0) return unusable(answer, CALL_FOR_SUMMARY);
  return joined(texts) === "" ? unusable(answer, EMPTY_SUMMARY) : answer;
}

const unusable = (answer: LLMOutcome, message: string): LLMOutcome => ({
  ...answer,
  status: "malformed",
  error: { kind: "malformed", message },
});

function requestOf(deps: CompactionDeps, messages: readonly CompleteMessage[]): Omit<LLMRequest, "signal"> {
  const { sessionId, systemPrompt, tools, thinkingLevel, isCallIdTaken, settings, clock } = deps;
  return {
    sessionId,
    systemPrompt,
    tools: tools(),
    thinkingLevel,
    isCallIdTaken,
    messages: [...messages, userText(clock.iso(), settings.prompt)],
  };
}

/** Characters of a token where nothing better is known: few, so that the estimate is rather too long. */
const CHARS_PER_TOKEN = 3;
/** Tokens kept free for the summary itself, but never more than an eighth of the window. */
const ANSWER_TOKENS = 8_192;

/** The context as the summary's Request carries it: whole, or without its oldest turns where it would not fit. */
function thatFit(deps: CompactionDeps): CompleteMessage[] {
  const { context, contextWindow, systemPrompt, tools, settings, clock } = deps;
  const { messages, committed } = context.toSummarize();
  if (contextWindow <= 0) return messages;
  const prefix = systemPrompt.length + JSON.stringify(tools()).length;
  const carried = prefix + sizeOfAll(messages.slice(0, committed));
  const { tokens } = context.size;
  const perChar = tokens > 0 ? tokens / carried : 1 / CHARS_PER_TOKEN;
  const fresh = settings.prompt.length + messages.slice(committed).reduce((sum, message) => sum + sizeOf(message), 0);
  const expected = carried * perChar + fresh / CHARS_PER_TOKEN + Math.min(ANSWER_TOKENS, Math.floor(contextWindow / 8));
  if (expected <= contextWindow) return messages;
  const excess = Math.ceil((expected - contextWindow) / perChar);
  return withoutOldest(messages, Math.max(0, sizeOfAll(messages) - excess), clock.iso()) ?? messages;
}
