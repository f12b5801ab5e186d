// Token numbers of the Responses protocol. `input_tokens` includes the cached, `output_tokens` the reasoning.

import type { TokenCounts } from "../../protocol/payloads.js";
import { asCount, asRecord } from "./json.js";

/** @returns undefined when the value holds no numbers. */
export function responsesUsage(value: unknown): TokenCounts | undefined {
  const usage = asRecord(value);
  const input = asCount(usage?.input_tokens);
  const output = asCount(usage?.output_tokens);
  if (input === undefined && output === undefined) return undefined;
  const details = asRecord(usage?.input_tokens_details);
  const read = Math.min(asCount(details?.cached_tokens) ?? 0, input ?? 0);
  const write = (input ?? 0) - read;
  const counts: TokenCounts = {
    cache_read: read,
    cache_write: write,
    output: output ?? 0,
    total: read + write + (output ?? 0),
  };
  const created = Math.min(asCount(details?.cache_write_tokens) ?? 0, write);
  if (created > 0) counts.cache_creation = created;
  return counts;
}
