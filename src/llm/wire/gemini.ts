// The decoder of Gemini's generateContent stream. There is no end mark but a finishReason (or a blocked prompt), and old
// Vertex servers put STOP on every chunk: it is believed when the body has ended. An error anywhere beats it.
//
// A run of unsigned text is one segment. A part with a thought signature is a segment of its own, never merged with
// another, because the signature must go back in the part that it came in. A part that shows nothing (an empty one with
// a signature, executed code, a kind we do not know) is hidden reasoning: empty thinking that carries the part.

import type { LLMOutcome } from "../../engine/ports.js";
import { emptyTokenCounts, inlineData, inlineThinking } from "../../protocol/builders.js";
import type { Fidelity, TokenCounts } from "../../protocol/payloads.js";
import type { ContentSegment } from "../../protocol/segment.js";
import { type Failure, failedOutcome, failure, inBandFailure, statusOf } from "../outcome.js";
import { GeminiCalls } from "./gemini-calls.js";
import { encodeGemini } from "./gemini-encode.js";
import { geminiUsage } from "./gemini-usage.js";
import { asList, asRecord, asText, type JsonRecord, parseEvent } from "./json.js";
import type { DecoderContext, Wire, WireDecoder, WireEvent } from "./wire.js";

export const gemini: Wire = {
  encode: encodeGemini,
  decoder: (context) => new GeminiDecoder(context),
};

const STOP = "STOP";
const LIMIT = "MAX_TOKENS";
/** In front of the reason why a prompt was blocked, where otherwise a finishReason stands. */
const BLOCKED = "blockReason:";

