// Well-known models of the providers that need no more than their key. A table that ages: each group says when it was
// checked. The configuration file overrides every row, and any other model of a provider can be named.
//
// Windows and limits in tokens, list prices in US dollars per million tokens. Where the price depends on the length of
// the prompt there is none here: a wrong sum is worse than no sum. Of a provider's models the first is the default.

import type { ModelCost, ModelSpec, Protocol } from "./llm/model-spec.js";
import { wantsResponses } from "./llm/wire/openai-effort.js";

export type KnownModel = Omit<ModelSpec, "provider" | "protocol" | "baseUrl" | "apiKey">;

export interface BuiltIn {
  provider: string;
  /** How its models are spoken to, also at another address than its own. */
  protocol: Protocol;
  keyName: string;
  urlName: string;
  baseUrl: string;
  /** How a model is spoken to at the provider's own address, where that is another protocol. */
  protocolOf?(modelId: string): Protocol;
  models: readonly KnownModel[];
}

const OPENAI_URL = "https://api.openai.com/v1";
export const DEFAULT_URL: Record<Protocol, string> = {
  "openai-chat": OPENAI_URL,
  "openai-responses": OPENAI_URL,
  "anthropic-messages": "https://api.anthropic.com",
  gemini: "https://generativelanguage.googleapis.com",
  demo: "",
};

const known = (
  modelId: string,
  contextWindow: number,
  maxOutputTokens: number,
  thinking: boolean,
  cost?: ModelCost,
): KnownModel => ({ modelId, contextWindow, maxOutputTokens, vision: true, thinking, ...(cost && { cost }) });

// Checked in November 2026 against tables that quote the provider's own page, of September to November 2026. GPT-6 costs
// more above 272,000 tokens of prompt. gpt-5 is of September 2026 and its limits are not confirmed since 2025.
const OPENAI: BuiltIn = {
  provider: "openai",
  protocol: "openai-chat",
  keyName: "OPENAI_API_KEY",
  urlName: "OPENAI_BASE_URL",
  baseUrl: OPENAI_URL,
  protocolOf: (modelId) => (wantsResponses(modelId) ? "openai-responses" : "openai-chat"),
  models: [
    known("gpt-6.1-sol", 1_050_000, 128_000, true),
    known("gpt-6-luna", 1_050_000, 128_000, true),
    known("gpt-5", 400_000, 128_000, true, { input: 1.25, output: 10, cacheRead: 0.125 }),
    known("gpt-5-mini", 400_000, 128_000, true, { input: 0.25, output: 2, cacheRead: 0.025 }),
    known("gpt-4.1", 1_047_576, 32_768, false, { input: 2, output: 8, cacheRead: 0.5 }),
  ],
};

// Checked in November 2026 against the provider's own pages, of October 2026. Writes are those of the five-minute cache,
// the only one that is asked for. Haiku 5.5 costs more above 100,000 tokens of prompt.
const ANTHROPIC: BuiltIn = {
  provider: "anthropic",
  protocol: "anthropic-messages",
  keyName: "ANTHROPIC_API_KEY",
  urlName: "ANTHROPIC_BASE_URL",
  baseUrl: DEFAULT_URL["anthropic-messages"],
  models: [
    known("claude-sonnet-5-5", 1_000_000, 128_000, true, { input: 2, output: 10, cacheRead: 0.1, cacheWrite: 2.5 }),
    known("claude-opus-5-5", 1_000_000, 128_000, true, { input: 4, output: 20, cacheRead: 0.2, cacheWrite: 5 }),
    known("claude-haiku-5-5", 1_000_000, 128_000, true),
    known("claude-fable-5-1", 1_000_000, 128_000, true, { input: 10, output: 50, cacheRead: 0.25, cacheWrite: 12.5 }),
    known("claude-sonnet-4-5", 200_000, 64_000, true, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }),
    known("claude-opus-4-5", 200_000, 64_000, true, { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }),
    known("claude-haiku-4-5", 200_000, 64_000, true, { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 }),
  ],
};

// Checked in November 2026 against a table that quotes the provider's own page of October 2026; what is read from a cache
// is a tenth there by other tables only. 3.8 Flash costs twice as much from 2027 on. The Pro models cost more above
// 200,000 tokens of prompt.
const GEMINI: BuiltIn = {
  provider: "gemini",
  protocol: "gemini",
  keyName: "GEMINI_API_KEY",
  urlName: "GEMINI_BASE_URL",
  baseUrl: DEFAULT_URL.gemini,
  models: [
    known("gemini-3.8-flash", 1_048_576, 65_536, true, { input: 0.75, output: 3.75, cacheRead: 0.075 }),
    known("gemini-3.1-pro-preview", 1_048_576, 65_536, true),
    known("gemini-2.5-pro", 1_048_576, 65_536, true),
    known("gemini-2.5-flash", 1_048_576, 65_536, true, { input: 0.3, output: 2.5, cacheRead: 0.03 }),
  ],
};

export const BUILT_IN: readonly BuiltIn[] = [OPENAI, ANTHROPIC, GEMINI];
