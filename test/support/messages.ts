// Pieces of streams for tests, as a well-behaved engine would say them. Each returns the messages of one step; a test
// strings them together, and bends one of them to break a guarantee.

import * as make from "../../src/protocol/builders.js";
import { isPartial } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type {
  RequestEndPayload,
  SessionMetaPayload,
  StopReason,
  TokenCounts,
  ToolCallPayload,
} from "../../src/protocol/payloads.js";

export const AT = "2026-07-18T03:10:22.123Z";

export const metaOf = (sessionId = "session-2026-07-18-03-10-22-a1b2c3d4"): OmniMessage<SessionMetaPayload> =>
  make.sessionMeta(AT, {
    session_id: sessionId,
    provider: "demo",
    model_id: "demo",
    model_context_window: 128_000,
    system_prompt: "Be brief.",
    tools: [{ name: "exec_command", description: "Runs a command.", parameters: { type: "object" } }],
    thinking_level: "default",
    agent_state: `/data/sessions/${sessionId}`,
    workspace: "/data/workspaces/one",
  });

/** A text segment of a model; each of `deltas` is one fragment. */
export const said = (deltas: string | string[], stop?: StopReason): OmniMessage[] => [
  make.partialText(AT, "start"),
  ...[deltas].flat().map((delta) => make.partialText(AT, "delta", delta)),
  make.partialText(AT, "stop", "", stop),
  make.assistantText(AT, [deltas].flat().join(""), stop === undefined ? {} : { stop_reason: stop }),
];

export const thought = (deltas: string | string[], stop?: StopReason): OmniMessage[] => [
  make.partialThinking(AT, "start"),
  ...[deltas].flat().map((delta) => make.partialThinking(AT, "delta", delta)),
  make.partialThinking(AT, "stop", "", stop),
  make.thinking(AT, [deltas].flat().join(""), stop === undefined ? {} : { stop_reason: stop }),
];

export const callOf = (id: string, args = '{"cmd":"ls"}', stop?: StopReason): OmniMessage<ToolCallPayload> =>
  make.toolCall(AT, {
    name: "exec_command",
    arguments: args,
    tool_call_id: id,
    ...(stop === undefined ? {} : { stop_reason: stop }),
  });

/** A tool call segment, with its complete message. */
export const called = (id: string, args = '{"cmd":"ls"}', stop?: StopReason): OmniMessage[] => {
  const name = "exec_command";
  return [
    make.partialToolCall(AT, "start", { name, tool_call_id: id }),
    make.partialToolCall(AT, "delta", { name, tool_call_id: id, arguments: args }),
    make.partialToolCall(AT, "stop", { name, tool_call_id: id }, stop),
    callOf(id, args, stop),
  ];
};

export const allowed = (id: string): OmniMessage =>
  make.approvalDecision(AT, { decision: "allow", tool_call_id: id, decided_by: "user" });

export const denied = (id: string, by: "user" | "policy" | "timeout" | "abort" = "user"): OmniMessage =>
  make.approvalDecision(AT, { decision: "deny", tool_call_id: id, decided_by: by });

/** The output of a tool, streamed, with its complete message. */
export const answered = (
  id: string,
  deltas: string | string[] = "a.txt",
  end: { stop?: StopReason; images?: string[]; exitCode?: number } = {},
): OmniMessage[] => [
  make.partialToolCallOutput(AT, "start", { tool_call_id: id }),
  ...[deltas].flat().map((output) => make.partialToolCallOutput(AT, "delta", { tool_call_id: id, output })),
  ...(end.images === undefined
    ? []
    : [make.partialToolCallOutput(AT, "delta", { tool_call_id: id, images: end.images })]),
  make.partialToolCallOutput(AT, "stop", { tool_call_id: id }, end.stop),
  make.toolCallOutput(AT, {
    output: [deltas].flat().join(""),
    tool_call_id: id,
    ...(end.images === undefined ? {} : { images: end.images }),
    ...(end.exitCode === undefined ? {} : { exit_code: end.exitCode }),
    ...(end.stop === undefined ? {} : { stop_reason: end.stop }),
  }),
];

