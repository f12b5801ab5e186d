// Which models there are: those of the configuration file, well-known ones of each built-in provider whose key is set,
// and the demo model. A model that cannot be used is listed with the reason.

import type { ConfiguredModel, ModelRef } from "./config-file.js";
import { speaks } from "./llm/client.js";
import type { ModelSpec, Protocol } from "./llm/model-spec.js";
import { thinksByName } from "./llm/thinking-support.js";
import type { ModelView } from "./session/types.js";

export interface RegisteredModel {
  spec: ModelSpec;
  available: boolean;
  /** Why it is not available. */
  reason?: string;
}

export interface ModelRegistry {
  readonly models: readonly RegisteredModel[];
  readonly defaultModel: ModelRef;
  find(provider: string, modelId: string): RegisteredModel | undefined;
}

export type Environment = Readonly<Record<string, string | undefined>>;

interface BuiltIn {
  provider: string;
  protocol: Protocol;
  keyName: string;
  urlName: string;
  baseUrl: string;
  models: readonly Omit<ModelSpec, "provider" | "protocol" | "baseUrl" | "apiKey">[];
}

const OPENAI_URL = "https://api.openai.com/v1";
const DEFAULT_URL: Record<Protocol, string> = {
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
  cost?: ModelSpec["cost"],
): BuiltIn["models"][number] => ({ modelId, contextWindow, maxOutputTokens, vision: true, thinking, cost });

// Windows and list prices, the latter in US dollars per million tokens: Anthropic's of October 2026, OpenAI's and
// Google's of the end of 2025. A price that depends on the length of the prompt is left out. `cost` in the
// configuration file overrides what is here.
const BUILT_IN: readonly BuiltIn[] = [
  {
    provider: "openai",
    protocol: "openai-chat",
    keyName: "OPENAI_API_KEY",
    urlName: "OPENAI_BASE_URL",
    baseUrl: DEFAULT_URL["openai-chat"],
    models: [
      known("gpt-5", 400_000, 128_000, true, { input: 1.25, output: 10, cacheRead: 0.125 }),
      known("gpt-5-mini", 400_000, 128_000, true, { input: 0.25, output: 2, cacheRead: 0.025 }),
      known("gpt-4.1", 1_047_576, 32_768, false, { input: 2, output: 8, cacheRead: 0.5 }),
    ],
  },
  {
    provider: "anthropic",
    protocol: "anthropic-messages",
    keyName: "ANTHROPIC_API_KEY",
    urlName: "ANTHROPIC_BASE_URL",
    baseUrl: DEFAULT_URL["anthropic-messages"],
    models: [
      known("claude-sonnet-4-5", 200_000, 64_000, true, { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 }),
      known("claude-opus-4-5", 200_000, 64_000, true, { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 }),
      known("claude-haiku-4-5", 200_000, 64_000, true, { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 }),
    ],
  },
  {
    provider: "gemini",
    protocol: "gemini",
    keyName: "GEMINI_API_KEY",
    urlName: "GEMINI_BASE_URL",
    baseUrl: DEFAULT_URL.gemini,
    models: [
      known("gemini-2.5-pro", 1_048_576, 65_536, true),
      known("gemini-2.5-flash", 1_048_576, 65_536, true, { input: 0.3, output: 2.5, cacheRead: 0.03 }),
    ],
  },
];

const DEMO: ModelSpec = {
  provider: "demo",
  modelId: "demo",
  protocol: "demo",
  baseUrl: "",
  contextWindow: 128_000,
  vision: true,
  thinking: true,
};

/**
 * Puts the registry together. `wanted` (OMNID_MODEL) wins over `preferred` (the file's), and that over the first model
 * that can be used.
 * @returns the registry, or `unknown` with the default that names no model.
 */
