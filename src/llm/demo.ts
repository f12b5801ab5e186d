// `demo/demo`: a model that needs no network and no key, streams like one that does, and drives the real loop.

import type { Clock } from "../clock.js";
import type { LLMClient, LLMOutcome, LLMRequest } from "../engine/ports.js";
import type { OmniMessage } from "../protocol/message.js";
import type { TokenCounts } from "../protocol/payloads.js";
import { type ContentSegment, SegmentWriter } from "../protocol/segment.js";
import { type DemoAnswer, demoAnswer } from "./demo-script.js";
import { failedOutcome, failure } from "./outcome.js";
import { ToolCallIds } from "./tool-call-ids.js";

export interface DemoDeps {
  clock: Clock;
  newId(): string;
  /** The pause between two fragments, in ms; 0 for none. */
  demoDelayMs: number;
}

export const createDemoModel = (deps: DemoDeps): LLMClient => ({ stream: (request) => streamDemo(request, deps) });

async function* streamDemo(
  request: LLMRequest,
  deps: DemoDeps,
): AsyncGenerator<readonly OmniMessage[], LLMOutcome, void> {
  const { signal } = request;
  const writer = new SegmentWriter(() => deps.clock.iso());
  const answer = demoAnswer(request);
  const input = inputTokens(request);
  let written = 0;
  for (const segment of segmentsOf(answer, request, deps)) {
    const open = segment.open(writer);
    for (const fragment of fragmentsOf(segment.content)) {
      await deps.clock.sleep(deps.demoDelayMs, signal);
      if (signal.aborted) return { status: "aborted", usage: usageOf(input, written) };
      open.append(fragment);
      written += fragment.length;
      yield writer.take();
    }
    open.end();
    const due = writer.take();
    if (due.length > 0) yield due;
  }
  if (signal.aborted) return { status: "aborted", usage: usageOf(input, written) };
  const usage = usageOf(input, written);
  if (answer.error !== undefined) return failedOutcome(failure("invalid_request", answer.error), usage, "error");
  return { status: "completed", usage, finishReason: answer.calls.length > 0 ? "tool_calls" : "stop" };
}

interface DemoSegment {
  content: string;
  open(writer: SegmentWriter): ContentSegment;
}

function segmentsOf(answer: DemoAnswer, request: LLMRequest, deps: DemoDeps): DemoSegment[] {
  const ids = new ToolCallIds((id) => request.isCallIdTaken(id), deps.newId);
  const segments: DemoSegment[] = [
    { content: answer.thinking, open: (writer) => writer.openThinking() },
    { content: answer.text, open: (writer) => writer.openText() },
  ];
  let number = request.messages.filter((message) => message.payload.type === "tool_call").length;
  for (const call of answer.calls) {
    number++;
    const { toolCallId } = ids.accept(`call_demo_${number}`);
    segments.push({
      content: JSON.stringify(call.arguments),
      open: (writer) => {
        const segment = writer.openToolCall();
        segment.identify(call.name, toolCallId);
        return segment;
      },
    });
  }
  return segments.filter((segment) => segment.content !== "");
}

/** Pieces of about a word, as a tokenizer would cut them: each keeps the space before it. */
function fragmentsOf(content: string): string[] {
  return content.match(/\s*\S{1,12}|\s+/gu) ?? [];
}

interface InputTokens {
  /** What an earlier Request of this context had sent. */
  before: number;
  fresh: number;
}

function inputTokens(request: LLMRequest): InputTokens {
  const { messages } = request;
  const lastSaid = messages.findLastIndex((message) => message.payload.role === "assistant");
  const size = (list: LLMRequest["messages"]) =>
    list.reduce((sum, { payload }) => sum + JSON.stringify(payload).length, 0);
  const prefix = tokens(request.systemPrompt.length + JSON.stringify(request.tools).length);
  const earlier = tokens(size(messages.slice(0, lastSaid + 1)));
  const fresh = tokens(size(messages.slice(lastSaid + 1)));
  return lastSaid < 0 ? { before: 0, fresh: prefix + fresh } : { before: prefix + earlier, fresh };
}

const tokens = (characters: number): number => Math.ceil(characters / 4);

function usageOf({ before, fresh }: InputTokens, written: number): TokenCounts {
  const output = tokens(written);
  return { cache_read: before, cache_write: fresh, output, total: before + fresh + output };
}
