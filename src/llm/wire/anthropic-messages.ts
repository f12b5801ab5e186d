// The decoder of Anthropic Messages. An answer is complete when `message_stop` was seen and not before, whatever the
// stop reason said. An error may come at any point under HTTP 200, and ends the answer.

import type { LLMOutcome } from "../../engine/ports.js";
import type { TokenCounts } from "../../protocol/payloads.js";
import { type Failure, failedOutcome, failure, inBandFailure, statusOf } from "../outcome.js";
import { AnthropicBlocks } from "./anthropic-blocks.js";
import { encodeAnthropic } from "./anthropic-messages-encode.js";
import { AnthropicUsage } from "./anthropic-usage.js";
import { asCount, asList, asRecord, asText, type JsonRecord, parseEvent } from "./json.js";
import type { DecoderContext, Wire, WireDecoder, WireEvent } from "./wire.js";

export const anthropicMessages: Wire = {
  encode: encodeAnthropic,
  decoder: (context) => new AnthropicDecoder(context),
};

/** Stop reasons for an output limit, or for a window that was full before it. */
const LIMITS = new Set(["max_tokens", "model_context_window_exceeded"]);

class AnthropicDecoder implements WireDecoder {
  readonly #context: DecoderContext;
  readonly #blocks: AnthropicBlocks;
  readonly #usage = new AnthropicUsage();
  #begun = false;
  #isOver = false;
  #sawStop = false;
  #finish: string | undefined;
  #explanation = "";
  #failure: Failure | undefined;

  constructor(context: DecoderContext) {
    this.#context = context;
    this.#blocks = new AnthropicBlocks(context);
  }

  get done(): boolean {
    return this.#isOver;
  }

  get usage(): TokenCounts {
    return this.#usage.counts;
  }

  push(event: WireEvent): void {
    const data = event.data.trim();
    // Some gateways put the chat protocol's end mark behind every answer; it proves nothing here.
    if (this.#isOver || data === "" || data === "[DONE]") return;
    const isError = event.event === "error";
    const parsed = parseEvent(data);
    if (!parsed.ok) {
      this.#fail(isError ? inBandFailure(data) : failure("malformed", parsed.message));
      this.#isOver = true;
      return;
    }
    const { value } = parsed;
    for (const each of Array.isArray(value) ? value : [value]) this.#event(asRecord(each) ?? {}, isError);
  }

  end(lost?: Failure): LLMOutcome {
    const usage = this.#usage.counts;
    const failed = this.#failure ?? this.#verdict(lost);
    if (failed !== undefined) {
      this.#context.writer.endAll(statusOf(failed.error.kind));
      return failedOutcome(failed, usage, this.#finish);
    }
    const isCut = LIMITS.has(this.#finish ?? "");
    this.#blocks.finish(isCut);
    this.#context.writer.endAll();
    const outcome: LLMOutcome = { status: "completed", usage };
    if (this.#finish !== undefined) outcome.finishReason = this.#finish;
    if (isCut) outcome.truncated = true;
    if (this.#finish === "pause_turn") outcome.pause = true;
    return outcome;
  }

  #event(event: JsonRecord, isError: boolean): void {
    if (isError || isErrorBody(event)) {
      this.#fail(inBandFailure(event));
      this.#isOver = true;
      return;
    }
    switch (event.type) {
      case "message_start":
        this.#begin(asRecord(event.message) ?? {});
        break;
      case "content_block_start":
      case "content_block_delta":
      case "content_block_stop":
        this.#block(event);
        break;
      case "message_delta":
        this.#ending(asRecord(event.delta) ?? {}, event.usage);
        break;
      case "message_stop":
        this.#sawStop = true;
        this.#isOver = true;
        break;
      case "message":
        this.#whole(event);
        break;
      default: // `ping`, and whatever a later version adds.
    }
  }

  /** A second answer within the first is a proxy that tried again: half of one call must not meet half of another. */
  #begin(message: JsonRecord): void {
    if (this.#begun && this.#blocks.any) this.#fail(failure("malformed", "a second message began within the answer"));
    this.#begun = true;
    this.#usage.read(message.usage);
  }

  #block(event: JsonRecord): void {
    if (this.#failure !== undefined) return;
    const index = asCount(event.index);
    if (event.type === "content_block_start") this.#blocks.start(index, asRecord(event.content_block) ?? {});
    else if (event.type === "content_block_delta") this.#blocks.delta(index, asRecord(event.delta) ?? {});
    else this.#blocks.stop(index);
    if (this.#blocks.problem !== undefined) this.#fail(failure("malformed", this.#blocks.problem));
  }

  #ending(delta: JsonRecord, usage: unknown): void {
    this.#finish = asText(delta.stop_reason) || this.#finish;
    this.#explanation ||= asText(asRecord(delta.stop_details)?.explanation);
    this.#usage.read(usage);
  }

  /** An answer in one piece, from a server that does not stream. */
  #whole(message: JsonRecord): void {
    this.#begin(message);
    asList(message.content).forEach((content, index) => {
      this.#block({ type: "content_block_start", index, content_block: content });
      this.#block({ type: "content_block_stop", index });
    });
    this.#ending(message, undefined);
    this.#sawStop = true;
    this.#isOver = true;
  }

  #fail(found: Failure): void {
    // What the provider says about itself is better than what we make of it.
    if (this.#failure === undefined || this.#failure.error.kind === "malformed") this.#failure = found;
  }

  /** Why an answer without an error is not a complete one, if so. */
  #verdict(lost: Failure | undefined): Failure | undefined {
    if (!this.#sawStop) return lost ?? failure("malformed", "the stream ended without message_stop");
    if (this.#finish === "refusal" && !this.#blocks.visible) {
      return failure("content_filter", this.#explanation || "the model refused to answer");
    }
    const isBroken = this.#finish === undefined && this.#blocks.anyBroken;
    return isBroken ? failure("malformed", "the stream ended within a tool call") : undefined;
  }
}

function isErrorBody(event: JsonRecord): boolean {
  const { type, error } = event;
  if (type === "error") return true;
  if (error !== undefined && error !== null && error !== false && error !== "") return true;
  // A body that is no event at all but explains itself.
  return type === undefined && (event.detail !== undefined || asText(event.message) !== "");
}
