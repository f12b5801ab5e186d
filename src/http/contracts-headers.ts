// Request headers that mean something, for the reference. Loose: a request has many others.

import { z } from "zod";

const idempotencyKey = z
  .string()
  .optional()
  .describe(
    "The same key with an equal body gives the first answer again and starts nothing. Kept for 24 hours, across restarts.",
  );
const lastEventId = z
  .string()
  .optional()
  .describe("The id of the last event that was read: the stream goes on after it.");

export const idempotencyHeaders = z.looseObject({ "idempotency-key": idempotencyKey });
export const resumeHeaders = z.looseObject({ "last-event-id": lastEventId });
export const submitHeaders = z.looseObject({ "idempotency-key": idempotencyKey, "last-event-id": lastEventId });