export function buildRegistry(
  configured: readonly ConfiguredModel[],
  env: Environment,
  wanted: ModelRef | undefined,
  preferred: ModelRef | undefined,
): { registry: ModelRegistry } | { unknown: ModelRef; from: "wanted" | "preferred" } {
  const models = new Map<string, RegisteredModel>();
  const add = (model: RegisteredModel) => {
    const key = keyOf(model.spec);
    if (!models.has(key)) models.set(key, model);
  };
  for (const model of configured) add(fromFile(model, env));
  for (const provider of BUILT_IN) {
    if (env[provider.keyName] === undefined) continue;
    for (const model of provider.models) add(fromProvider(provider, model, env));
  }
  add({ spec: DEMO, available: true });
  for (const ref of [wanted, preferred]) {
    const provider = BUILT_IN.find((each) => each.provider === ref?.provider);
    if (ref !== undefined && provider !== undefined) add(fromProvider(provider, guess(provider, ref.modelId), env));
  }
  if (wanted !== undefined && !models.has(keyOf(wanted))) return { unknown: wanted, from: "wanted" };
  if (preferred !== undefined && !models.has(keyOf(preferred))) return { unknown: preferred, from: "preferred" };
  const all = [...models.values()];
  const first = all.find((model) => model.available)?.spec ?? DEMO;
  const { provider, modelId } = wanted ?? preferred ?? first;
  const find = (p: string, m: string) => models.get(keyOf({ provider: p, modelId: m }));
  return { registry: { models: all, defaultModel: { provider, modelId }, find } };
}

/** What `GET /models` may tell: no address, no key. */
export function viewOf({ spec, available, reason }: RegisteredModel): ModelView {
  const { provider, modelId, protocol, contextWindow, vision } = spec;
  return { provider, modelId, protocol, contextWindow, vision, available, ...(reason === undefined ? {} : { reason }) };
}

function keyOf({ provider, modelId }: ModelRef): string {
  return JSON.stringify([provider, modelId]);
}

// A model that is not in the catalogue is given the limits that nearly every current one has.
function guess({ protocol }: BuiltIn, modelId: string): BuiltIn["models"][number] {
  return { modelId, contextWindow: 128_000, vision: true, thinking: thinksByName(protocol, modelId) };
}

function fromProvider(provider: BuiltIn, model: BuiltIn["models"][number], env: Environment): RegisteredModel {
  const { cost, ...rest } = model;
  const apiKey = env[provider.keyName];
  const spec: ModelSpec = {
    provider: provider.provider,
    protocol: provider.protocol,
    baseUrl: trimSlash(env[provider.urlName] ?? provider.baseUrl),
    ...rest,
    ...(cost === undefined ? {} : { cost }),
    ...(apiKey === undefined ? {} : { apiKey }),
  };
  return judge(spec, apiKey === undefined ? `${provider.keyName} is not set` : undefined);
}

function fromFile(model: ConfiguredModel, env: Environment): RegisteredModel {
  const { apiKeyEnv, apiKey, baseUrl, ...rest } = model;
  // A provider's own key goes only to the provider's own address: not to one that the entry names, nor to the usual
  // one of a protocol that is another provider's.
  const builtIn = BUILT_IN.find(
    (each) => each.provider === model.provider && each.baseUrl === DEFAULT_URL[model.protocol],
  );
  const inherited = baseUrl === undefined && apiKeyEnv === undefined && apiKey === undefined ? builtIn : undefined;
  const keyName = apiKeyEnv ?? inherited?.keyName;
  const key = apiKey ?? (keyName === undefined ? undefined : env[keyName]);
  const fallback = (builtIn && env[builtIn.urlName]) ?? DEFAULT_URL[model.protocol];
  const spec: ModelSpec = {
    ...rest,
    thinking: model.thinking ?? thinksByName(model.protocol, model.modelId),
    baseUrl: trimSlash(baseUrl ?? fallback),
    ...(key === undefined ? {} : { apiKey: key }),
  };
  const missing = keyName !== undefined && key === undefined;
  return judge(spec, missing ? `${keyName} is not set` : undefined);
}

function judge(spec: ModelSpec, keyProblem: string | undefined): RegisteredModel {
  const reason = speaks(spec.protocol) ? keyProblem : `this version does not speak ${spec.protocol} yet`;
  return reason === undefined ? { spec, available: true } : { spec, available: false, reason };
}

function trimSlash(url: string): string {
  return url.replace(/\/+$/, "");
}
