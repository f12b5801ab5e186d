// The reconnect ladder: after which failures a Request is tried again, and how long it waits. What the provider asks
// for counts when it is longer, up to five minutes.

import type { ErrorKind } from "../protocol/payloads.js";
import type { LLMOutcome } from "./ports.js";

export interface RetryPolicy {
  /** The first wait, in ms; each further one doubles. */
  baseMs: number;
  /** The longest wait of our own, in ms. */
  maxMs: number;
  /** Further tries after the first; 0 tries once. */
  limit: number;
}

const MAX_ASKED_MS = 5 * 60_000;
/** Trying again would fail in the same way, or needs something else first. */
const NO_LADDER: ReadonlySet<ErrorKind> = new Set([
  "auth",
  "invalid_request",
  "context_overflow",
  "content_filter",
  "storage",
]);

/**
 * @param attempt the number of the try that failed, from 1
 * @returns the least wait before the next try in ms, or undefined when none follows.
 */
export function retryWait(policy: RetryPolicy, outcome: LLMOutcome, attempt: number): number | undefined {
  const { status, error, retryAfterMs = 0 } = outcome;
  if (status === "completed" || status === "aborted" || attempt > policy.limit) return undefined;
  if (error !== undefined && NO_LADDER.has(error.kind)) return undefined;
  const own = Math.min(policy.maxMs, policy.baseMs * 2 ** (attempt - 1));
  return Math.max(own, Math.min(retryAfterMs, MAX_ASKED_MS));
}
