// The context as turns: what the assistant said, then what came back. Every protocol wants the outputs of a batch of
// calls directly behind it, one for each call; here that becomes true whatever the list looked like.

import type { OmniMessage } from "../../protocol/message.js";
import type {
  CompletePayload,
  ImageUrlPayload,
  InlineDataPayload,
  InlineThinkingPayload,
  TextPayload,
  ThinkingPayload,
  ToolCallOutputPayload,
  ToolCallPayload,
} from "../../protocol/payloads.js";

export type AssistantPayload =
  | TextPayload
  | ThinkingPayload
  | InlineThinkingPayload
  | InlineDataPayload
  | ToolCallPayload;
export type UserPayload = TextPayload | ImageUrlPayload | InlineDataPayload;

export interface Turn {
  /** In the order in which they were said. Calls that were cut off and never answered are left out. */
  assistant: AssistantPayload[];
  /** One for each call, in call order. */
  outputs: ToolCallOutputPayload[];
  user: UserPayload[];
}

/** Splits a context into turns. Outputs without a call are dropped; a call without an output gets one that says so. */
export function contextTurns(messages: readonly OmniMessage<CompletePayload>[]): Turn[] {
  const turns: Turn[] = [];
  let turn = emptyTurn();
  for (const { payload } of messages) {
    if (isAssistant(payload)) {
      if (turn.outputs.length > 0 || turn.user.length > 0) {
        turns.push(turn);
        turn = emptyTurn();
      }
      turn.assistant.push(payload);
    } else if (payload.type === "tool_call_output") turn.outputs.push(payload);
    else turn.user.push(payload);
  }
  turns.push(turn);
  for (const each of turns) pair(each);
  return turns;
}

function isAssistant(payload: CompletePayload): payload is AssistantPayload {
  return payload.role === "assistant";
}

const emptyTurn = (): Turn => ({ assistant: [], outputs: [], user: [] });

function pair(turn: Turn): void {
  const outputs = new Map<string, ToolCallOutputPayload>();
  for (const output of turn.outputs) if (!outputs.has(output.tool_call_id)) outputs.set(output.tool_call_id, output);
  turn.assistant = turn.assistant.filter(
    (said) => said.type !== "tool_call" || said.stop_reason === undefined || outputs.has(said.tool_call_id),
  );
  turn.outputs = turn.assistant.filter(isCall).map(
    ({ tool_call_id }) =>
      outputs.get(tool_call_id) ?? {
        type: "tool_call_output",
        role: "user",
        output: "[no output was recorded for this call]",
        tool_call_id,
        stop_reason: "failed",
      },
  );
}

export const isCall = (payload: AssistantPayload): payload is ToolCallPayload => payload.type === "tool_call";

/**
 * The id that each call goes out under: the provider's own where ours replaced it, unless that is repeated within the
 * batch, and only to the model it came from.
 */
export function batchCallIds(calls: readonly ToolCallPayload[], from: string): Map<string, string> {
  const own = (call: ToolCallPayload): string => {
    const id = call.fidelity?.provider_call_id;
    return typeof id === "string" && isFrom(call.fidelity, from) && id !== "" ? id : call.tool_call_id;
  };
  const seen = new Map<string, number>();
  for (const call of calls) seen.set(own(call), (seen.get(own(call)) ?? 0) + 1);
  return new Map(
    calls.map((call) => {
      const isRepeated = (seen.get(own(call)) ?? 0) > 1;
      return [call.tool_call_id, isRepeated ? call.tool_call_id : own(call)];
    }),
  );
}

/** True when provider data may go back to the model named `from`. Records that name no model are taken on trust. */
export const isFrom = (fidelity: Record<string, unknown> | undefined, from: string): boolean =>
  fidelity !== undefined && (fidelity.from === undefined || fidelity.from === from);
