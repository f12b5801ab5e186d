// How hard a model is asked to think, in both of OpenAI's protocols. Each family takes some of the words and answers 400
// to the others, so a level becomes the nearest word that the family takes: the highest not above it, else the lowest.

import type { ThinkingLevel } from "../../engine/ports.js";

const WORDS = ["none", "minimal", "low", "medium", "high", "xhigh"] as const;
export type Effort = (typeof WORDS)[number];

const WIDE: readonly Effort[] = ["none", "low", "medium", "high", "xhigh"];

/** A model's id may have its maker before it, and a date or a size behind. The first row that fits counts. */
const FAMILIES: readonly [RegExp, readonly Effort[]][] = [
  [/\bo\d(?:-|$)/, ["low", "medium", "high"]],
  [/\bgpt-oss\b/, ["low", "medium", "high"]],
  [/\bgpt-5-pro\b/, ["high"]],
  [/\bgpt-[\d.]+-pro\b/, ["medium", "high", "xhigh"]],
  [/\bgpt-5(?:\.1)?-codex(?!-max)/, ["low", "medium", "high"]],
  [/\bgpt-[\d.]+-codex/, ["low", "medium", "high", "xhigh"]],
  [/\bgpt-5(?![.\d])/, ["minimal", "low", "medium", "high"]],
  [/\bgpt-5\.1\b/, ["none", "low", "medium", "high"]],
  [/\bgpt-6(?:-astra|\.[1-9])/, ["low", "medium", "high", "xhigh"]],
];

/** @param most the highest word that the provider takes, whatever the model. */
export function effortOf(modelId: string, level: Exclude<ThinkingLevel, "default">, most: Effort): Effort {
  const taken = FAMILIES.find(([pattern]) => pattern.test(modelId.toLowerCase()))?.[1] ?? WIDE;
  const limit = Math.min(rank(level === "max" ? "xhigh" : level), rank(most));
  return taken.findLast((word) => rank(word) <= limit) ?? (taken[0] as Effort);
}

const rank = (word: Effort): number => WORDS.indexOf(word);

/**
 * True for models of OpenAI's that reason beside their tools by the Responses protocol only. By the chat protocol they
 * answer 400 to an effort next to tools, `none` excepted, and the newest to tools at all.
 */
export const wantsResponses = (modelId: string): boolean =>
  /(?:^|[/.:])gpt-(?:5\.(?:[4-9]|\d\d)|[6-9])(?![0-9])/i.test(modelId) && !/-chat\b/i.test(modelId);
