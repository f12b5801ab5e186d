// The decoder of OpenAI Responses and its dialects. An answer is complete when the response itself says how it ended
// (completed, incomplete, failed); that every item is done proves nothing, nor does `[DONE]`.

import type { LLMOutcome } from "../../engine/ports.js";
import { emptyTokenCounts } from "../../protocol/builders.js";
import type { TokenCounts } from "../../protocol/payloads.js";
import { unreachable } from "../../result.js";
import { type Failure, failedOutcome, failure, inBandFailure, statusOf } from "../outcome.js";
import { asList, asRecord, asText, type JsonRecord, parseEvent } from "./json.js";
import { encodeResponses } from "./openai-responses-encode.js";
import { wholePart } from "./responses-item.js";
import { ResponseItems } from "./responses-items.js";
import type { PartKind } from "./responses-parts.js";
import { responsesUsage } from "./responses-usage.js";
import type { DecoderContext, Wire, WireDecoder, WireEvent } from "./wire.js";

export const openaiResponses: Wire = {
  encode: encodeResponses,
  decoder: (context) => new ResponsesDecoder(context),
};

interface PartEvent {
  kind: PartKind;
  /** The member that says which part of its kind. */
  place: string;
  /** The member that holds the text. */
  field: string;
}

/** Events that add to a part, or repeat it whole. */
const PART_EVENTS: ReadonlyMap<string, PartEvent> = new Map(
  Object.entries({
    "response.output_text.delta": { kind: "text", place: "content_index", field: "delta" },
    "response.output_text.done": { kind: "text", place: "content_index", field: "text" },
    "response.refusal.delta": { kind: "refusal", place: "content_index", field: "delta" },
    "response.refusal.done": { kind: "refusal", place: "content_index", field: "refusal" },
    "response.reasoning_summary_text.delta": { kind: "summary", place: "summary_index", field: "delta" },
    "response.reasoning_summary_text.done": { kind: "summary", place: "summary_index", field: "text" },
    "response.reasoning_text.delta": { kind: "reasoning", place: "content_index", field: "delta" },
    "response.reasoning_text.done": { kind: "reasoning", place: "content_index", field: "text" },
    "response.function_call_arguments.delta": { kind: "arguments", place: "", field: "delta" },
    "response.function_call_arguments.done": { kind: "arguments", place: "", field: "arguments" },
  }),
);

const ENDINGS = ["completed", "incomplete", "failed", "cancelled"] as const;
type Ending = (typeof ENDINGS)[number];

const asEnding = (word: string): Ending | undefined => ENDINGS.find((ending) => ending === word);

class ResponsesDecoder implements WireDecoder {
  readonly #context: DecoderContext;
  readonly #items: ResponseItems;
  #usage: TokenCounts = emptyTokenCounts();
  #ending: Ending | undefined;
  #incompleteReason = "";
  /** All items, as the response's end lists them. */
  #output: readonly unknown[] = [];
  #sawLast = false;
  #failure: Failure | undefined;

  constructor(context: DecoderContext) {
    this.#context = context;
    this.#items = new ResponseItems(context);
  }

  get done(): boolean {
    return this.#sawLast;
  }

  /** An end may still be corrected: by an error, or by another end. An error may be told once more, with numbers. */
  get settled(): boolean {
    return this.#hasEnded || this.#failure !== undefined;
  }