const FILTERS = new Set([
  ...["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "LANGUAGE", "MODEL_ARMOR"],
  ...["IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"],
]);
/** The model wrote something that its own server could not read; another try may go well. */
const BROKEN = new Set([
  ...["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE"],
]);

type Kind = "text" | "thinking";

class GeminiDecoder implements WireDecoder {
  readonly #context: DecoderContext;
  readonly #calls: GeminiCalls;
  /** The run of unsigned text that the next part of its kind continues. */
  #run: { kind: Kind; segment: ContentSegment } | undefined;
  #usage: TokenCounts = emptyTokenCounts();
  #finish: string | undefined;
  #finishMessage = "";
  /** Content came after a STOP: this server puts it on every chunk, and only the body's end proves anything. */
  #stopsEverywhere = false;
  /** Token numbers came with a finishReason or behind it: they are the answer's last. */
  #isCounted = false;
  #isOver = false;
  #failure: Failure | undefined;
  #visible = false;

  constructor(context: DecoderContext) {
    this.#context = context;
    this.#calls = new GeminiCalls(context);
  }

  get done(): boolean {
    return this.#isOver;
  }

  /** A STOP without numbers is that of a server which puts it on every chunk: only the body's end tells. */
  get settled(): boolean {
    if (this.#finish === undefined || this.#stopsEverywhere) return false;
    return this.#isCounted || this.#finish !== STOP;
  }

  get owesUsage(): boolean {
    return !this.#isCounted;
  }

  get usage(): TokenCounts {
    return this.#usage;
  }

  push(event: WireEvent): void {
    if (this.#isOver) return;
    const data = event.data.trim();
    // No server of this protocol ends with it, but gateways in front of one do.
    if (data === "" || data === "[DONE]") return;
    const isError = event.event === "error";
    const parsed = parseEvent(data);
    if (!parsed.ok) {
      this.#fail(isError ? inBandFailure(data) : failure("malformed", parsed.message));
      this.#isOver = true;
      return;
    }
    const { value } = parsed;
    for (const chunk of Array.isArray(value) ? value : [value]) this.#chunk(asRecord(chunk) ?? {}, isError);
  }

  end(lost?: Failure): LLMOutcome {
    const failed = this.#failure ?? this.#verdict(lost);
    if (failed !== undefined) {
      this.#context.writer.endAll(statusOf(failed.error.kind));
      return failedOutcome(failed, this.#usage, this.#finish);
    }
    this.#calls.cut();
    this.#context.writer.endAll();
    const outcome: LLMOutcome = { status: "completed", usage: this.#usage };
    if (this.#finish !== undefined) outcome.finishReason = this.#finish;
    if (this.#finish === LIMIT) outcome.truncated = true;
    return outcome;
  }

  #chunk(chunk: JsonRecord, isError: boolean): void {
    const error = errorIn(chunk) ?? (isError ? chunk : undefined);
    if (error !== undefined) {
      this.#fail(inBandFailure(error));
      this.#isOver = true;
    }
    const usage = geminiUsage(chunk.usageMetadata);
    this.#candidate(chunk);
    if (usage === undefined) return;
    this.#usage = usage;
    this.#isCounted = this.#finish !== undefined;
  }

  #candidate(chunk: JsonRecord): void {
    const blocked = asRecord(chunk.promptFeedback);
    const reason = asText(blocked?.blockReason);
    if (reason !== "") this.#finished(`${BLOCKED}${reason}`, asText(blocked?.blockReasonMessage));
    const candidate = firstCandidate(chunk.candidates);
    if (candidate === undefined || this.#failure !== undefined) return;
    const parts = asList(asRecord(candidate.content)?.parts);
    for (const part of parts) this.#part(asRecord(part) ?? {});
    this.#finished(asText(candidate.finishReason), asText(candidate.finishMessage));
  }

  #part(part: JsonRecord): void {
    const signature = asText(part.thoughtSignature);
    const call = asRecord(part.functionCall);
    const media = asRecord(part.inlineData);
    const { thought, thoughtSignature: _, functionCall: _call, inlineData: _media, ...content } = part;
    if (call !== undefined) this.#call(call, signature);
    else if (media !== undefined && asText(media.data) !== "") this.#media(media, signature, thought === true);
    else if (typeof part.text === "string" && part.text !== "") {
      this.#text(thought === true ? "thinking" : "text", part.text, signature);
    } else if (signature !== "" || holdsMore(content)) {
      this.#hidden(thought === undefined ? content : { ...content, thought }, signature);
    } else return;
    if (this.#finish === STOP) this.#stopsEverywhere = true;
  }

  #text(kind: Kind, text: string, signature: string): void {
    if (kind === "text") this.#visible = true;
    if (signature !== "") {
      const segment = this.#begin(kind);
      segment.append(text);
      segment.setFidelity(this.#fidelity(signature));
      segment.end();
      return;
    }
    if (this.#run?.kind !== kind) this.#run = { kind, segment: this.#begin(kind) };
    this.#run.segment.append(text);
  }

  #call(call: JsonRecord, signature: string): void {
    this.#calls.push(call, signature, () => this.#endRun());
    if (this.#calls.problem !== undefined) this.#fail(failure("malformed", this.#calls.problem));
  }

  #media(media: JsonRecord, signature: string, isThought: boolean): void {
    // Media has no fragments and ends whatever is open, which must not be half a call.
    if (this.#calls.isOpen) {
      this.#fail(failure("malformed", "media within the arguments of a tool call"));
      return;
    }
    this.#endRun();
    const payload = {
      data: asText(media.data),
      mime_type: asText(media.mimeType) || "application/octet-stream",
      fidelity: this.#fidelity(signature),
    };
    if (!isThought) this.#visible = true;
    this.#context.writer.whole((at) =>
      isThought ? inlineThinking(at, payload) : inlineData(at, { role: "assistant", ...payload }),
    );
  }

  #hidden(part: JsonRecord, signature: string): void {
    const segment = this.#begin("thinking");
    segment.setFidelity({ ...this.#fidelity(signature), part });
    segment.end();
  }

  #begin(kind: Kind): ContentSegment {
    this.#endRun();
    const { writer } = this.#context;
    return kind === "text" ? writer.openText() : writer.openThinking();
  }

  #endRun(): void {
    this.#run?.segment.end();
    this.#run = undefined;
  }

  #fidelity(signature: string): Fidelity {
    const { from } = this.#context;
    return signature === "" ? { from } : { thought_signature: signature, from };
  }

  /** An abnormal end stands, whatever STOP came before or comes after it. */
  #finished(reason: string, message: string): void {
    if (reason === "" || reason === "FINISH_REASON_UNSPECIFIED") return;
    if (this.#finish !== undefined && this.#finish !== STOP) return;
    this.#finish = reason;
    this.#finishMessage = message;
  }

  #fail(found: Failure): void {
    // What the provider says about itself is better than what we make of it.
    if (this.#failure === undefined || this.#failure.error.kind === "malformed") this.#failure = found;
  }

  /** Why an answer without an error member is not a complete one, if so. */
  #verdict(lost: Failure | undefined): Failure | undefined {
    const finish = this.#finish;
    if (finish === undefined) return lost ?? failure("malformed", "the stream ended without a finishReason");
    if (finish === STOP && this.#stopsEverywhere && lost !== undefined) return lost;
    const words = this.#finishMessage || `the provider ended the answer with ${finish}`;
    if (BROKEN.has(finish)) return failure("malformed", words);
    const isFilter = FILTERS.has(finish) || finish.startsWith(BLOCKED);
    if (isFilter && !this.#visible) return failure("content_filter", words);
    if (this.#calls.isOpen && finish === STOP) return failure("malformed", "the stream ended within a tool call");
    const isOdd = finish !== STOP && finish !== LIMIT && !isFilter;
    return isOdd && !this.#visible && this.#calls.count === 0 ? failure("unknown", words) : undefined;
  }
}

/** Candidate 0; others are not ours. */
function firstCandidate(candidates: unknown): JsonRecord | undefined {
  return asList(candidates)
    .map((candidate) => asRecord(candidate))
    .find((candidate) => candidate !== undefined && (candidate.index ?? 0) === 0);
}

function errorIn({ error, candidates, promptFeedback, usageMetadata, ...rest }: JsonRecord): unknown {
  if (error !== undefined && error !== null && error !== false && error !== "") return { error };
  if (candidates !== undefined || promptFeedback !== undefined || usageMetadata !== undefined) return undefined;
  // A body that is no chunk at all but explains itself.
  return rest.detail !== undefined || asText(rest.message) !== "" ? rest : undefined;
}

/** True for a part of a kind that we do not show. */
const holdsMore = (content: JsonRecord): boolean =>
  Object.entries(content).some(([key, value]) => key !== "text" && value !== undefined && value !== null);
