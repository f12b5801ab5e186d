// Bodies and answers of what reaches a Session while it works.

import { z } from "zod";
import { at, EXAMPLE_AT } from "./contracts.js";
import { inputSchema } from "./contracts-prompt.js";

const id = z.string();

export const queueItemParams = z.object({ id, itemId: id });

/** A body that says nothing, for a call without fields. */
export const emptyBody = z.strictObject({}).meta({ id: "Empty" });

export const abortBody = z
  .strictObject({ clearQueue: z.boolean().optional().describe("What waits is taken back too.") })
  .meta({ id: "Abort" });

export const steerBody = z
  .strictObject({ input: inputSchema })
  .meta({ id: "Steer", examples: [{ input: "Leave the tests alone, please" }] });

export const steeredSchema = z
  .object({ steerId: id.describe("Stands as `steer_id` in the message once it is delivered.") })
  .meta({ id: "Steered", examples: [{ steerId: "steer-1f0c9d2a77b4" }] });

export const queueItemSchema = z
  .object({
    itemId: id.describe("The `taskId` or `steerId`."),
    kind: z.enum(["task", "steer"]),
    input: inputSchema,
    createdAt: at,
  })
  .meta({
    id: "QueueItem",
    examples: [{ itemId: "task-d60047a269f8", kind: "task", input: "Now the tests", createdAt: EXAMPLE_AT }],
  });

export const queueSchema = z
  .object({ items: z.array(queueItemSchema) })
  .meta({ id: "Queue", examples: [{ items: [] }] });

export const skippedSchema = z.object({ skipped: z.boolean() }).meta({ id: "Skipped", examples: [{ skipped: true }] });