  get #hasEnded(): boolean {
    return this.#ending !== undefined;
  }

  get usage(): TokenCounts {
    return this.#usage;
  }

  push(event: WireEvent): void {
    if (this.done) return;
    const data = event.data.trim();
    if (data === "") return;
    if (data === "[DONE]") {
      this.#sawLast = this.#hasEnded;
      return;
    }
    const isError = event.event === "error";
    const parsed = parseEvent(data);
    if (!parsed.ok) {
      if (isError) this.#fail(inBandFailure(data));
      else this.#fail(failure("malformed", parsed.message));
      this.#sawLast = !isError;
      return;
    }
    const { value } = parsed;
    const record = asRecord(Array.isArray(value) ? value[0] : value) ?? {};
    if (isError || isErrorEvent(record)) this.#fail(inBandFailure(record));
    else this.#event(record, asText(record.type) || (event.event ?? ""));
  }

  end(lost?: Failure): LLMOutcome {
    const failed = this.#failure ?? this.#verdict(lost);
    if (failed !== undefined) {
      this.#items.closeAll(statusOf(failed.error.kind));
      return failedOutcome(failed, this.#usage, this.#finishReason());
    }
    const cut = this.#ending === "incomplete";
    this.#items.settle(this.#output, cut);
    this.#context.writer.endAll();
    const { refusal } = this.#items;
    if (refusal !== "") this.#context.writer.openText().append(refusal);
    this.#context.writer.endAll();
    const outcome: LLMOutcome = { status: "completed", usage: this.#usage };
    const finishReason = this.#finishReason();
    if (finishReason !== undefined) outcome.finishReason = finishReason;
    if (cut && finishReason !== "content_filter") outcome.truncated = true;
    return outcome;
  }

  #event(event: JsonRecord, type: string): void {
    if (this.#hasEnded) this.#response(event, type);
    else if (type === "response.output_item.added")
      this.#items.announce(event.output_index, asRecord(event.item) ?? {});
    else if (type === "response.output_item.done") this.#items.finish(event.output_index, asRecord(event.item) ?? {});
    else if (type === "response.content_part.done") this.#wholePart(event, event.content_index);
    else if (type === "response.reasoning_summary_part.done") this.#wholePart(event, event.summary_index);
    else {
      const part = PART_EVENTS.get(type);
      if (part === undefined) this.#response(event, type);
      else this.#part(event, part);
    }
  }

  #part(event: JsonRecord, { kind, place, field }: PartEvent): void {
    const index = asIndex(event[place]);
    this.#items.part(event.output_index, { kind, index, text: asText(event[field]), whole: field !== "delta" });
  }

  #wholePart(event: JsonRecord, place: unknown): void {
    const piece = wholePart(event.part, asIndex(place));
    if (piece !== undefined) this.#items.part(event.output_index, piece);
  }

  /** The response as such: as an event's member, or the whole answer in place of a stream. */
  #response(event: JsonRecord, type: string): void {
    const isBody = type === "" && Array.isArray(event.output);
    const response = isBody ? event : asRecord(event.response);
    if (response === undefined) return;
    if (response.error !== undefined && response.error !== null) this.#fail(inBandFailure({ error: response.error }));
    const named = asEnding(type.replace("response.", ""));
    if (named === undefined && !isBody) return;
    // A server that ends every answer with `response.completed` says in its status how it really ended.
    this.#ending = named === undefined || named === "completed" ? (asEnding(asText(response.status)) ?? named) : named;
    if (this.#ending === undefined) return;
    this.#incompleteReason = asText(asRecord(response.incomplete_details)?.reason);
    this.#usage = responsesUsage(response.usage) ?? this.#usage;
    this.#output = asList(response.output);
  }

  #fail(found: Failure): void {
    // The first says it: `error` is followed by `response.failed` with the same.
    if (this.#failure === undefined || this.#failure.error.kind === "malformed") this.#failure = found;
  }

  #finishReason(): string | undefined {
    return this.#ending === "incomplete" ? this.#incompleteReason || this.#ending : this.#ending;
  }

  /** Why an answer without an error member is not a complete one, if so. */
  #verdict(lost: Failure | undefined): Failure | undefined {
    const { isVisible, hasCalls, refusal, problem } = this.#items;
    switch (this.#ending) {
      case undefined:
        return lost ?? failure("malformed", "the stream ended before the response was completed");
      case "failed":
      case "cancelled":
        return failure("unknown", `the provider ended the answer with "${this.#ending}"`);
      case "incomplete":
        if (this.#incompleteReason !== "content_filter" || isVisible) break;
        return failure("content_filter", refusal || "the provider filtered the answer");
      case "completed":
        break;
      default:
        return unreachable(this.#ending);
    }
    if (refusal !== "" && !isVisible && !hasCalls) return failure("content_filter", refusal);
    return problem === undefined ? undefined : failure("malformed", problem);
  }
}

const asIndex = (value: unknown): number => (typeof value === "number" ? value : 0);

/** An event that is an error, or a body that is no event at all but explains itself. */
function isErrorEvent(event: JsonRecord): boolean {
  const { error, type } = event;
  if (type === "error") return true;
  if (Array.isArray(event.output)) return false;
  if (error !== undefined && error !== null && error !== false && error !== "") return true;
  return type === undefined && event.response === undefined && (event.detail ?? event.message) !== undefined;
}
