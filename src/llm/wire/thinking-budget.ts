// How many tokens a model may think with, where its protocol asks for a number. The output limit counts thoughts and
// answer together: a budget that reaches it leaves no answer, and some servers refuse it.

/** What a budget leaves for the answer where the limit is large, in tokens. */
const ANSWER_TOKENS = 4096;

/** What a level may take of a small limit, so that levels stay apart there too. */
const SHARES = { low: 0.25, medium: 0.5, high: 0.75, xhigh: 0.75, max: 0.75 } as const;
export type BudgetLevel = keyof typeof SHARES;

/**
 * The budget that fits below the output limit.
 * @param wanted what the level asks for where there is room.
 * @param least the model takes no budget below it.
 * @returns undefined where not even that fits.
 */
export function fittingBudget(
  level: BudgetLevel,
  wanted: number,
  least: number,
  maxTokens: number,
): number | undefined {
  const room = Math.max(maxTokens - ANSWER_TOKENS, Math.floor(maxTokens * SHARES[level]));
  const budget = Math.max(least, Math.min(wanted, room));
  return budget < maxTokens ? budget : undefined;
}