/** An output without fragments, such as a denial or a placeholder has. */
export const outputOf = (id: string, text: string, stop?: StopReason): OmniMessage =>
  make.toolCallOutput(AT, { output: text, tool_call_id: id, ...(stop === undefined ? {} : { stop_reason: stop }) });

export const begin = (): OmniMessage => make.requestBegin(AT);
export const aborted = (reason: string | null = "user"): OmniMessage => make.abort(AT, reason);
export const notice = (turns: number): OmniMessage[] => said(`[reached max turns (${turns}); stopping]`);

export const countsOf = (cacheRead: number, cacheWrite: number, output: number): TokenCounts => ({
  cache_read: cacheRead,
  cache_write: cacheWrite,
  output,
  total: cacheRead + cacheWrite + output,
});

/** Counts a Session's tokens, so that the tails of its Requests add up. */
export class Meter {
  #session = make.emptyTokenCounts();

  usage(request: TokenCounts = countsOf(2, 5, 3)): OmniMessage {
    this.#session = make.addTokenCounts(this.#session, request);
    return make.tokenUsage(AT, this.#session, request);
  }

  /** What ends a Request. */
  tail(status: StopReason = "completed", end: Partial<RequestEndPayload> = {}): OmniMessage[] {
    return [this.usage(), make.requestEnd(AT, { ...end, status })];
  }
}

/** Compaction with nothing of its own in view: what a reader of the stream sees of it. */
export const compacted = (status: StopReason = "completed", own: OmniMessage[] = []): OmniMessage[] => [
  make.compactionBegin(AT, { reason: "context", mode: "summarize", context: 90_000, turns: 4 }),
  ...own,
  make.compactionEnd(AT, { reason: "context", mode: "summarize", status }),
];

/** The messages as a parent forwards them from its child. */
export const from = (childId: string, messages: OmniMessage[]): OmniMessage[] =>
  messages.map((message) => make.withOrigin(message, childId));

/** The Trace of a Session whose one Task was answered with this stream. */
export const traceOf = (stream: OmniMessage[], prompt = "list the files"): OmniMessage[] => [
  metaOf(),
  make.userText(AT, prompt),
  ...stream.filter((message) => !isPartial(message) && message.origin === undefined),
];

/** A whole Task with two calls: B answers first, A only after request_end. */
export function twoCalls(meter = new Meter()): OmniMessage[] {
  return [
    begin(),
    ...thought(["two ", "commands"]),
    ...said(["I will ", "look."]),
    ...called("call_A", '{"cmd":"ls"}'),
    allowed("call_A"),
    ...called("call_B", '{"cmd":"pwd"}'),
    allowed("call_B"),
    ...answered("call_B", "/data\n"),
    ...meter.tail(),
    ...answered("call_A", ["a.txt\n", "b.txt\n"], { exitCode: 0 }),
    begin(),
    ...said("Two files."),
    ...meter.tail(),
  ];
}

/** A copy of the messages with the one at `index` changed in its payload. */
export function bend(messages: OmniMessage[], index: number, change: Record<string, unknown>): OmniMessage[] {
  const target = messages[index];
  if (target === undefined) throw new Error(`no message at ${index} of ${messages.length}`);
  const bent = { ...target, payload: { ...target.payload, ...change } } as OmniMessage;
  return messages.with(index, bent);
}

/** The place of the n-th complete message or event of a payload type. */
export function placeOf(messages: OmniMessage[], type: string, nth = 0): number {
  const places = [...messages.entries()].filter(([, { payload }]) => "type" in payload && payload.type === type);
  const found = places[nth];
  if (found === undefined) throw new Error(`no ${type} number ${nth}`);
  return found[0];
}
