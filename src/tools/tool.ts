// What a tool is to the environment: a definition for the model, a parser for its arguments, and a run that yields text
// and returns how it ended. A tool never makes messages, so it cannot break streaming, pairing or limits.

import { z } from "zod";
import type { Clock } from "../clock.js";
import type { StopReason, ToolDefinition } from "../protocol/payloads.js";
import { reasonOf } from "../reason-of.js";
import { ok, type Result, refuse } from "../result.js";

export interface ToolContext {
  /** Aborts when the call is to end, with the reason of the Task's interrupt. A tool that goes on is abandoned after its grace. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly toolCallId: string;
  /** What the environment lets through; a tool that can choose what to show stays below it. */
  readonly maxOutputChars: number;
  /** Puts on record that a child Session works for this call. */
  pointTo(childSessionId: string): Promise<void>;
}

/** How a run ended; its text was yielded before. */
export interface ToolOutput {
  stop?: Exclude<StopReason, "completed">;
  exitCode?: number;
  /** `data:` URLs. */
  images?: string[];
  /** One last line of text, set on a line of its own. */
  note?: string;
}

/** Arguments that fit, or the text that tells the model what to fix. */
export type Parsed<Args> = Result<Args, "bad_arguments">;

export interface Tool<Args = unknown> {
  readonly definition: ToolDefinition;
  /** True for a tool that may change something. */
  readonly mayWrite: boolean;
  /** How long a run may take to end after an abort before it is abandoned, in ms. Left out: 200. */
  readonly graceMs?: number;
  parse(json: string): Parsed<Args>;
  /** Yields text as it appears. May throw: a `ToolFailure` is told as it is, anything else as a failure of the tool. */
  run(args: Args, context: ToolContext): AsyncGenerator<string, ToolOutput, void>;
}

/** Tools that come and go while a Session lives. */
export interface ToolSource {
  /** What a new context is offered. */
  tools(): readonly Tool[];
  /** A tool that some context was offered, also while nobody can say whether it is still there. */
  find(name: string): Tool | undefined;
}

/** Ends a run as `failed`; the message is what the model reads, so it says what to do instead. */
export class ToolFailure extends Error {
  override readonly name = "ToolFailure";
}

export interface ToolSpec<Shape extends z.ZodRawShape> {
  name: string;
  description: string;
  parameters: z.ZodObject<Shape>;
  mayWrite: boolean;
  graceMs?: number;
  run(args: z.output<z.ZodObject<Shape>>, context: ToolContext): AsyncGenerator<string, ToolOutput, void>;
}

/** Makes a tool of one zod schema: it is the validator and, as JSON Schema, what the model sees. */
export function defineTool<Shape extends z.ZodRawShape>(spec: ToolSpec<Shape>): Tool<z.output<z.ZodObject<Shape>>> {
  const { name, description, parameters, mayWrite, graceMs } = spec;
  return {
    definition: { name, description, parameters: jsonSchemaOf(parameters) },
    mayWrite,
    ...(graceMs === undefined ? {} : { graceMs }),
    parse: (json) => {
      const object = parseObject(name, json);
      return object.ok ? matchSchema(name, parameters, object.value) : object;
    },
    run: (args, context) => spec.run(args, context),
  };
}

/**
 * Reads the arguments of a call as a JSON object; empty text means `{}`. For tools whose own schema is checked
 * elsewhere, this is the whole of `parse`.
 */
export function parseObject(toolName: string, json: string): Parsed<Record<string, unknown>> {
  if (json.trim() === "") return ok({});
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    const problem = reasonOf(error);
    return refuse(
      "bad_arguments",
      `The arguments of ${toolName} are not valid JSON: ${problem}. Send one JSON object.`,
    );
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    return ok(value as Record<string, unknown>);
  }
  const kind = value === null ? "null" : Array.isArray(value) ? "an array" : `a ${typeof value}`;
  return refuse("bad_arguments", `The arguments of ${toolName} are ${kind}. Send one JSON object.`);
}

function jsonSchemaOf(schema: z.ZodObject): Record<string, unknown> {
  const { $schema: _, ...json } = z.toJSONSchema(schema, {
    override: ({ jsonSchema }) => {
      // The bounds of a JavaScript integer say nothing to a model.
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  });
  return json;
}

function matchSchema<Shape extends z.ZodRawShape>(
  toolName: string,
  schema: z.ZodObject<Shape>,
  given: Record<string, unknown>,
): Parsed<z.output<z.ZodObject<Shape>>> {
  // Models that fill in every parameter send null for the ones they leave out; no parameter of ours means null.
  const meant = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const parsed = schema.safeParse(meant);
  if (parsed.success) return ok(parsed.data);
  const problems = parsed.error.issues.map((issue) => `- ${issue.path.join(".") || "arguments"}: ${issue.message}`);
  return refuse(
    "bad_arguments",
    [`The arguments of ${toolName} do not fit its parameters (${parameterList(schema)}):`, ...problems].join("\n"),
  );
}

function parameterList(schema: z.ZodObject): string {
  const entries = Object.entries(schema.shape) as [string, z.ZodType][];
  return entries.map(([key, type]) => (type.safeParse(undefined).success ? `${key}?` : key)).join(", ");
}
