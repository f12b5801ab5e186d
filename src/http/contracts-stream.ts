// What the two SSE streams carry beside OmniMessages: the events named `server_event`.

import { z } from "zod";
import { RESYNC_REASONS } from "../channel/subscription.js";
import { requestErrorSchema, stopReasonSchema } from "../protocol/payloads.js";
import { approvalSchema, EXAMPLE_AT, sessionSchema } from "./contracts.js";
import { omniMessage } from "./contracts-protocol.js";

const natural = z.number().int().nonnegative();

export const taskStateEvent = z
  .object({
    type: z.literal("task_state"),
    state: z.enum(["idle", "running", "compacting"]),
    taskId: z.string().optional(),
    queued: natural,
    pendingApprovals: natural,
    records: natural.describe("The number of the Trace's records at this place."),
    retry: z.object({ attempt: natural, retryAt: z.iso.datetime(), status: stopReasonSchema }).optional(),
    ended: z
      .object({
        taskId: z.string(),
        status: stopReasonSchema.optional().describe("Left out for a Task of which only that it is over is known."),
        error: requestErrorSchema.optional(),
      })
      .optional()
      .describe("Only in the one that ends a Task."),
  })
  .meta({ id: "TaskStateEvent" });

export const approvalRequestEvent = approvalSchema
  .extend({ type: z.literal("approval_request") })
  .meta({ id: "ApprovalRequestEvent" });

export const toolProgressEvent = z
  .object({
    type: z.literal("tool_progress"),
    toolCallId: z.string(),
    origin: z.array(z.string()).optional(),
    bytes: natural,
    tail: z.string(),
  })
  .meta({ id: "ToolProgressEvent", description: "A tool whose output is held back; at most twice a second." });

export const resyncRequiredEvent = z
  .object({
    type: z.literal("resync_required"),
    reason: z.enum(RESYNC_REASONS),
  })
  .meta({ id: "ResyncRequiredEvent", description: "The place that was asked for is gone: read the history again." });

export const sessionUpdatedEvent = z
  .object({ type: z.literal("session_updated"), session: sessionSchema })
  .meta({ id: "SessionUpdatedEvent" });

export const shutdownEvent = z
  .object({ type: z.literal("shutdown"), retryMs: natural })
  .meta({ id: "ShutdownEvent", description: "The server drains: reconnect then, with the last id." });

export const sessionCreatedEvent = z
  .object({ type: z.literal("session_created"), session: sessionSchema })
  .meta({ id: "SessionCreatedEvent" });

export const sessionDeletedEvent = z
  .object({ type: z.literal("session_deleted"), sessionId: z.string() })
  .meta({ id: "SessionDeletedEvent" });

export const serverEvent = z
  .discriminatedUnion("type", [
    taskStateEvent,
    approvalRequestEvent,
    toolProgressEvent,
    resyncRequiredEvent,
    sessionUpdatedEvent,
    shutdownEvent,
  ])
  .meta({ id: "ServerEvent", description: "The JSON of an event that is named `server_event`." });

export const channelEvent = z.union([omniMessage, serverEvent]).meta({
  id: "ChannelEvent",
  description: "The JSON of one `data:` line. An event without a name is an OmniMessage.",
  examples: [
    {
      timestamp: EXAMPLE_AT,
      type: "model_msg",
      payload: { type: "partial_text", role: "assistant", event_type: "delta", text: "Hel" },
    },
    { type: "task_state", state: "running", taskId: "task-d60047a269f8", queued: 0, pendingApprovals: 1, records: 17 },
  ],
});

export const hostEvent = z
  .discriminatedUnion("type", [sessionCreatedEvent, sessionUpdatedEvent, sessionDeletedEvent, shutdownEvent])
  .meta({
    id: "HostEvent",
    description: "The JSON of an event of `GET /api/events`.",
    examples: [{ type: "session_deleted", sessionId: "session-2026-07-18-03-10-22-a1b2c3d4" }],
  });
