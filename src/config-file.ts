// The JSON file that OMNID_CONFIG names: its schema, and its problems with the path of each. Unknown keys are problems:
// a setting that is misspelt would otherwise be silently off.

import { z } from "zod";
import { COMPACTION_PROMPT } from "./engine/engine-notes.js";
import { PROTOCOLS } from "./llm/model-spec.js";
import { compactionModeSchema } from "./protocol/payloads.js";

const name = z.string().min(1);
const dollars = z.number().nonnegative();
const count = z.number().int().positive();
/** -1 means no limit. */
const limit = z
  .number()
  .int()
  .min(-1)
  .refine((n) => n !== 0, "must be -1 (no limit) or a positive number");
const httpUrl = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

const modelSchema = z
  .strictObject({
    provider: name.regex(/^[^/\s]+$/, "must hold neither a slash nor white space"),
    modelId: name,
    protocol: z.enum(PROTOCOLS),
    baseUrl: httpUrl.optional(),
    apiKey: name.optional(),
    apiKeyEnv: name.optional(),
    contextWindow: count.default(128_000),
    maxOutputTokens: count.optional(),
    vision: z.boolean().default(false),
    thinking: z.boolean().default(false),
    cost: z
      .strictObject({
        input: dollars,
        output: dollars,
        cacheRead: dollars.optional(),
        cacheWrite: dollars.optional(),
      })
      .optional(),
  })
  .refine((model) => model.apiKey === undefined || model.apiKeyEnv === undefined, {
    path: ["apiKey"],
    error: "give apiKey or apiKeyEnv, not both",
  });

const mcpServerSchema = z.union([
  z.strictObject({
    command: name,
    args: z.array(z.string()).default([]),
    env: z.record(z.string(), z.string()).default({}),
  }),
  z.strictObject({ url: httpUrl, headers: z.record(z.string(), z.string()).default({}) }),
]);

const modelRefSchema = z.strictObject({ provider: name, modelId: name });

export const configFileSchema = z.strictObject({
  models: z.array(modelSchema).default([]),
  defaultModel: modelRefSchema.optional(),
  systemPrompt: z.string().optional(),
  maxTurns: limit.default(-1),
  compaction: z
    .strictObject({
      /** Tokens. -1 also keeps a context that the provider finds too long. */
      maxContextLength: limit.default(256_000),
      maxSessionTurns: limit.default(-1),
      mode: compactionModeSchema.default("summarize"),
      prompt: z.string().trim().min(1).default(COMPACTION_PROMPT),
    })
    .prefault({}),
  mcpServers: z.record(z.string(), mcpServerSchema).default({}),
});

export type ConfigFile = z.infer<typeof configFileSchema>;
export type ConfiguredModel = ConfigFile["models"][number];
export type ModelRef = z.infer<typeof modelRefSchema>;

/**
 * Reads the text of a configuration file.
 * @returns the file, or every problem in it, each with its path.
 */
export function parseConfigFile(text: string): { file: ConfigFile } | { problems: string[] } {
  let value: unknown;
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    return { problems: [`is not JSON: ${jsonFault(error)}`] };
  }
  const parsed = configFileSchema.safeParse(value);
  const problems = parsed.success ? duplicates(parsed.data.models) : parsed.error.issues.map(describe);
  return parsed.success && problems.length === 0 ? { file: parsed.data } : { problems };
}

// V8 quotes the text around the fault, which may be a key that the file holds.
function jsonFault(error: unknown): string {
  const place = /position \d+(?: \(line \d+ column \d+\))?/.exec(String(error));
  return place === null ? "it ends too early or is malformed" : `malformed at ${place[0]}`;
}

function describe(issue: z.core.$ZodIssue): string {
  return `${pathOf(issue.path)}: ${issue.message}`;
}

function pathOf(path: readonly PropertyKey[]): string {
  const text = path.map((step) => (typeof step === "number" ? `[${step}]` : `.${String(step)}`)).join("");
  return text.replace(/^\./, "") || "the file";
}

function duplicates(models: readonly ConfiguredModel[]): string[] {
  const seen = new Set<string>();
  return models.flatMap(({ provider, modelId }, index) => {
    const key = JSON.stringify([provider, modelId]);
    if (seen.has(key)) return [`models[${index}]: ${provider}/${modelId} is listed twice`];
    seen.add(key);
    return [];
  });
}
