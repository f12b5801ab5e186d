// Tool calls of a Gemini answer. A call comes whole in one part, often without an id; only where streamed arguments were
// asked for it comes in several, and the last of them is the one that does not say `willContinue`.

import type { Fidelity } from "../../protocol/payloads.js";
import type { ToolCallSegment } from "../../protocol/segment.js";
import { GEMINI_NAMES } from "./gemini-names.js";
import { PartialArgs } from "./gemini-partial-args.js";
import { asList, asText, type JsonRecord } from "./json.js";
import { ownToolName } from "./tool-names.js";
import type { DecoderContext } from "./wire.js";

interface OpenCall {
  segment: ToolCallSegment;
  fidelity: Fidelity;
  args: unknown;
  pieces: PartialArgs;
}

/** The tool calls of one answer. */
export class GeminiCalls {
  readonly #context: DecoderContext;
  #open: OpenCall | undefined;
  #count = 0;
  #problem: string | undefined;

  constructor(context: DecoderContext) {
    this.#context = context;
  }

  get count(): number {
    return this.#count;
  }

  /** True while the last part of a call has not come. */
  get isOpen(): boolean {
    return this.#open !== undefined;
  }

  /** What makes the calls undecodable, once something does. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** @param beforeOpen runs before a call takes its place among the segments. */
  push(part: JsonRecord, signature: string, beforeOpen: () => void): void {
    const name = asText(part.name);
    // Called without a name it is still a call: its output tells the model so.
    if (name !== "" || (this.#open === undefined && hasArguments(part))) {
      if (this.#open !== undefined) this.#problem ??= "a tool call began before the one before it was whole";
      beforeOpen();
      this.#open = this.#begin(name, asText(part.id));
    }
    const call = this.#open;
    if (call === undefined) return;
    if (signature !== "") call.segment.setFidelity(Object.assign(call.fidelity, { thought_signature: signature }));
    if (part.args !== undefined && part.args !== null) call.args = part.args;
    for (const piece of asList(part.partialArgs)) this.#problem ??= call.pieces.apply(piece);
    if (part.willContinue !== true) this.#finish(call);
  }

  /** Closes the call that was cut off within its arguments, if one was: it never runs. */
  cut(): void {
    this.#open?.segment.end("malformed");
    this.#open = undefined;
  }

  #begin(name: string, id: string): OpenCall {
    const segment = this.#context.writer.openToolCall();
    const { toolCallId, providerCallId } = this.#context.ids.accept(id);
    const fidelity: Fidelity = {};
    // null: the provider gave none, so none goes back.
    if (id === "") fidelity.provider_call_id = null;
    else if (providerCallId !== undefined) fidelity.provider_call_id = providerCallId;
    fidelity.from = this.#context.from;
    segment.setFidelity(fidelity);
    segment.identify(ownToolName(name, this.#context.toolNames ?? [], GEMINI_NAMES), toolCallId);
    this.#count += 1;
    return { segment, fidelity, args: undefined, pieces: new PartialArgs() };
  }

  #finish(call: OpenCall): void {
    if (call.pieces.isOpen) this.#problem ??= "a tool call ended within a string of its arguments";
    // A call whose arguments cannot be trusted stays open; the answer fails and closes it.
    if (this.#problem !== undefined) return;
    call.segment.append(call.pieces.touched ? call.pieces.toJson() : JSON.stringify(call.args ?? {}));
    call.segment.end();
    this.#open = undefined;
  }
}

const hasArguments = (part: JsonRecord): boolean =>
  part.args !== undefined || part.id !== undefined || asList(part.partialArgs).length > 0;
