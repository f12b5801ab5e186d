// The LLM client: encode, send, decode, and say how it ended. It keeps nothing between Requests.

import type { Clock } from "../clock.js";
import type { LLMClient, LLMOutcome, LLMRequest } from "../engine/ports.js";
import type { OmniMessage } from "../protocol/message.js";
import { SegmentWriter } from "../protocol/segment.js";
import { createDemoModel } from "./demo.js";
import type { EventStream } from "./http-sse.js";
import { type ModelSpec, originMark, type Protocol } from "./model-spec.js";
import { type Failure, failure, presentable } from "./outcome.js";
import { refusedForSize } from "./request-size.js";
import { ToolCallIds } from "./tool-call-ids.js";
import type { Wire, WireDecoder } from "./wire/wire.js";

export interface LLMClientDeps {
  clock: Clock;
  /** A fresh identifier in any alphabet. */
  newId(): string;
  /** The longest silence of a provider, in ms. */
  requestTimeoutMs: number;
  /** The pause between two fragments of the demo model, in ms. */
  demoDelayMs: number;
}

/** How long an answer that has ended may take to end its body, where something may still follow. */
const LATE_WORD_MS = 500;
/** The same for one whose token numbers have not come. */
const LATE_USAGE_MS = 5000;

/** The longest answer, in characters of its segments: as long as the longest event. */
const MAX_ANSWER_CHARS = 32 * 1024 * 1024;
/** The same as it comes, in characters of its events: what frames a fragment is often longer than the fragment. */
const MAX_ANSWER_DATA = 4 * MAX_ANSWER_CHARS;
/** The most segments of an answer: each text, each thought and each call is one. */
const MAX_ANSWER_SEGMENTS = 10_000;

/** The longest word for how an answer ended; the known ones have some twenty characters. */
const MAX_FINISH_REASON = 100;

/** Each is loaded with the first Request that speaks it: most servers know one or two of them, none at its start. */
const WIRES: Partial<Record<Protocol, () => Promise<Wire>>> = {
  "anthropic-messages": async () => (await import("./wire/anthropic-messages.js")).anthropicMessages,
  "openai-chat": async () => (await import("./wire/openai-chat.js")).openaiChat,
  "openai-responses": async () => (await import("./wire/openai-responses.js")).openaiResponses,
  gemini: async () => (await import("./wire/gemini.js")).gemini,
};

/** True for a protocol that `createLLMClient` takes. */
export const speaks = (protocol: Protocol): boolean => protocol === "demo" || WIRES[protocol] !== undefined;

/** @returns a client for one model. Throws for a protocol that `speaks` denies. */
export function createLLMClient(model: ModelSpec, deps: LLMClientDeps): LLMClient {
  if (model.protocol === "demo") return createDemoModel(deps);
  const load = WIRES[model.protocol];
  if (load === undefined) throw new Error(`no client for protocol ${model.protocol}`);
  return { stream: (request) => streamAnswer(load, model, deps, request) };
}

async function* streamAnswer(
  load: () => Promise<Wire>,
  model: ModelSpec,
  deps: LLMClientDeps,
  request: LLMRequest,
): AsyncGenerator<readonly OmniMessage[], LLMOutcome, void> {
  const { clock, requestTimeoutMs: silenceMs } = deps;
  const { signal } = request;
  const wire = await load();
  const http = await import("./http-sse.js");
  const writer = new SegmentWriter(() => clock.iso());
  const decoder = wire.decoder({
    writer,
    ids: new ToolCallIds((id) => request.isCallIdTaken(id), deps.newId),
    from: originMark(model),
    toolNames: request.tools.map(({ name }) => name),
  });
  const grace = new Grace(clock);
  let lost: Failure | undefined;
  let events: EventStream | undefined;
  try {
    lost = refusedForSize(request);
    const patience = AbortSignal.any([signal, grace.over]);
    if (lost === undefined)
      events = new http.EventStream(wire.encode(request, model), { clock, silenceMs, signal: patience });
    let chars = 0;
    // Here rather than in a generator of its own: each one between adds turns of the queue to every token.
    while (events !== undefined && lost === undefined) {
      const found = await events.next();
      if (signal.aborted) break;
      if (found === undefined) {
        lost = events.failure;
        break;
      }
      for (const event of found) {
        decoder.push(event);
        chars += event.data.length;
      }
      const due = writer.take();
      if (due.length > 0) yield due;
      if (decoder.done) break;
      lost = tooMuch(writer, chars);
      grace.look(decoder);
    }
  } catch (cause) {
    // An address that is none, or a fault of ours: an outcome either way, for nothing may be thrown from here.
    lost = unexpected(cause);
  } finally {
    grace.cancel();
    events?.close();
  }
  if (signal.aborted) return { status: "aborted", usage: decoder.usage };
  const outcome = decoder.end(lost);
  const due = writer.take();
  if (due.length > 0) yield due;
  return shown(outcome, model);
}

/** The outcome without secrets: the provider's words in it are stored and shown. */
function shown(outcome: LLMOutcome, { apiKey }: ModelSpec): LLMOutcome {
  const { error, finishReason } = outcome;
  if (error !== undefined) error.message = presentable(error.message, [apiKey]);
  if (finishReason !== undefined) outcome.finishReason = presentable(finishReason, [apiKey], MAX_FINISH_REASON);
  return outcome;
}

/** @param data characters of the events so far */
function tooMuch({ count, chars }: SegmentWriter, data: number): Failure | undefined {
  if (count > MAX_ANSWER_SEGMENTS)
    return failure("malformed", `the answer has more than ${MAX_ANSWER_SEGMENTS} segments`);
  if (chars > MAX_ANSWER_CHARS) return tooLong(MAX_ANSWER_CHARS, "");
  if (data > MAX_ANSWER_DATA) return tooLong(MAX_ANSWER_DATA, " of events");
  return undefined;
}

const tooLong = (limit: number, what: string): Failure =>
  failure("malformed", `the answer is longer than ${limit} characters${what}`);

/**
 * The end of the wait for a body's end, once the answer itself has ended. Only what an event says moves it: comments and
 * events that say nothing new do not.
 */
class Grace {
  readonly #clock: Clock;
  readonly #over = new AbortController();
  #cancel: (() => void) | undefined;
  #ms: number | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get over(): AbortSignal {
    return this.#over.signal;
  }

  look({ settled, owesUsage }: WireDecoder): void {
    const ms = settled !== true ? undefined : owesUsage === true ? LATE_USAGE_MS : LATE_WORD_MS;
    if (ms === this.#ms) return;
    this.cancel();
    this.#ms = ms;
    if (ms !== undefined) this.#cancel = this.#clock.after(ms, () => this.#over.abort());
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}

function unexpected(cause: unknown): Failure {
  const message = cause instanceof Error ? cause.message : String(cause);
  const isAddress = (cause as { code?: unknown } | undefined)?.code === "ERR_INVALID_URL";
  return isAddress ? failure("invalid_request", `the model's base URL: ${message}`) : failure("unknown", message);
}
