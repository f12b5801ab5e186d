// Which models think, by their names alone: the default of `thinking` where a configuration does not say it. Only what is
// sure: a model that does not reason answers 400 to what reasoning models are asked for, and names that somebody chose
// (a deployment, a tuned model) tell nothing.

import { unreachable } from "../result.js";
import type { ModelSpec, Protocol } from "./model-spec.js";
import { anthropicFamily, askForThinking } from "./wire/anthropic-family.js";
import { geminiGeneration, thinkingConfig } from "./wire/gemini-thinking.js";
import { askedThinking, chatDialect } from "./wire/openai-chat-dialect.js";

/** Makers may stand before the name, dates and sizes behind it. The chat variants of reasoning families do not reason. */
const OPENAI = /(?:^|[/.:])(?:o1(?!-mini|-preview)|o[3-9]|gpt-[5-9](?:\.\d+)?|codex-mini)(?![a-z0-9.])(?!.*-chat\b)/i;
/** Its reasoning is in the clear, so there is an effort to ask for and nothing encrypted. */
const GPT_OSS = /(?:^|[/.:])gpt-oss\b/i;
const GEMINI_ALIAS = /(?:^|\/)gemini-(?:pro|flash|flash-lite)-latest$/i;
const GEMINI_OTHER = /image|tts|audio|live|embedding/i;

export function thinksByName(protocol: Protocol, modelId: string): boolean {
  switch (protocol) {
    case "openai-chat":
      return OPENAI.test(modelId) || GPT_OSS.test(modelId);
    case "openai-responses":
      return OPENAI.test(modelId);
    case "anthropic-messages":
      return isThinkingClaude(modelId);
    case "gemini":
      return GEMINI_ALIAS.test(modelId) || ((geminiGeneration(modelId) ?? 0) >= 2.5 && !GEMINI_OTHER.test(modelId));
    case "demo":
      return true;
    default:
      return unreachable(protocol);
  }
}

/** A Claude without a number in its name may be any. */
const isThinkingClaude = (modelId: string): boolean =>
  /claude\D*\d/i.test(modelId) && anthropicFamily({ modelId, contextWindow: 200_000 }).style.kind !== "none";

/** True for a model to which a thinking level makes no difference: it is taken from every caller and never sent. */
export function ignoresThinkingLevel(model: ModelSpec): boolean {
  if (model.protocol === "demo") return false;
  if (!model.thinking) return true;
  if (model.protocol === "openai-chat") {
    // A Session without a single tool would be an odd one.
    return Object.keys(askedThinking(chatDialect(model), "high", model.modelId, true)).length === 0;
  }
  if (model.protocol === "gemini") return thinkingConfig(model.modelId, "high", model.maxOutputTokens) === undefined;
  if (model.protocol !== "anthropic-messages") return false;
  const family = anthropicFamily(model);
  const { fields } = askForThinking(family, "high", model.maxOutputTokens ?? family.maxTokens);
  return Object.keys(fields).length === 0;
}
