// The decoder of OpenAI Chat Completions and everything that calls itself compatible. An answer is complete when a
// finish_reason or `[DONE]` was seen; text alone proves nothing. An error anywhere beats both.

import type { LLMOutcome } from "../../engine/ports.js";
import { emptyTokenCounts } from "../../protocol/builders.js";
import type { TokenCounts } from "../../protocol/payloads.js";
import type { ContentSegment } from "../../protocol/segment.js";
import { type Failure, failedOutcome, failure, inBandFailure, statusOf } from "../outcome.js";
import { asList, asRecord, asText, type JsonRecord, parseEvent } from "./json.js";
import { ChatCalls } from "./openai-chat-calls.js";
import { encodeChat } from "./openai-chat-encode.js";
import {
  addDetails,
  DETAILS_FIELD,
  type ReasoningPart,
  ReasoningReader,
  visibleText,
} from "./openai-chat-reasoning.js";
import { chatUsage } from "./openai-chat-usage.js";
import type { DecoderContext, Wire, WireDecoder, WireEvent } from "./wire.js";

export const openaiChat: Wire = {
  encode: encodeChat,
  decoder: (context) => new ChatDecoder(context),
};

/** Finish reasons for an output limit. */
const LIMITS = new Set(["length", "max_tokens", "model_length", "max_output_tokens"]);

type Open =
  | { kind: "text"; segment: ContentSegment }
  | { kind: "thinking"; segment: ContentSegment; field: string; details: JsonRecord[] };

class ChatDecoder implements WireDecoder {
  readonly #context: DecoderContext;
  readonly #calls: ChatCalls;
  readonly #reasoning = new ReasoningReader();
  /** The text or thinking segment that the next delta of its kind continues. */
  #open: Open | undefined;
  /** Reasoning without text that came while something else was open; it gets a segment of its own at the end. */
  #hidden: JsonRecord[] = [];
  #usage: TokenCounts = emptyTokenCounts();
  #finish: string | undefined;
  /** Token numbers came with the finish reason or behind it: they are the answer's last. */
  #isCounted = false;
  /** The answer went on behind a finish reason: only the body's end tells where it ends. */
  #wentOn = false;
  #sawDone = false;
  #undecodable = false;
  #failure: Failure | undefined;
  #visible = false;
  #refusal = "";

  constructor(context: DecoderContext) {
    this.#context = context;
    this.#calls = new ChatCalls(context);
  }

  get done(): boolean {
    return this.#sawDone || this.#undecodable;
  }

  /** Some servers leave the socket open and send no end mark. */
  get settled(): boolean {
    return this.#failure !== undefined || (this.#finish !== undefined && !this.#wentOn);
  }

  get owesUsage(): boolean {
    return !this.#isCounted;
  }

  get usage(): TokenCounts {
    return this.#usage;
  }

  push(event: WireEvent): void {
    if (this.done) return;
    const data = event.data.trim();
    if (data === "") return;
    if (data === "[DONE]") {
      this.#sawDone = true;
      return;
    }
    const isError = event.event === "error";
    const parsed = parseEvent(data);
    if (!parsed.ok) {
      if (isError) this.#fail(inBandFailure(data));
      else this.#fail(failure("malformed", parsed.message));
      this.#undecodable = !isError;
      return;
    }
    const { value } = parsed;
    for (const chunk of Array.isArray(value) ? value : [value]) this.#chunk(asRecord(chunk) ?? {}, isError);
  }

