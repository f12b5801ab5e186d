// The outgoing pass, pure: a history, whatever it looks like, becomes turns that every protocol can spell. All encoders
// go through it, and what it says of the turns they may rely on:
// - what the assistant said, then the outputs of its calls in call order, one for each, then what the user said;
// - no output without its call, no call without an output, no call that was cut off before it could be answered, no id
//   of two calls of one turn;
// - `fidelity` is there only where the model that is asked made it, by the protocol that it is asked by.
//
// What is left to an encoder needs its protocol's spelling: the alphabet and the scope of ids and names; what it has no
// place for, and therefore which neighbours of one role are left to merge; which reasoning goes with which item. Lone
// surrogates become U+FFFD in the one place where a body is written (`jsonBody`): tools and instructions have them too.

import { NO_RECORD } from "../../engine/engine-notes.js";
import type { OmniMessage } from "../../protocol/message.js";
import type {
  CompletePayload,
  Fidelity,
  ImageUrlPayload,
  InlineDataPayload,
  InlineThinkingPayload,
  TextPayload,
  ThinkingPayload,
  ToolCallOutputPayload,
  ToolCallPayload,
} from "../../protocol/payloads.js";
import { type ModelSpec, modelName, originMark, type Protocol } from "../model-spec.js";

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

/** @param model the model that the turns go to. */
export function outgoingTurns(messages: readonly OmniMessage<CompletePayload>[], model: ModelSpec): Turn[] {
  const turns: Turn[] = [];
  let turn = emptyTurn();
  for (const { payload } of messages) {
    if (isAssistant(payload)) {
      if (turn.outputs.length > 0 || turn.user.length > 0) {
        turns.push(turn);
        turn = emptyTurn();
      }
      turn.assistant.push(ownOnly(payload, model));
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
  const answered = turn.assistant.filter(isCall).map(({ tool_call_id }) => outputs.get(tool_call_id));
  turn.assistant = withOwnIds(turn.assistant);
  turn.outputs = turn.assistant.filter(isCall).map(({ tool_call_id }, n) => ({
    ...(answered[n] ?? {
      type: "tool_call_output",
      role: "user",
      output: NO_RECORD,
      stop_reason: "failed",
    }),
    tool_call_id,
  }));
}

/** An imported Trace may hold a call twice. It keeps both, for each may carry a signature, and the one output of both. */
function withOwnIds(said: readonly AssistantPayload[]): AssistantPayload[] {
  const taken = new Set(said.filter(isCall).map(({ tool_call_id }) => tool_call_id));
  const seen = new Set<string>();
  return said.map((payload) => {
    if (!isCall(payload)) return payload;
    let id = payload.tool_call_id;
    if (seen.has(id)) for (let n = 2; taken.has(id); n++) id = `${payload.tool_call_id}_${n}`;
    taken.add(id);
    seen.add(id);
    return { ...payload, tool_call_id: id };
  });
}

export const isCall = (payload: AssistantPayload): payload is ToolCallPayload => payload.type === "tool_call";

/** The id that each call goes out under: the provider's own where ours replaced it, unless that is repeated here. */
export function batchCallIds(calls: readonly ToolCallPayload[]): Map<string, string> {
  const own = (call: ToolCallPayload): string => {
    const id = call.fidelity?.provider_call_id;
    return typeof id === "string" && id !== "" ? id : call.tool_call_id;
  };
  const seen = new Map<string, number>();
  // Ours count as well: what replaces a repeated id must be free itself.
  for (const call of calls) {
    for (const id of new Set([own(call), call.tool_call_id])) seen.set(id, (seen.get(id) ?? 0) + 1);
  }
  return new Map(
    calls.map((call) => {
      const isRepeated = (seen.get(own(call)) ?? 0) > 1;
      return [call.tool_call_id, isRepeated ? call.tool_call_id : own(call)];
    }),
  );
}

// --- whose fidelity it is ------------------------------------------------------------------------------------------

/** What each protocol's decoder keeps; `provider_call_id`, which all of them keep, tells nothing. */
const FIELDS: Record<Protocol, readonly string[]> = {
  "anthropic-messages": ["signature", "redacted_thinking", "blocks_before", "citations"],
  "openai-chat": ["reasoning_field", "reasoning_details", "extra_content"],
  "openai-responses": ["encrypted_content", "summary", "id", "phase", "before", "replaces"],
  gemini: ["thought_signature", "part"],
  demo: [],
};
const ALL_FIELDS = Object.values(FIELDS).flat();

function ownOnly<P extends AssistantPayload>(payload: P, model: ModelSpec): P {
  const { fidelity, ...rest } = payload;
  return fidelity === undefined || isOwn(fidelity, payload.type, model) ? payload : (rest as P);
}

function isOwn(fidelity: Fidelity, type: AssistantPayload["type"], model: ModelSpec): boolean {
  const { from } = fidelity;
  if (from !== undefined && from !== modelName(model)) return from === originMark(model);
  // A mark without a protocol, or none: an older Trace, or somebody else's. Then the fields must speak for it.
  const own = FIELDS[model.protocol];
  const has = (field: string) => fidelity[field] !== undefined;
  if (ALL_FIELDS.some((field) => has(field) && !own.includes(field))) return false;
  return type !== "thinking" || own.some(has);
}
