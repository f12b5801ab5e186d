// Bodies, queries and answers as zod schemas: the type, the validator and the OpenAPI source in one. Bodies are strict,
// since a typo must not pass silently; an unknown query parameter is nobody's mistake and passes.

import { z } from "zod";
import { THINKING_LEVELS } from "../engine/ports.js";
import { PROTOCOLS } from "../llm/model-spec.js";
import { requestErrorSchema, stopReasonSchema } from "../protocol/payloads.js";
import { APPROVAL_MODES } from "../session/types.js";
import { inputSchema } from "./contracts-prompt.js";
import { omniMessage, tokenCounts, toolCallMessage } from "./contracts-protocol.js";

// Empty too: a Session without a name does not exist, which is 404 and no fault of form.
const id = z.string();
export const at = z.iso.datetime().describe("ISO 8601, UTC, milliseconds");
/** For a check that is listed beside whatever else is wrong with the body. */
export const isObject = ({ value }: { value: unknown }) =>
  typeof value === "object" && !Array.isArray(value) && value !== null;
const natural = z.number().int().nonnegative();
const EXAMPLE_ID = "session-2026-07-18-03-10-22-a1b2c3d4";
export const EXAMPLE_AT = "2026-07-18T03:10:22.041Z";
const approvalMode = z.enum(APPROVAL_MODES).meta({
  id: "ApprovalMode",
  description: "`always-ask`: every call waits for a person; `read-only`: those that may write do; `allow-all`: none.",
});
const thinkingLevel = z
  .enum(THINKING_LEVELS)
  .meta({ id: "ThinkingLevel", description: "How much the model may think." });

export const errorSchema = z
  .object({
    error: z.object({
      code: z
        .string()
        .regex(/^[a-z_]+$/)
        .describe("Stable; made for programs."),
      message: z.string().describe("Made for people; may change."),
      details: z
        .array(z.object({ path: z.string(), message: z.string() }))
        .optional()
        .describe("Each problem of a request that did not fit its schema."),
    }),
  })
  .meta({ id: "Error", description: "Every answer that is not 2xx." });

// --- requests ----------------------------------------------------------------------------------------------------

export const createSessionBody = z
  .strictObject({
    provider: id.optional(),
    modelId: id.optional(),
    workspace: z.string().min(1).optional().describe("Absolute path of an existing directory. Left out: a fresh one."),
    approvalMode: approvalMode.optional(),
    thinkingLevel: thinkingLevel.optional(),
    systemPrompt: z.string().optional(),
    title: z.string().max(1000).optional(),
    maxTurns: z
      .number()
      .int()
      .min(-1)
      .refine((turns) => turns !== 0, "must be -1 (no limit) or a positive number")
      .optional()
      .describe("Requests that one Task may take; -1 means no limit."),
    tools: z.array(id).optional().describe("Built-in tools to offer. Left out: all. Those of MCP servers always are."),
    allowOutsideWorkspace: z.boolean().optional(),
  })
  .refine((body) => (body.provider === undefined) === (body.modelId === undefined), {
    path: ["modelId"],
    error: "provider and modelId go together: give both or neither",
    when: isObject,
  })
  .meta({ id: "CreateSession", examples: [{ provider: "demo", modelId: "demo", title: "First steps" }] });

export const patchSessionBody = z
  .strictObject({
    title: z.string().max(1000).nullable().optional(),
    approvalMode: approvalMode.optional(),
    thinkingLevel: thinkingLevel.optional(),
    archived: z.boolean().optional(),
  })
  .meta({ id: "PatchSession", examples: [{ title: "Parser rewrite", approvalMode: "read-only" }] });

export const submitBody = z
  .strictObject({
    input: inputSchema,
    thinkingLevel: thinkingLevel.optional(),
    whenBusy: z
      .enum(["reject", "queue", "steer", "interrupt"])
      .optional()
      .describe(
        "What to do while the Session is busy. `reject` (the default) refuses, `queue` runs it as the next Task, `steer` gives it to the running Task's model, `interrupt` aborts that Task and runs this one next.",
      ),
  })
  .meta({ id: "SubmitTask", examples: [{ input: "Which files are here?" }] });

export const decideBody = z
  .strictObject({ decision: z.enum(["allow", "deny"]), reason: z.string().max(10_000).optional() })
  .meta({ id: "Decide", examples: [{ decision: "deny", reason: "not in this directory" }] });

