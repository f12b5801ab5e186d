// What one chain of messages amounts to so far: the open Request, the open compaction, and the fate of each tool call.
// Rules read it; only `fold` changes it, after the rules have seen the message.

import { isCompleteModelMessage, isPartial, isPayload, isSessionMeta } from "../guards.js";
import type { OmniMessage } from "../message.js";
import type { RequestEndPayload, ToolCallOutputPayload, ToolCallPayload } from "../payloads.js";
import { abnormal } from "./rule.js";

/**
 * What a complete call is owed. `due`: a decision and an output. `cut`: neither, an interruption or a failed try closed
 * it. `malformed`: not known until its Request ends. `truncated`: an output limit cut it, so an output but no decision.
 */
export type CallKind = "due" | "cut" | "malformed" | "truncated";

export interface CallFacts {
  readonly id: string;
  readonly place: number;
  kind: CallKind;
  decision: "allow" | "deny" | undefined;
  outputs: number;
}

export interface ChainFacts {
  /** True in a stream that was joined midway, until its first `request_begin`: what went before was not seen. */
  prelude: boolean;
  requestOpen: boolean;
  compactionOpen: boolean;
  /** A model segment has started and its complete message has not come. */
  modelSegmentOpen: boolean;
  /** Every complete call of the Session by id, but for a compaction's own. */
  readonly calls: Map<string, CallFacts>;
  /** Calls that still need a decision, in call order. */
  readonly undecided: Map<string, CallFacts>;
  /** Calls that still need an output, in call order. */
  readonly unanswered: Map<string, CallFacts>;
  /** The `malformed` calls of the open Request. */
  malformed: CallFacts[];
}

export const noFacts = (prelude: boolean): ChainFacts => ({
  prelude,
  requestOpen: false,
  compactionOpen: false,
  modelSegmentOpen: false,
  calls: new Map(),
  undecided: new Map(),
  unanswered: new Map(),
  malformed: [],
});

/** True for content that a model made: text, reasoning, calls, media. */
export const isModelContent = (message: OmniMessage): boolean =>
  isCompleteModelMessage(message) && message.payload.role === "assistant";

/** True for what a person said: Prompt, steering, images and files; never for a tool's output. */
export const isUserInput = (message: OmniMessage): boolean =>
  isCompleteModelMessage(message) && message.payload.role === "user" && !isPayload(message, "tool_call_output");

/** Takes the message into the facts. */
export function fold(facts: ChainFacts, message: OmniMessage, place: number): void {
  if (isPartial(message)) {
    if (message.payload.event_type === "start" && message.payload.role === "assistant") facts.modelSegmentOpen = true;
    return;
  }
  if (isModelContent(message)) facts.modelSegmentOpen = false;
  if (isSessionMeta(message)) return;
  if (isPayload(message, "tool_call")) takeCall(facts, message.payload, place);
  else if (isPayload(message, "tool_call_output")) takeOutput(facts, message.payload);
  else if (isPayload(message, "approval_decision")) {
    const call = facts.calls.get(message.payload.tool_call_id);
    if (call !== undefined) call.decision ??= message.payload.decision;
    facts.undecided.delete(message.payload.tool_call_id);
  } else if (isPayload(message, "request_begin")) {
    facts.requestOpen = true;
    facts.prelude = false;
    facts.malformed = [];
  } else if (isPayload(message, "request_end")) takeEnd(facts, message.payload);
  else if (isPayload(message, "compaction_begin")) facts.compactionOpen = true;
  else if (isPayload(message, "compaction_end")) facts.compactionOpen = false;
  else if (isPayload(message, "abort")) closeTask(facts);
}

function takeCall(facts: ChainFacts, payload: ToolCallPayload, place: number): void {
  // A call in place of a summary is part of a failed try: nobody is asked about it and nothing answers it.
  if (facts.compactionOpen) return;
  const stop = abnormal(payload.stop_reason);
  const kind: CallKind = stop === undefined ? "due" : stop === "malformed" ? "malformed" : "cut";
  const call: CallFacts = { id: payload.tool_call_id, place, kind, decision: undefined, outputs: 0 };
  facts.calls.set(call.id, call);
  if (kind === "malformed") facts.malformed.push(call);
  if (kind !== "due") return;
  facts.undecided.set(call.id, call);
  facts.unanswered.set(call.id, call);
}

function takeOutput(facts: ChainFacts, payload: ToolCallOutputPayload): void {
  const call = facts.calls.get(payload.tool_call_id);
  if (call !== undefined) call.outputs += 1;
  facts.unanswered.delete(payload.tool_call_id);
  // Nobody will be asked about what was answered; its missing decision was reported with the output.
  facts.undecided.delete(payload.tool_call_id);
}

function takeEnd(facts: ChainFacts, payload: RequestEndPayload): void {
  facts.requestOpen = false;
  for (const call of facts.malformed) {
    call.kind = payload.status === "completed" ? "truncated" : "cut";
    if (call.kind === "truncated" && call.outputs === 0) facts.unanswered.set(call.id, call);
  }
  facts.malformed = [];
}

/** Whatever an aborted Task left open was reported at its abort; it is not held against the next Task. */
function closeTask(facts: ChainFacts): void {
  facts.requestOpen = false;
  facts.compactionOpen = false;
  facts.modelSegmentOpen = false;
  facts.undecided.clear();
  facts.unanswered.clear();
  facts.malformed = [];
}
