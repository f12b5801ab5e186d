// Holds a stream, or a Trace, to every ordering guarantee of the protocol. One rule for each guarantee, one set of rules
// for each chain of `origin`: a child's stream inside its parent's is judged like any other.
//
// Memory: the ids of the tool calls, the text of what is open, and the violations; never the messages themselves.

import { isPartial, isSessionMeta } from "./guards.js";
import { type OmniMessage, parseMessage } from "./message.js";
import { eventPayloadSchema, modelPayloadSchema } from "./payloads.js";
import { abortIsLast } from "./rules/abort.js";
import { approvals } from "./rules/approvals.js";
import { compaction } from "./rules/compaction.js";
import { type ChainFacts, fold, noFacts } from "./rules/facts.js";
import { chainKey, origin } from "./rules/origin.js";
import { pairing } from "./rules/pairing.js";
import { requestTail } from "./rules/request-tail.js";
import { retry } from "./rules/retry.js";
import type { Look, Mode, Rule } from "./rules/rule.js";
import { segments } from "./rules/segments.js";
import { streamOrder } from "./rules/stream-order.js";
import { surface } from "./rules/surface.js";
import { usage } from "./rules/usage.js";

/** A guarantee that a message broke. `place` is what it was pushed with: an index, or a line number. */
export interface Violation {
  place: number;
  rule: string;
  message: string;
  origin?: string[];
  toolCallId?: string;
}

export interface ValidateOptions {
  mode: Mode;
  /** What is pushed begins somewhere inside the Session: what answers to something earlier is let through. */
  joined?: boolean;
}

interface Chain {
  origin: string[] | undefined;
  facts: ChainFacts;
  rules: Rule[];
}

const KNOWN: ReadonlySet<unknown> = new Set(
  [...modelPayloadSchema.options, ...eventPayloadSchema.options].map((schema) => schema.shape.type.value),
);

/** Judges messages one by one. What it found so far is in `violations`, in order of discovery. */
export class StreamValidator {
  readonly violations: Violation[] = [];
  readonly #mode: Mode;
  readonly #joined: boolean;
  readonly #origin: Rule;
  readonly #chains = new Map<string, Chain>();
  #next = 0;

  constructor(options: ValidateOptions) {
    this.#mode = options.mode;
    this.#joined = options.joined === true;
    this.#origin = origin(this.#mode, this.#joined);
  }

  /** Takes the next message; its `place` is counted from 0 where it is not given. Payload types from the future pass. */
  push(message: OmniMessage, place: number = this.#next): void {
    this.#next = place + 1;
    if (!isSessionMeta(message) && !KNOWN.has((message.payload as { type?: unknown }).type)) return;
    const chain = this.#chainOf(message);
    this.#origin.push(message, this.#look(this.#origin, chain, place));
    // Neither belongs in a Trace at all; it would only confuse the rules about what does.
    const isForeign = this.#mode === "trace" && (chain.origin !== undefined || isPartial(message));
    for (const rule of chain.rules) {
      if (!isForeign || (rule.name === "surface" && chain.origin === undefined)) {
        rule.push(message, this.#look(rule, chain, place));
      }
    }
    if (!isForeign) fold(chain.facts, message, place);
  }

  /** Nothing more will come: reports what is still open. Not called for a stream that goes on, see `open`. */
  end(): void {
    for (const chain of this.#chains.values()) {
      for (const rule of chain.rules) rule.end?.(this.#look(rule, chain, this.#next));
    }
  }

  /** What is open on the Session's own chain, for whoever stops reading while it goes on. */
  get open(): { request: boolean; compaction: boolean; undecided: number; unanswered: number } {
    const facts = this.#chains.get("")?.facts;
    return {
      request: facts?.requestOpen === true,
      compaction: facts?.compactionOpen === true,
      undecided: facts?.undecided.size ?? 0,
      unanswered: facts?.unanswered.size ?? 0,
    };
  }

  #chainOf(message: OmniMessage): Chain {
    const key = chainKey(message.origin);
    let chain = this.#chains.get(key);
    if (chain === undefined) {
      // A child whose session_meta is seen begins here, wherever the reader joined.
      const joined = this.#joined && !(key !== "" && isSessionMeta(message));
      const own = key === "" ? undefined : message.origin;
      chain = { origin: own, facts: noFacts(joined), rules: chainRules(this.#mode, key !== "", joined) };
      this.#chains.set(key, chain);
    }
    return chain;
  }

  #look(rule: Rule, chain: Chain, place: number): Look {
    return {
      place,
      facts: chain.facts,
      report: (message, at = {}) => {
        const violation: Violation = { place: at.place ?? place, rule: rule.name, message };
        if (chain.origin !== undefined) violation.origin = chain.origin;
        if (at.toolCallId !== undefined && at.toolCallId !== "") violation.toolCallId = at.toolCallId;
        this.violations.push(violation);
      },
    };
  }
}

/** Judges a whole stream or Trace. With `running` it goes on, and what is open at its end is no fault. */
export function validateStream(
  messages: Iterable<OmniMessage>,
  options: ValidateOptions & { running?: boolean },
): Violation[] {
  const validator = new StreamValidator(options);
  for (const message of messages) validator.push(message);
  if (options.running !== true) validator.end();
  return validator.violations;
}

/**
 * Checks that stream order is Trace order; `place` is the index in the stream. Only the first difference is told.
 * `joined`: the stream begins midway. `running`: the Trace was read later and may have more at its end.
 */
export function compareStreamWithTrace(
  stream: readonly OmniMessage[],
  trace: readonly OmniMessage[],
  options: { joined?: boolean; running?: boolean } = {},
): Violation[] {
  const fault = streamOrder(stream, trace, options);
  return fault === undefined ? [] : [{ ...fault, rule: "stream-order" }];
}

/**
 * Says what a value read from outside is. A message whose type is not known is `future`: it came from a later version
 * and is kept, not judged.
 */
export function classify(value: unknown): { message: OmniMessage } | { future: string } | { problems: string[] } {
  const parsed = parseMessage(value);
  if ("message" in parsed || typeof value !== "object" || value === null) return parsed;
  const { timestamp, type, payload } = value as { timestamp?: unknown; type?: unknown; payload?: unknown };
  if (typeof timestamp !== "string" || typeof type !== "string") return parsed;
  if (typeof payload !== "object" || payload === null || type === "session_meta") return parsed;
  if (type !== "model_msg" && type !== "event_msg") return { future: type };
  const { type: kind } = payload as { type?: unknown };
  return typeof kind === "string" && !KNOWN.has(kind) ? { future: kind } : parsed;
}

function chainRules(mode: Mode, isChild: boolean, joined: boolean): Rule[] {
  return [
    surface(mode, isChild, joined),
    segments(),
    requestTail(mode),
    approvals(),
    pairing(),
    retry(mode, joined),
    compaction(mode, joined),
    abortIsLast(mode),
    usage(mode, joined),
  ];
}