  end(lost?: Failure): LLMOutcome {
    const failed = this.#failure ?? this.#verdict(lost);
    if (failed !== undefined) {
      const status = statusOf(failed.error.kind);
      this.#calls.closeAll(status);
      this.#context.writer.endAll(status);
      return failedOutcome(failed, this.#usage, this.#finish);
    }
    const cut = this.#finish !== undefined && (LIMITS.has(this.#finish) || this.#finish === "content_filter");
    this.#calls.finish(cut);
    if (this.#refusal !== "") this.#text(this.#refusal);
    this.#flushHidden();
    this.#context.writer.endAll();
    const outcome: LLMOutcome = { status: "completed", usage: this.#usage };
    if (this.#finish !== undefined) outcome.finishReason = this.#finish;
    if (cut && this.#finish !== "content_filter") outcome.truncated = true;
    return outcome;
  }

  #chunk(chunk: JsonRecord, isError: boolean): void {
    const choice = firstChoice(chunk.choices);
    const error = errorIn(chunk, choice) ?? (isError ? chunk : undefined);
    if (error !== undefined) this.#fail(inBandFailure(error));
    const usage = chatUsage(chunk.usage) ?? chatUsage(asRecord(chunk.x_groq)?.usage) ?? chatUsage(choice?.usage);
    if (choice !== undefined) this.#choice(choice);
    if (usage === undefined) return;
    this.#usage = usage;
    this.#isCounted = this.#finish !== undefined;
  }

  #choice(choice: JsonRecord): void {
    const delta = asRecord(choice.delta) ?? asRecord(choice.message);
    if (delta !== undefined && this.#failure === undefined) this.#delta(delta);
    const finish = asText(choice.finish_reason);
    if (finish !== "" && this.#finish === undefined) this.#finish = finish;
  }

  #delta(delta: JsonRecord): void {
    if (this.#finish !== undefined && saysSomething(delta)) this.#wentOn = true;
    const reasoning = this.#reasoning.read(delta);
    if (reasoning !== undefined) this.#thinking(reasoning);
    this.#text(visibleText(delta.content));
    const refusal = asText(delta.refusal);
    if (this.#visible) this.#text(refusal);
    else this.#refusal += refusal;
    const calls = asList(delta.tool_calls);
    // The legacy single call: one index of its own.
    const legacy = asRecord(delta.function_call);
    const entries = legacy === undefined ? calls : [...calls, { index: -1, function: legacy }];
    if (entries.length > 0) this.#calls.push(entries, () => this.#beginSegment());
    if (this.#calls.problem !== undefined) this.#fail(failure("malformed", this.#calls.problem));
  }

  #text(text: string): void {
    if (text === "") return;
    this.#visible = true;
    if (this.#open?.kind !== "text") {
      this.#beginSegment();
      this.#open = { kind: "text", segment: this.#context.writer.openText() };
    }
    this.#open.segment.append(text);
  }

  #thinking(part: ReasoningPart): void {
    const hidden = part.text === "" && part.details.length > 0;
    if (part.text === "" && !hidden) return;
    if (this.#open?.kind !== "thinking") {
      if (hidden && (this.#open !== undefined || this.#calls.count > 0)) {
        addDetails(this.#hidden, part.details);
        return;
      }
      this.#beginSegment();
    }
    const open = this.#open?.kind === "thinking" ? this.#open : this.#openThinking(part.field);
    open.segment.append(part.text);
    this.#addDetails(open, part.details);
  }

  #openThinking(field: string): Extract<Open, { kind: "thinking" }> {
    const segment = this.#context.writer.openThinking();
    segment.setFidelity({ reasoning_field: field, from: this.#context.from });
    const open = { kind: "thinking" as const, segment, field, details: [] };
    this.#open = open;
    return open;
  }

  #addDetails(open: Extract<Open, { kind: "thinking" }>, entries: readonly JsonRecord[]): void {
    if (entries.length === 0) return;
    addDetails(open.details, entries);
    const { field: reasoning_field, details: reasoning_details } = open;
    open.segment.setFidelity({ reasoning_field, reasoning_details, from: this.#context.from });
  }

  /** What was open gives way to a new segment. */
  #beginSegment(): void {
    this.#open?.segment.end();
    this.#open = undefined;
    this.#calls.closeWhole();
  }

  #flushHidden(): void {
    if (this.#hidden.length === 0) return;
    const details = this.#hidden;
    this.#hidden = [];
    this.#open?.segment.end();
    this.#addDetails(this.#openThinking(DETAILS_FIELD), details);
  }

  #fail(found: Failure): void {
    // What the provider says about itself is better than what we make of it.
    if (this.#failure === undefined || this.#failure.error.kind === "malformed") this.#failure = found;
  }

  /** Why an answer without an error member is not a complete one, if so. */
  #verdict(lost: Failure | undefined): Failure | undefined {
    if (this.#finish === undefined && !this.#sawDone) {
      return lost ?? failure("malformed", "the stream ended without a finish_reason and without [DONE]");
    }
    switch (this.#finish) {
      case "insufficient_system_resource":
        return failure("overloaded", "the provider ran out of resources");
      case "error":
      case "abort":
        return failure("unknown", `the provider ended the answer with "${this.#finish}"`);
      case "content_filter":
        if (!this.#visible) return failure("content_filter", this.#refusal || "the provider filtered the answer");
        break;
      case undefined:
        if (this.#calls.anyBroken) return failure("malformed", "the stream ended within a tool call");
        break;
      default: // `stop`, and whatever else servers call it: an answer that ended.
    }
    if (this.#refusal !== "" && !this.#visible && this.#calls.count === 0) {
      return failure("content_filter", this.#refusal);
    }
    return undefined;
  }
}

/** Choice 0; others of a multi-choice answer are not ours. */
function firstChoice(choices: unknown): JsonRecord | undefined {
  for (const entry of asList(choices)) {
    const choice = asRecord(entry);
    if (choice !== undefined && (choice.index === undefined || choice.index === null || choice.index === 0))
      return choice;
  }
  return undefined;
}

const saysSomething = (delta: JsonRecord): boolean =>
  visibleText(delta.content) !== "" || asList(delta.tool_calls).length > 0;

const said = (error: unknown): unknown => (error === null || error === false || error === "" ? undefined : error);

function errorIn(chunk: JsonRecord, choice: JsonRecord | undefined): unknown {
  const error = said(chunk.error) ?? said(choice?.error) ?? said(asRecord(chunk.x_groq)?.error);
  if (error !== undefined) return { error };
  if (chunk.object === "error") return chunk;
  // A body that is no chunk at all but explains itself.
  if (chunk.choices === undefined && chunk.usage === undefined && chunk.id === undefined) {
    return chunk.detail !== undefined || asText(chunk.message) !== "" ? chunk : undefined;
  }
  return undefined;
}
