// What a provider of the Responses protocol takes. The protocol's own fields are on; where a server is known to refuse
// one, or has no use for it, its row turns it off.

import type { ModelSpec } from "../model-spec.js";
import type { Effort } from "./openai-effort.js";
import { type ProviderRow, providerRow } from "./provider-rows.js";

export interface ResponsesDialect {
  /** The header that carries the key. */
  keyHeader: "authorization" | "api-key";
  /** Gives reasoning in an encrypted form when asked. */
  encryptedReasoning: boolean;
  /** Reads back reasoning that is signed and not encrypted. */
  signedReasoning: boolean;
  /** Retells reasoning when asked. */
  summaries: boolean;
  promptCacheKey: boolean;
  streamOptions: boolean;
  /** Reads PDF files. */
  documents: boolean;
  /** The highest effort. */
  most: Effort;
}

const OPENAI: ResponsesDialect = {
  keyHeader: "authorization",
  encryptedReasoning: true,
  signedReasoning: false,
  summaries: true,
  promptCacheKey: true,
  streamOptions: true,
  documents: true,
  most: "xhigh",
};

const COMPATIBLE: ResponsesDialect = { ...OPENAI, promptCacheKey: false, streamOptions: false, documents: false };

/** Reasoning of open models comes as it is: there is nothing to encrypt or to retell. */
const OPEN: ResponsesDialect = { ...COMPATIBLE, encryptedReasoning: false, summaries: false, most: "high" };

const ROWS: readonly (ProviderRow & { dialect: ResponsesDialect })[] = [
  { names: ["openai"], hosts: ["api.openai.com"], dialect: OPENAI },
  {
    names: ["azure", "azure-openai"],
    hosts: ["openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"],
    dialect: { ...OPENAI, keyHeader: "api-key" },
  },
  { names: ["github-copilot", "copilot"], hosts: ["githubcopilot.com"], dialect: COMPATIBLE },
  { names: ["bedrock", "bedrock-mantle", "amazon-bedrock"], hosts: ["api.aws", "amazonaws.com"], dialect: COMPATIBLE },
  {
    names: ["openrouter"],
    hosts: ["openrouter.ai"],
    dialect: { ...COMPATIBLE, documents: true, signedReasoning: true },
  },
  { names: ["xai", "x.ai"], hosts: ["api.x.ai"], dialect: { ...COMPATIBLE, most: "high" } },
  { names: ["deepseek"], hosts: ["api.deepseek.com"], dialect: OPEN },
  { names: ["groq"], hosts: ["api.groq.com"], dialect: OPEN },
  {
    names: ["vllm", "llama.cpp", "llamacpp", "llama-cpp", "sglang", "ollama", "lmstudio", "lm-studio"],
    hosts: [],
    dialect: OPEN,
  },
];

export const responsesDialect = (model: Pick<ModelSpec, "provider" | "baseUrl">): ResponsesDialect =>
  providerRow(ROWS, model)?.dialect ?? OPENAI;
