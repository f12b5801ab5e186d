// Streaming discipline: start, delta*, stop, then the complete message of the same segment, equal to what the deltas
// add up to. One model segment is open at a time; outputs of tools interleave. A complete message may come without
// fragments, fragments never without it. Other producers' messages may fall between any two of a segment.

import { isCompleteModelMessage, isPartial, isPayload } from "../guards.js";
import type { CompleteMessage, OmniMessage } from "../message.js";
import { contentOf } from "../partial-content.js";
import type { PartialPayload, StopReason } from "../payloads.js";
import { isModelContent } from "./facts.js";
import { abnormal, type Look, quote, type Rule } from "./rule.js";

interface Segment {
  type: PartialPayload["type"];
  toolCallId: string;
  name: string;
  parts: string[];
  images: string[] | undefined;
  stopped: boolean;
  stop: StopReason | undefined;
  /** False where its beginning was not seen: then its content cannot be compared. */
  whole: boolean;
  place: number;
}

interface State {
  model: Segment | undefined;
  outputs: Map<string, Segment>;
}

export function segments(): Rule {
  const state: State = { model: undefined, outputs: new Map() };
  return {
    name: "segments",
    push(message, look) {
      if (isPartial(message)) takeFragment(state, message.payload, look);
      else if (isPayload(message, "tool_call_output")) {
        const id = message.payload.tool_call_id;
        const segment = state.outputs.get(id);
        state.outputs.delete(id);
        if (segment !== undefined) compare(segment, message, look);
      } else if (isCompleteModelMessage(message) && isModelContent(message)) closeModel(state, message, look);
      else if (isPayload(message, "request_end")) leave(state, look, "request_end", "model");
      else if (isPayload(message, "abort")) leave(state, look, "abort", "all");
    },
    end: (look) => leave(state, look, "the end of the stream", "all"),
  };
}

function takeFragment(state: State, payload: PartialPayload, look: Look): void {
  const { report, facts } = look;
  const { type, event_type: event } = payload;
  const toolCallId = idOf(payload);
  const isOutput = type === "partial_tool_call_output";
  const open = isOutput ? state.outputs.get(toolCallId) : state.model;
  const at = { toolCallId };
  if (event !== "stop" && abnormal(payload.stop_reason) !== undefined)
    report(`stop_reason on a ${event} of ${type}`, at);
  if (event === "start") {
    if (open !== undefined) report(`${type} starts while ${describe(open)} is not complete`, at);
    // Whoever joins midway gets one synthetic start with the content so far.
    if (contentOf(payload) !== "" && !facts.prelude) report(`the start of ${type} is not empty`, at);
    keep(state, begin(payload, look, true));
    return;
  }
  let segment = open?.type === type && open.toolCallId === toolCallId ? open : undefined;
  if (segment === undefined) {
    if (!facts.prelude || open !== undefined) {
      report(`a ${event} of ${type} that has not started`, at);
      return;
    }
    segment = begin(payload, look, false);
    keep(state, segment);
  } else if (segment.stopped) {
    report(`a ${event} of ${type} after its stop`, at);
    return;
  } else add(segment, payload);
  if (event !== "stop") return;
  if (contentOf(payload) !== "") report(`the stop of ${type} is not empty`, at);
  segment.stopped = true;
  segment.stop = abnormal(payload.stop_reason);
}

function begin(payload: PartialPayload, look: Look, whole: boolean): Segment {
  const name = payload.type === "partial_tool_call" ? payload.name : "";
  const { type } = payload;
  const fresh = { parts: [], images: undefined, stopped: false, stop: undefined };
  const segment: Segment = { type, toolCallId: idOf(payload), name, ...fresh, whole, place: look.place };
  add(segment, payload);
  return segment;
}

function keep(state: State, segment: Segment): void {
  if (segment.type === "partial_tool_call_output") state.outputs.set(segment.toolCallId, segment);
  else state.model = segment;
}

function add(segment: Segment, payload: PartialPayload): void {
  const content = contentOf(payload);
  if (content !== "") segment.parts.push(content);
  if (payload.type === "partial_tool_call_output" && payload.images !== undefined) segment.images = payload.images;
}

function closeModel(state: State, message: CompleteMessage, look: Look): void {
  const open = state.model;
  if (open === undefined) return;
  const { payload } = message;
  const sameCall = payload.type !== "tool_call" || payload.tool_call_id === open.toolCallId;
  if (open.type === `partial_${payload.type}` && sameCall) {
    state.model = undefined;
    compare(open, message, look);
    return;
  }
  look.report(`${payload.type} while ${describe(open)} is not complete`);
  if (open.stopped) state.model = undefined;
}

function compare(segment: Segment, message: CompleteMessage, look: Look): void {
  const { payload } = message;
  const at = { toolCallId: segment.toolCallId };
  if (!segment.stopped) look.report(`${payload.type} is complete before the stop of its segment`, at);
  else if (segment.stop !== abnormal(payload.stop_reason)) {
    const [on, off] = [quote(segment.stop), quote(abnormal(payload.stop_reason))];
    look.report(`stop_reason is ${on} on the stop and ${off} on ${payload.type}`, at);
  }
  if (payload.type === "tool_call" && payload.name !== segment.name) {
    look.report(`fragments name ${quote(segment.name)}, the tool_call ${quote(payload.name)}`, at);
  }
  if (!segment.whole) return;
  const [streamed, complete] = [segment.parts.join(""), wholeOf(message)];
  if (streamed !== complete)
    look.report(`${payload.type} differs from its deltas: ${difference(streamed, complete)}`, at);
  const images = payload.type === "tool_call_output" ? payload.images : undefined;
  if (quote(images ?? []) !== quote(segment.images ?? [])) look.report("images differ from those of the deltas", at);
}

function leave(state: State, look: Look, where: string, which: "model" | "all"): void {
  const left = which === "all" ? [...state.outputs.values()] : [];
  if (state.model !== undefined) left.unshift(state.model);
  for (const segment of left) {
    look.report(`${describe(segment)} is not complete at ${where}`, { toolCallId: segment.toolCallId });
  }
  state.model = undefined;
  if (which === "all") state.outputs.clear();
}

const describe = (segment: Segment): string => `the ${segment.type} segment from ${segment.place}`;

const idOf = (payload: PartialPayload): string =>
  payload.type === "partial_tool_call" || payload.type === "partial_tool_call_output" ? payload.tool_call_id : "";

function wholeOf(message: OmniMessage): string {
  if (isPayload(message, "text")) return message.payload.text;
  if (isPayload(message, "thinking")) return message.payload.thinking;
  if (isPayload(message, "tool_call")) return message.payload.arguments;
  return isPayload(message, "tool_call_output") ? message.payload.output : "";
}

function difference(streamed: string, complete: string): string {
  let at = 0;
  while (at < streamed.length && streamed[at] === complete[at]) at += 1;
  return `${streamed.length} and ${complete.length} UTF-16 units, first at ${at}`;
}
