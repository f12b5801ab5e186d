// Requests: begin and end alternate; each ends with exactly one token_usage and, next on the whole chain, request_end.
// A model speaks only inside a Request; the one exception is the notice that max_turns was reached. All outputs of a
// batch are in before the next Request, notice or compaction.

import { isPayload, isSessionMeta } from "../guards.js";
import type { OmniMessage } from "../message.js";
import type { TextPayload } from "../payloads.js";
import { isModelContent } from "./facts.js";
import { isOfRecovery, type Look, type Mode, quote, type Rule } from "./rule.js";

const NOTICE = /^\[reached max turns \(-?\d+\); stopping\]$/;

interface State {
  mode: Mode;
  first: boolean;
  /** Place of a token_usage whose request_end must be the next message. */
  usageAt: number | undefined;
  /**
   * Faults that a crash between token_usage and request_end explains. They stand unless the Request turns out to have
   * been closed by recovery.
   */
  held: { place: number; message: string }[];
  /** Calls whose late output was reported. */
  late: Set<string>;
}

export function requestTail(mode: Mode): Rule {
  const state: State = { mode, first: true, usageAt: undefined, held: [], late: new Set() };
  return {
    name: "request-tail",
    push(message, look) {
      const isEnd = isPayload(message, "request_end");
      if (state.usageAt !== undefined && !isEnd) {
        blame(state, look, state.usageAt, "token_usage is not followed by request_end");
        state.usageAt = undefined;
      }
      if (!look.facts.requestOpen) release(state, look, message);
      if (isEnd) takeEnd(state, look, message.payload.status === "aborted");
      else if (isPayload(message, "request_begin")) takeBegin(state, look);
      else if (isPayload(message, "compaction_begin")) expectOutputs(state, look, "compaction_begin");
      else if (isPayload(message, "token_usage")) takeUsage(state, look);
      else if (isModelContent(message)) takeContent(state, look, message);
      if (!isSessionMeta(message)) state.first = false;
    },
    end(look) {
      if (state.usageAt !== undefined)
        look.report("token_usage is not followed by request_end", { place: state.usageAt });
      release(state, look);
      if (look.facts.requestOpen) look.report("the Request is open at the end of the stream");
    },
  };
}

function takeBegin(state: State, look: Look): void {
  if (look.facts.requestOpen) look.report("request_begin inside a Request");
  flush(state, look);
  expectOutputs(state, look, "request_begin");
}

function takeUsage(state: State, { facts, report, place }: Look): void {
  // A compaction's tries have no request_begin or request_end; each gives one token_usage.
  if (facts.compactionOpen) return;
  if (!facts.requestOpen && !facts.prelude) {
    report("token_usage outside a Request");
    return;
  }
  state.usageAt = place;
}

function takeEnd(state: State, look: Look, aborted: boolean): void {
  const { facts, report, place } = look;
  if (!facts.requestOpen && !facts.prelude) report("request_end without request_begin");
  const joinedBetween = facts.prelude && state.first;
  if (state.usageAt === undefined && !joinedBetween) {
    if (aborted) blame(state, look, place, "request_end without token_usage right before it");
    else report("request_end without token_usage right before it");
  }
  state.usageAt = undefined;
  if (!aborted) flush(state, look);
}

function takeContent(state: State, look: Look, message: OmniMessage): void {
  const { facts, report } = look;
  if (facts.requestOpen || facts.compactionOpen || facts.prelude) return;
  if (!isPayload(message, "text") || !isNotice(message.payload)) {
    report(`${String((message.payload as { type?: unknown }).type)} of a model outside a Request`);
    return;
  }
  expectOutputs(state, look, "the max_turns notice");
}

/** An interrupt may fall into the notice and leave part of it. */
const isNotice = (payload: TextPayload): boolean => payload.stop_reason === "aborted" || NOTICE.test(payload.text);

function expectOutputs(state: State, { facts, report }: Look, where: string): void {
  for (const id of facts.unanswered.keys()) {
    if (state.late.has(id)) continue;
    state.late.add(id);
    report(`${where} before the output of call ${quote(id)}`, { toolCallId: id });
  }
}

function blame(state: State, look: Look, place: number, message: string): void {
  if (state.mode === "trace") state.held.push({ place, message });
  else look.report(message, { place });
}

/** Recovery closes a Request that a crash cut: request_end(aborted), then at once its abort. */
function release(state: State, look: Look, message?: OmniMessage): void {
  if (state.held.length === 0) return;
  const byRecovery = message !== undefined && isPayload(message, "abort") && isOfRecovery(message.payload.reason);
  if (byRecovery) state.held = [];
  else flush(state, look);
}

function flush(state: State, look: Look): void {
  for (const { place, message } of state.held) look.report(message, { place });
  state.held = [];
}
