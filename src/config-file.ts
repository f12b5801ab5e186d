// The JSON file that OMNID_CONFIG names: its schema, and its problems with the path of each. Unknown keys are problems:
// a setting that is misspelt would otherwise be silently off.

import { z } from "zod";
import { COMPACTION_PROMPT } from "./engine/engine-notes.js";
import { PROTOCOLS } from "./llm/model-spec.js";
import { secretsOf } from "./mcp-settings.js";
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
    /** Left out: what the model's name tells. */
    thinking: z.boolean().optional(),
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

const NUL = "must hold no NUL character";
const withoutNul = z.string().refine((text) => !text.includes("\0"), NUL);

const mcpProcessSchema = z.strictObject({
  command: name.refine((text) => !text.includes("\0"), NUL),
  args: z.array(withoutNul).default([]),
  env: z.record(z.string().regex(/^[^=\0]+$/, "must be the name of a variable"), withoutNul).default({}),
});

const mcpHttpSchema = z.strictObject({
  url: httpUrl.refine((text) => !hasUserInfo(text), "must hold no user name or password; use headers"),
  headers: z
    .record(
      z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be the name of a header"),
      // Problems name the place and never the value.
      z.string().regex(/^[\t\x20-\x7e\x80-\xff]*$/, "must be what a header can carry"),
    )
    .default({}),
});

/** A process or an address: with both schemas in a union, a problem in either would have no path. */
const mcpServerSchema = z.unknown().transform((given, context) => {
  const keys = typeof given === "object" && given !== null ? Object.keys(given) : [];
  if (!keys.includes("command") && !keys.includes("url")) {
    context.addIssue({ code: "custom", message: "must have a command or a url" });
    return z.NEVER;
  }
  const parsed = keys.includes("url") ? mcpHttpSchema.safeParse(given) : mcpProcessSchema.safeParse(given);
  if (parsed.success) return parsed.data;
  for (const { path, message } of parsed.error.issues) context.addIssue({ code: "custom", path, message });
  return z.NEVER;
});

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
  mcpServers: z.record(z.string().min(1, "must have a name"), mcpServerSchema).default({}),
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

/** What the settings of the MCP servers hold that must not leave the process. */
export const mcpSecrets = ({ mcpServers }: ConfigFile): string[] => Object.values(mcpServers).flatMap(secretsOf);

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

function hasUserInfo(text: string): boolean {
  const { username, password } = URL.canParse(text) ? new URL(text) : { username: "", password: "" };
  return username !== "" || password !== "";
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
