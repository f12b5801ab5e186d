// What a provider of the chat protocol takes and what it calls it. Strict servers answer 400 or 422 to a field they do
// not know, so everything beyond the common core hangs on the provider's name or host.

import type { ThinkingLevel } from "../../engine/ports.js";
import type { ModelSpec } from "../model-spec.js";
import { effortOf, wantsResponses } from "./openai-effort.js";
import { type ProviderRow, providerRow } from "./provider-rows.js";

export type AskedLevel = Exclude<ThinkingLevel, "default">;

export interface ChatDialect {
  /** The header that carries the key. */
  keyHeader: "authorization" | "api-key";
  maxTokensField: "max_completion_tokens" | "max_tokens";
  /** Takes `stream_options`; without it usage comes unasked or never. */
  streamOptions: boolean;
  promptCacheKey: boolean;
  /** Tool call ids must be nine letters and digits. */
  shortCallIds: boolean;
  /** Refuses two user messages in a row. */
  mergeUsers: boolean;
  /** Refuses a past assistant message with calls that lacks `reasoning_content`. */
  needsReasoningContent: boolean;
  /** Answers 400 to newer models' reasoning effort next to tools. */
  noEffortWithTools: boolean;
  /** The fields that ask a model for a thinking level. */
  thinking(level: AskedLevel, modelId: string): Record<string, unknown>;
}

const effort = (level: AskedLevel, modelId: string) => ({ reasoning_effort: effortOf(modelId, level, "high") });
const wideEffort = (level: AskedLevel, modelId: string) => ({ reasoning_effort: effortOf(modelId, level, "xhigh") });
const switched = (level: AskedLevel) => ({ thinking: { type: level === "none" ? "disabled" : "enabled" } });
const templated = (level: AskedLevel) => ({ chat_template_kwargs: { enable_thinking: level !== "none" } });

const COMMON: ChatDialect = {
  keyHeader: "authorization",
  maxTokensField: "max_tokens",
  streamOptions: true,
  promptCacheKey: false,
  shortCallIds: false,
  mergeUsers: false,
  needsReasoningContent: false,
  noEffortWithTools: false,
  thinking: effort,
};

/** The templates of local servers often insist that roles take turns. */
const LOCAL: Partial<ChatDialect> = { mergeUsers: true, thinking: templated };

const ROWS: readonly (ProviderRow & { dialect: Partial<ChatDialect> })[] = [
  {
    names: ["openai"],
    hosts: ["api.openai.com"],
    dialect: {
      maxTokensField: "max_completion_tokens",
      promptCacheKey: true,
      noEffortWithTools: true,
      thinking: wideEffort,
    },
  },
  {
    names: ["azure", "azure-openai"],
    hosts: ["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"],
    dialect: {
      keyHeader: "api-key",
      maxTokensField: "max_completion_tokens",
      noEffortWithTools: true,
      thinking: wideEffort,
    },
  },
  {
    names: ["openrouter"],
    hosts: ["openrouter.ai"],
    // It finds the nearest word that the model takes by itself.
    dialect: { thinking: (level) => ({ reasoning: { effort: level === "max" ? "xhigh" : level } }) },
  },
  { names: ["deepseek"], hosts: ["api.deepseek.com"], dialect: { needsReasoningContent: true, thinking: switched } },
  { names: ["moonshot", "moonshotai", "kimi"], hosts: ["moonshot.ai", "moonshot.cn"], dialect: { thinking: switched } },
  { names: ["zai", "z.ai", "zhipu"], hosts: ["z.ai", "bigmodel.cn"], dialect: { thinking: switched } },
  { names: ["xai", "x.ai"], hosts: ["api.x.ai"], dialect: {} },
  {
    names: ["groq"],
    hosts: ["api.groq.com"],
    dialect: {
      maxTokensField: "max_completion_tokens",
      thinking: (level, modelId) => ({ ...effort(level, modelId), reasoning_format: "parsed" }),
    },
  },
  {
    names: ["qwen", "dashscope", "alibaba"],
    hosts: ["dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"],
    dialect: { thinking: (level) => ({ enable_thinking: level !== "none" }) },
  },
  {
    names: ["mistral"],
    hosts: ["api.mistral.ai"],
    dialect: { streamOptions: false, shortCallIds: true, mergeUsers: true, thinking: () => ({}) },
  },
  { names: ["vllm", "llama.cpp", "llamacpp", "llama-cpp", "sglang", "gpustack"], hosts: [], dialect: LOCAL },
  { names: ["ollama", "lmstudio", "lm-studio"], hosts: [], dialect: { mergeUsers: true } },
];

/** The fields that ask for a level; none where the level would cost the tools. */
export function askedThinking(
  dialect: ChatDialect,
  level: AskedLevel,
  modelId: string,
  withTools: boolean,
): Record<string, unknown> {
  const fields = dialect.thinking(level, modelId);
  const isRefused = withTools && dialect.noEffortWithTools && wantsResponses(modelId);
  return isRefused && fields.reasoning_effort !== "none" ? {} : fields;
}

export const chatDialect = (model: Pick<ModelSpec, "provider" | "baseUrl">): ChatDialect => ({
  ...COMMON,
  ...providerRow(ROWS, model)?.dialect,
});
