// Token numbers of the Messages protocol. Each is a snapshot of the whole answer; a later event overwrites the fields
// that it names and leaves the others.

import type { TokenCounts } from "../../protocol/payloads.js";
import { asCount, asRecord } from "./json.js";

const FIELDS = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"] as const;

export class AnthropicUsage {
  readonly #seen: Partial<Record<(typeof FIELDS)[number], number>> = {};

  read(value: unknown): void {
    const usage = asRecord(value);
    if (usage === undefined) return;
    for (const field of FIELDS) {
      const count = asCount(usage[field]);
      if (count !== undefined) this.#seen[field] = count;
    }
  }

  /** `input_tokens` leaves out what the cache took or gave, so it is added here once; `output` has thinking in it. */
  get counts(): TokenCounts {
    const seen = this.#seen;
    const cache_read = seen.cache_read_input_tokens ?? 0;
    const cache_write = (seen.input_tokens ?? 0) + (seen.cache_creation_input_tokens ?? 0);
    const output = seen.output_tokens ?? 0;
    const counts: TokenCounts = { cache_read, cache_write, output, total: cache_read + cache_write + output };
    if (seen.cache_creation_input_tokens !== undefined) counts.cache_creation = seen.cache_creation_input_tokens;
    return counts;
  }
}
