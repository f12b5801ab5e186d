// What a server says its tools are, judged: a model is only shown what a provider will take and a Request can carry.
// One bad tool costs the server that tool, never the list.

import { z } from "zod";
import type { ToolDefinition } from "../protocol/payloads.js";
import { ok, type Result, refuse } from "../result.js";
import { type ArgumentCheck, argumentCheck } from "./mcp-arguments.js";
import { mcpToolName } from "./mcp-names.js";

/** Providers take 128 tools in a Request; this leaves room for other servers and the built-in ones. */
export const MAX_TOOLS_OF_A_SERVER = 100;
const MAX_TOOL_NAME = 256;
const MAX_DESCRIPTION = 4_096;
const MAX_SCHEMA_CHARS = 32_768;
const MAX_SCHEMA_DEPTH = 32;
/** All definitions of a server, in characters of JSON: they go out with every Request. */
const MAX_DEFINITIONS_CHARS = 262_144;

export interface McpTool {
  /** As the server calls it. */
  readonly ownName: string;
  readonly definition: ToolDefinition;
  readonly mayWrite: boolean;
  readonly check: ArgumentCheck;
}

export interface JudgedTools {
  readonly tools: readonly McpTool[];
  /** What was left out, and why; at most a few lines. */
  readonly problems: readonly string[];
}

const MAX_PROBLEMS = 10;

/** @param listed what the server sent, whatever it is */
export function judgeTools(serverKey: string, listed: readonly unknown[]): JudgedTools {
  const tools = new Map<string, McpTool>();
  const problems: string[] = [];
  let chars = 0;
  let leftOut = 0;
  const leaveOut = (problem: string) => {
    leftOut += 1;
    if (problems.length < MAX_PROBLEMS) problems.push(problem);
  };
  for (const one of listed) {
    if (tools.size === MAX_TOOLS_OF_A_SERVER) {
      leaveOut(`more than ${MAX_TOOLS_OF_A_SERVER} tools: the rest is left out`);
      break;
    }
    const judged = judge(serverKey, one);
    if (!judged.ok) {
      leaveOut(judged.message);
      continue;
    }
    const { tool, size } = judged.value;
    if (tools.has(tool.definition.name)) leaveOut(`${shown(tool.ownName)}: another tool has this name`);
    else if (chars + size > MAX_DEFINITIONS_CHARS) leaveOut(`${shown(tool.ownName)}: the definitions are too long`);
    else {
      chars += size;
      tools.set(tool.definition.name, tool);
    }
  }
  if (leftOut > problems.length) problems.push(`and ${leftOut - problems.length} more`);
  return { tools: [...tools.values()], problems };
}

const listedTool = z.looseObject({
  name: z.string().min(1).max(MAX_TOOL_NAME),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.looseObject({ type: z.literal("object") }),
  // Broken annotations grant nothing.
  annotations: z
    .looseObject({ readOnlyHint: z.unknown(), destructiveHint: z.unknown() })
    .partial()
    .optional()
    .catch(undefined),
  execution: z.looseObject({ taskSupport: z.unknown() }).partial().optional().catch(undefined),
});

function judge(serverKey: string, one: unknown): Result<{ tool: McpTool; size: number }, "bad_tool"> {
  const parsed = listedTool.safeParse(one);
  if (!parsed.success) return refuse("bad_tool", `${nameOf(one)}: ${problemOf(parsed.error)}`);
  const { name, title, description = title ?? "", inputSchema, annotations, execution } = parsed.data;
  if (execution?.taskSupport === "required") {
    return refuse("bad_tool", `${shown(name)}: it can only be run as a task, which is not supported`);
  }
  if (!isWithinDepth(inputSchema, MAX_SCHEMA_DEPTH)) {
    return refuse("bad_tool", `${shown(name)}: its schema is nested deeper than ${MAX_SCHEMA_DEPTH}`);
  }
  const { $schema: _, ...parameters } = inputSchema;
  const chars = JSON.stringify(parameters).length;
  if (chars > MAX_SCHEMA_CHARS) {
    return refuse("bad_tool", `${shown(name)}: its schema is ${chars} characters, limit ${MAX_SCHEMA_CHARS}`);
  }
  const told = description.length > MAX_DESCRIPTION ? `${description.slice(0, MAX_DESCRIPTION)}…` : description;
  const definition: ToolDefinition = {
    name: mcpToolName(serverKey, name),
    description: told.replace(/\p{Surrogate}/gu, "\uFFFD"),
    parameters,
  };
  const mayWrite = annotations?.readOnlyHint !== true || annotations.destructiveHint === true;
  const tool = { ownName: name, definition, mayWrite, check: argumentCheck(inputSchema) };
  return ok({ tool, size: chars + told.length });
}

function isWithinDepth(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => isWithinDepth(inner, depth - 1));
}

function nameOf(one: unknown): string {
  const name = typeof one === "object" && one !== null && "name" in one ? one.name : undefined;
  return typeof name === "string" ? shown(name) : "a tool without a name";
}

function problemOf(error: z.ZodError): string {
  const issue = error.issues[0];
  return issue?.path[0] === "inputSchema" ? "its schema is not that of an object" : (issue?.message ?? "malformed");
}

const shown = (name: string): string => JSON.stringify(name.slice(0, 64));
