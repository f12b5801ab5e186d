// Token numbers of Gemini. Each `usageMetadata` is a snapshot of the whole answer: the last one counts. Thoughts are not
// among the candidates' tokens, cached input is among the prompt's.

import type { TokenCounts } from "../../protocol/payloads.js";
import { asCount, asRecord } from "./json.js";

/** @returns undefined when the value holds no numbers, so that a bare traffic note does not wipe what came before. */
export function geminiUsage(value: unknown): TokenCounts | undefined {
  const usage = asRecord(value);
  if (usage === undefined) return undefined;
  const prompt = asCount(usage.promptTokenCount);
  const candidates = asCount(usage.candidatesTokenCount);
  const thoughts = asCount(usage.thoughtsTokenCount);
  if (prompt === undefined && candidates === undefined && thoughts === undefined) return undefined;
  const input = (prompt ?? 0) + (asCount(usage.toolUsePromptTokenCount) ?? 0);
  const output = (candidates ?? 0) + (thoughts ?? 0);
  const read = Math.min(asCount(usage.cachedContentTokenCount) ?? 0, input);
  return { cache_read: read, cache_write: input - read, output, total: input + output };
}
