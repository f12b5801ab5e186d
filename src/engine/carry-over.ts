// What the model is told of a Request that never committed: one user text, for the model only, computed from the
// Trace whenever an input is assembled. It holds what the model said and called and what the tools answered, never the
// input (which goes again as it was), so blocks do not nest.

import { isPayload } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type { ToolCallOutputPayload } from "../protocol/payloads.js";

export type BlockTag = "turn_aborted" | "turn_retried";

const INTRO: Record<BlockTag, string> = {
  turn_aborted: "The last turn was interrupted before it was complete. Until then it had come to this:",
  turn_retried: "A try at this turn failed before it was complete. Until then it had come to this:",
};
const CAME_TO_NOTHING = "The last turn was interrupted before anything was said in it.";

/**
 * The block for one Request that did not commit.
 * @param produced what the model said in it, in order
 * @param outputs by `tool_call_id`
 * @returns undefined for a failed try that had come to nothing: the next one is as good as the first. Of an interrupt the
 * model is told in any case.
 */
export function carryOverBlock(
  tag: BlockTag,
  produced: readonly CompleteMessage[],
  outputs: ReadonlyMap<string, OmniMessage<ToolCallOutputPayload>>,
): string | undefined {
  const lines: string[] = [];
  for (const message of produced) {
    if (isPayload(message, "text") && message.payload.text !== "") lines.push(`Assistant: ${message.payload.text}`);
    if (isPayload(message, "tool_call")) {
      const { name, arguments: args, tool_call_id } = message.payload;
      lines.push(`Called ${name}: ${args.trim() === "" ? "{}" : args}`);
      const output = outputs.get(tool_call_id);
      if (output !== undefined) lines.push(`Output of ${name}: ${output.payload.output}`);
    }
  }
  if (lines.length === 0 && tag === "turn_retried") return undefined;
  const intro = lines.length === 0 ? CAME_TO_NOTHING : INTRO[tag];
  return [`[${tag}]`, intro, ...lines, `[/${tag}]`].join("\n");
}
