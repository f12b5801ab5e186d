// Which models there are: those of the configuration file, well-known ones of each built-in provider whose key is set,
// and the demo model. A model that cannot be used is listed with the reason.

import { BUILT_IN, type BuiltIn, DEFAULT_URL, type KnownModel } from "./built-in-models.js";
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
 * Puts the registry together. `wanted` (OMNID_MODEL) wins over `preferred` (the file's), and that over the first model,
 * also where its key is missing: nobody's prompts go to another model than the one that was meant.
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
    if (ref !== undefined && provider !== undefined)
      add(fromProvider(provider, guess(provider, ref.modelId, env), env));
  }
  if (wanted !== undefined && !models.has(keyOf(wanted))) return { unknown: wanted, from: "wanted" };
  if (preferred !== undefined && !models.has(keyOf(preferred))) return { unknown: preferred, from: "preferred" };
  const all = [...models.values()];
  const { provider, modelId } = wanted ?? preferred ?? all[0]?.spec ?? DEMO;
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
function guess(provider: BuiltIn, modelId: string, env: Environment): KnownModel {
  const thinking = thinksByName(protocolFor(provider, modelId, env), modelId);
  return { modelId, contextWindow: 128_000, vision: true, thinking };
}

function fromProvider(provider: BuiltIn, model: KnownModel, env: Environment): RegisteredModel {
  const apiKey = env[provider.keyName];
  const spec: ModelSpec = {
    provider: provider.provider,
    protocol: protocolFor(provider, model.modelId, env),
    baseUrl: trimSlash(env[provider.urlName] ?? provider.baseUrl),
    ...model,
    ...(apiKey === undefined ? {} : { apiKey }),
  };
  return judge(spec, apiKey === undefined ? `${provider.keyName} is not set` : undefined);
}

// What stands at another address is a gateway or a compatible server: it speaks the protocol that all of them speak.
function protocolFor(provider: BuiltIn, modelId: string, env: Environment): Protocol {
  if (env[provider.urlName] !== undefined) return provider.protocol;
  return provider.protocolOf?.(modelId) ?? provider.protocol;
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
