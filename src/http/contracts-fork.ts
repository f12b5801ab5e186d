// What makes a Session of something that is there: another's history, or a Trace that is uploaded.

import { z } from "zod";
import { isObject } from "./contracts.js";

export const forkBody = z
  .strictObject({
    ordinal: z
      .number()
      .int()
      .nonnegative()
      .describe("The last record that the fork has. It may not be inside anything that has not ended."),
    provider: z.string().optional(),
    modelId: z.string().optional().describe("Left out: the same model."),
  })
  .refine((body) => (body.provider === undefined) === (body.modelId === undefined), {
    path: ["modelId"],
    error: "provider and modelId go together: give both or neither",
    when: isObject,
  })
  .meta({ id: "ForkSession", examples: [{ ordinal: 12 }] });

export const importQuery = z.object({
  damaged: z
    .enum(["refuse", "skip"])
    .optional()
    .describe("What to do with lines that hold no record: refuse the file (default), or leave them out."),
});
