// What the model is told of a Request that never committed: one user text, for the model only, computed from the
// Trace whenever an input is assembled. It holds what the model said and called and what the tools answered, never the
// input (which goes again as it was), so blocks do not nest.

import { isPayload } from "../protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../protocol/message.js";
import type { ToolCallOutputPayload } from "../protocol/payloads.js";
import { CAME_TO_NOTHING, CARRY_OVER } from "./engine-notes.js";

export type BlockTag = keyof typeof CARRY_OVER;

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
  const intro = lines.length === 0 ? CAME_TO_NOTHING : CARRY_OVER[tag];
  return [`[${tag}]`, intro, ...lines, `[/${tag}]`].join("\n");
}
