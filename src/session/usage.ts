// What Sessions have used, added up.

import { addTokenCounts, emptyTokenCounts } from "../protocol/builders.js";
import type { Usage } from "./types.js";

/** The sum; its cost is that of the parts whose prices are known. */
export function addUsage(parts: readonly Usage[]): Usage {
  let sum: Usage = emptyTokenCounts();
  let costUsd: number | undefined;
  for (const part of parts) {
    sum = addTokenCounts(sum, part);
    if (part.costUsd !== undefined) costUsd = (costUsd ?? 0) + part.costUsd;
  }
  // Each cost is rounded to a billionth; so is their sum.
  return costUsd === undefined ? sum : { ...sum, costUsd: Math.round(costUsd * 1e9) / 1e9 };
}