/** A whole number in a query, where everything is text. */
const whole = (min: number, max: number) =>
  z
    .string()
    .refine((text) => /^\d{1,15}$/.test(text), "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`))
    .meta({ type: "integer", minimum: min, maximum: max });
const flag = z
  .enum(["true", "false", "1", "0", ""])
  .transform((text) => text === "true" || text === "1" || text === "")
  .meta({ type: "boolean", enum: [true, false] });

export const sessionParams = z.object({ id: id.describe("The Session's id.") });
export const taskParams = z.object({ id, taskId: id });
export const approvalParams = z.object({ sessionId: id, toolCallId: id });
export const listQuery = z.object({
  limit: whole(1, 200).optional().describe("50 unless asked otherwise."),
  cursor: z.string().min(1).optional(),
  archived: flag.optional().describe("Also archived Sessions."),
  parent: z.string().min(1).optional().describe("The children of this Session."),
});
const ordinal = whole(0, Number.MAX_SAFE_INTEGER);
export const historyQuery = z.object({
  limit: whole(1, 1000).optional().describe("The last N records."),
  before: ordinal.optional().describe("Records before this ordinal."),
  after: ordinal.optional().describe("Records after this ordinal."),
  context: z.literal("current").optional().describe("Leave out what compaction closed."),
});
const accessToken = z.string().optional().describe("A bearer token, for readers that cannot set headers.");
export const eventsQuery = z.object({ access_token: accessToken });
export const streamQuery = z.object({
  lastEventId: z.string().optional().describe("Where to resume; the Last-Event-ID header wins."),
  last_event_id: z.string().optional().describe("Another spelling of lastEventId."),
  access_token: accessToken,
});

// --- answers -----------------------------------------------------------------------------------------------------

export const sessionSchema = z
  .object({
    sessionId: id,
    provider: id,
    modelId: id,
    workspace: z.string(),
    approvalMode,
    thinkingLevel,
    title: z.string().nullable(),
    state: z.enum(["idle", "running", "compacting"]),
    createdAt: at,
    lastActiveAt: at,
    archived: z.boolean(),
    pendingApprovals: natural,
    queued: natural,
    usage: tokenCounts.extend({ costUsd: z.number().nonnegative().optional() }),
    parentSessionId: id.optional(),
  })
  .meta({
    id: "Session",
    examples: [
      {
        sessionId: EXAMPLE_ID,
        provider: "demo",
        modelId: "demo",
        workspace: "/home/ada/project",
        approvalMode: "always-ask",
        thinkingLevel: "default",
        title: "First steps",
        state: "idle",
        createdAt: EXAMPLE_AT,
        lastActiveAt: EXAMPLE_AT,
        archived: false,
        pendingApprovals: 0,
        queued: 0,
        usage: { cache_read: 0, cache_write: 0, output: 0, total: 0 },
      },
    ],
  });

export const sessionListSchema = z
  .object({ sessions: z.array(sessionSchema), nextCursor: z.string().optional() })
  .meta({ id: "SessionList" });

export const modelListSchema = z
  .object({
    models: z.array(
      z.object({
        provider: id,
        modelId: id,
        protocol: z.enum(PROTOCOLS),
        contextWindow: natural,
        vision: z.boolean(),
        available: z.boolean(),
        reason: z.string().optional().describe("Why it is not available."),
      }),
    ),
    defaultModel: z.object({ provider: id, modelId: id }),
  })
  .meta({
    id: "ModelList",
    examples: [
      {
        models: [
          {
            provider: "demo",
            modelId: "demo",
            protocol: "demo",
            contextWindow: 128_000,
            vision: true,
            available: true,
          },
        ],
        defaultModel: { provider: "demo", modelId: "demo" },
      },
    ],
  });

export const acceptedSchema = z
  .object({
    taskId: id,
    queued: natural.describe("Tasks that wait, this one included; 0 when it has started."),
    steerId: id.optional().describe("When it was given to the running Task."),
  })
  .meta({ id: "TaskAccepted", examples: [{ taskId: "task-d60047a269f8", queued: 0 }] });

export const taskSchema = z
  .object({
    taskId: id,
    state: z.enum(["queued", "running", "ended"]),
    status: stopReasonSchema.optional(),
    error: requestErrorSchema.optional(),
    startedAt: at.optional(),
    endedAt: at.optional(),
  })
  .meta({
    id: "Task",
    examples: [
      { taskId: "task-d60047a269f8", state: "ended", status: "completed", startedAt: EXAMPLE_AT, endedAt: EXAMPLE_AT },
    ],
  });

export const approvalSchema = z
  .object({
    sessionId: id.describe("Where it is answered: a child's at the child."),
    toolCall: toolCallMessage,
    origin: z.array(z.string()).optional(),
    requestedAt: at,
    expiresAt: at.optional(),
  })
  .meta({ id: "Approval" });

export const approvalListSchema = z
  .object({ approvals: z.array(approvalSchema) })
  .meta({ id: "ApprovalList", examples: [{ approvals: [] }] });

export const historySchema = z
  .object({
    messages: z.array(z.looseObject({ ordinal: natural }).and(omniMessage)),
    cursor: id.describe("The Channel position that this answer describes; pass it as lastEventId."),
    live: z.object({ fragments: z.array(omniMessage) }).optional(),
    children: z.record(z.string(), natural).optional().describe("Records that the cursor includes, by child."),
    nextBefore: natural.optional(),
  })
  .meta({ id: "History" });

export const healthSchema = z.object({ status: z.literal("ok") }).meta({ id: "Health" });
