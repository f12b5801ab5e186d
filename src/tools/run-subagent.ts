// run_subagent: a piece of work for a child Session. What the child says last is the output; everything else that it
// says is in its own stream and Trace.

import { z } from "zod";
import { defineTool, type Tool, type ToolContext, type ToolOutput } from "./tool.js";

export const RUN_SUBAGENT = "run_subagent";

/** How long an interrupted child may take to end: longer than any of its own tools takes. In ms. */
export const CHILD_GRACE_MS = 5_000;

export interface SubagentTask {
  prompt: string;
  /** A few words: the child's title. */
  description: string;
}

/** How a child's Task ended. `text` is what it said last, empty when that was nothing. */
export type SubagentOutput = ToolOutput & { text: string };

/**
 * Starts a child for a task and follows it to its end. When the signal aborts, the child is interrupted, and this
 * resolves once it has ended, at the latest after its grace.
 */
export type RunSubagent = (task: SubagentTask, context: ToolContext) => Promise<SubagentOutput>;

const parameters = z.strictObject({
  prompt: z
    .string()
    .regex(/\S/, "must not be blank")
    .describe("The whole task. The child sees nothing of this conversation: say all that it needs to know."),
  description: z.string().describe("The task in a few words, for people."),
});

export function runSubagentTool(runSubagent: RunSubagent): Tool<SubagentTask> {
  return defineTool({
    name: RUN_SUBAGENT,
    description:
      "Hands a task to a subagent: an assistant of its own with the same Workspace and tools, which starts from nothing " +
      "but the prompt. Its final answer is the output. Several in one answer work side by side.",
    parameters,
    mayWrite: true,
    graceMs: CHILD_GRACE_MS + 500,
    async *run(task, context) {
      const { text, ...output } = await runSubagent(task, context);
      yield text;
      return output;
    },
  });
}
