// What a Gemini model is told about thinking. The families disagree: 3.x takes a level and refuses some of them by name,
// 2.5 takes a budget in tokens within its own bounds, older ones take nothing. A level and a budget together are refused.

import type { ThinkingLevel } from "../../engine/ports.js";
import type { JsonRecord } from "./json.js";
import { fittingBudget } from "./thinking-budget.js";

type AskedLevel = Exclude<ThinkingLevel, "default">;

/**
 * The generation a model's name tells, such as 2.5.
 * @returns undefined for an alias (`gemini-flash-latest`), a tuned model, or a name that somebody chose.
 */
export function geminiGeneration(modelId: string): number | undefined {
  const version = /(?:^|\/)gemini-(\d+(?:\.\d+)?)(?![\d.])/i.exec(modelId)?.[1];
  return version === undefined ? undefined : Number(version);
}

/** True for a model that refuses a past tool call without its thought signature. */
export const wantsSignatures = (modelId: string): boolean =>
  (geminiGeneration(modelId) ?? (/gemini-.*-latest$/i.test(modelId) ? 3 : 0)) >= 3;

/**
 * @param maxTokens the output limit that is asked for; without one the model has room for every budget.
 * @returns undefined when the model takes no such thing.
 */
export function thinkingConfig(modelId: string, level: ThinkingLevel, maxTokens?: number): JsonRecord | undefined {
  const generation = geminiGeneration(modelId);
  if (generation !== undefined && generation < 2.5) return undefined;
  const config: JsonRecord = level === "none" ? {} : { includeThoughts: true };
  if (level === "default") return config;
  // A name that tells nothing gets a budget: 3.x still takes one, 2.5 would refuse a level.
  if (generation !== undefined && generation >= 3) config.thinkingLevel = levelFor(modelId, generation, level);
  else config.thinkingBudget = budgetFor(modelId, level, maxTokens);
  // Thoughts that are not had cannot be shown: the two together are refused.
  return config.thinkingBudget === 0 ? { thinkingBudget: 0 } : config;
}

function levelFor(modelId: string, generation: number, level: AskedLevel): string {
  switch (level) {
    case "none":
      // The least there is: no 3.x model can be kept from thinking, and not all know `minimal`.
      return /flash/i.test(modelId) && generation < 3.7 ? "minimal" : "low";
    case "low":
      return "low";
    case "medium":
      return /gemini-3-pro/i.test(modelId) ? "high" : "medium";
    default:
      return "high";
  }
}

const BUDGETS = { low: 2048, medium: 8192, high: 24_576, xhigh: 24_576, max: 24_576 } as const;

/** The least that a model takes: the largest ones cannot be kept from thinking, the smallest think much or not at all. */
function leastBudget(modelId: string): number {
  if (/pro/i.test(modelId)) return 128;
  return /flash-lite/i.test(modelId) ? 512 : 1;
}

function budgetFor(modelId: string, level: AskedLevel, maxTokens = Number.POSITIVE_INFINITY): number {
  const isPro = /pro/i.test(modelId);
  const least = leastBudget(modelId);
  if (level === "none") return isPro ? least : 0;
  const wanted = isPro && (level === "xhigh" || level === "max") ? 32_768 : BUDGETS[level];
  return fittingBudget(level, wanted, least, maxTokens) ?? (isPro ? least : 0);
}
