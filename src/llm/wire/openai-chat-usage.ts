// Token numbers of the chat dialects. Every number a provider gives is a snapshot of the whole answer: the last one
// counts, none are added up.

import type { TokenCounts } from "../../protocol/payloads.js";
import { asCount, asRecord, type JsonRecord } from "./json.js";

/** @returns undefined when the value holds no numbers, so that an empty object does not wipe what came before. */
export function chatUsage(value: unknown): TokenCounts | undefined {
  const usage = asRecord(value);
  if (usage === undefined) return undefined;
  const prompt = asCount(usage.prompt_tokens);
  const completion = asCount(usage.completion_tokens);
  const total = asCount(usage.total_tokens);
  if (prompt === undefined && completion === undefined && total === undefined) return undefined;
  const input = prompt ?? 0;
  // xAI leaves reasoning out of completion_tokens but not out of the total.
  const output = Math.max(completion ?? 0, prompt === undefined ? 0 : (total ?? 0) - prompt);
  const details = asRecord(usage.prompt_tokens_details);
  const read = Math.min(cached(usage, details), input);
  const counts: TokenCounts = { cache_read: read, cache_write: input - read, output, total: input + output };
  const created = Math.min(asCount(details?.cache_write_tokens) ?? 0, counts.cache_write);
  if (created > 0) counts.cache_creation = created;
  return counts;
}

function cached(usage: JsonRecord, details: JsonRecord | undefined): number {
  return asCount(details?.cached_tokens) ?? asCount(usage.prompt_cache_hit_tokens) ?? asCount(usage.cached_tokens) ?? 0;
}
