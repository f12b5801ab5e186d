// The content blocks of one answer of the Messages protocol, from start, deltas and stop to segments. Blocks are told
// apart by index alone. A tool call ends at its block's stop, so that it can run while the rest is still coming.
//
// Blocks that are nobody's business but the provider's (server tools, compaction, kinds we do not know) make no segment:
// they ride in the fidelity of the next one as `blocks_before`, and behind the last one in a hidden thought.

import { MAX_ARGUMENT_DEPTH, nestsDeeper } from "../../protocol/json-depth.js";
import type { Fidelity, StopReason } from "../../protocol/payloads.js";
import type { ContentSegment, ToolCallSegment } from "../../protocol/segment.js";
import { unreachable } from "../../result.js";
import { ANTHROPIC_NAMES } from "./anthropic-assistant.js";
import { asList, asRecord, asText, isBlank, isObjectText, type JsonRecord } from "./json.js";
import { ownToolName } from "./tool-names.js";
import type { DecoderContext } from "./wire.js";

type Block = {
  /** Its stop was seen, or another block took its index. */
  stopped: boolean;
  /** Opaque blocks that came in front of it. */
  before: JsonRecord[];
} & (
  | { kind: "text"; segment: ContentSegment; citations: unknown[] }
  | { kind: "thinking"; segment: ContentSegment; signature: string }
  | { kind: "redacted"; segment: ContentSegment; data: string }
  | { kind: "call"; segment: ToolCallSegment; input: JsonRecord }
  | { kind: "opaque"; record: JsonRecord; json: string }
);
type Of<K extends Block["kind"]> = Extract<Block, { kind: K }>;

export class AnthropicBlocks {
  readonly #context: DecoderContext;
  readonly #blocks: Block[] = [];
  readonly #byIndex = new Map<number, Block>();
  /** Opaque blocks that wait for a segment to ride in. */
  #waiting: JsonRecord[] = [];
  #lastIndex = 0;
  #visible = false;
  #problem: string | undefined;

  constructor(context: DecoderContext) {
    this.#context = context;
  }

  get any(): boolean {
    return this.#blocks.length > 0;
  }

  /** True once text for the user has come. */
  get visible(): boolean {
    return this.#visible;
  }

  /** What makes the answer undecodable, once something does. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** True while some call's arguments are neither an object nor left out. */
  get anyBroken(): boolean {
    return this.#blocks.some((block) => block.kind === "call" && !isBlankOrObject(block.segment.content));
  }

  start(index: number | undefined, content: JsonRecord): void {
    const at = index ?? this.#lastIndex + (this.any ? 1 : 0);
    const replaced = this.#byIndex.get(at);
    if (replaced !== undefined && !replaced.stopped) this.#stop(replaced);
    const block = this.#open(content);
    this.#blocks.push(block);
    this.#byIndex.set(at, block);
    this.#lastIndex = at;
  }

  delta(index: number | undefined, delta: JsonRecord): void {
    const at = index ?? this.#lastIndex;
    const block = this.#byIndex.get(at);
    if (block === undefined || block.stopped) this.#stray(at, delta);
    else this.#append(block, delta);
  }

  #append(block: Block, delta: JsonRecord): void {
    switch (delta.type) {
      case "text_delta":
        if (block.kind === "text") this.#text(block, asText(delta.text));
        break;
      case "citations_delta":
        if (block.kind === "text" && delta.citation !== undefined) block.citations.push(delta.citation);
        break;
      case "thinking_delta":
        if (block.kind === "thinking") block.segment.append(asText(delta.thinking));
        break;
      case "signature_delta":
        if (block.kind === "thinking") block.signature += asText(delta.signature);
        break;
      case "input_json_delta":
        if (block.kind === "call") block.segment.append(asText(delta.partial_json));
        else if (block.kind === "opaque") block.json += asText(delta.partial_json);
        break;
      default:
        if (block.kind === "opaque") glue(block.record, delta);
    }
  }

  stop(index: number | undefined): void {
    const block = this.#byIndex.get(index ?? this.#lastIndex);
    if (block !== undefined && !block.stopped) this.#stop(block);
  }

  /**
   * Ends what is open in an answer that is complete.
   * @param cut a limit cut the answer off: what the last block lacks is lost.
   */
  finish(cut: boolean): void {
    for (const block of this.#blocks) {
      const isCut = cut && block === this.#blocks.at(-1);
      if (block.kind === "call") endCall(block, isCut);
      else if (!block.stopped) this.#finish(block, isCut);
    }
    if (this.#waiting.length === 0) return;
    const carrier = this.#context.writer.openThinking();
    carrier.setFidelity({ blocks_before: this.#waiting, from: this.#context.from });
    carrier.end();
  }

  #open(content: JsonRecord): Block {
    const { writer } = this.#context;
    const rest = () => ({ stopped: false, before: this.#takeWaiting() });
    switch (content.type) {
      case "text": {
        const segment = writer.openText();
        const block: Block = { kind: "text", segment, citations: [...asList(content.citations)], ...rest() };
        this.#text(block, asText(content.text));
        return block;
      }
      case "thinking": {
        const segment = writer.openThinking();
        segment.append(asText(content.thinking));
        return { kind: "thinking", segment, signature: asText(content.signature), ...rest() };
      }
      case "redacted_thinking":
        return { kind: "redacted", segment: writer.openThinking(), data: asText(content.data), ...rest() };
      case "tool_use":
        return this.#openCall(content, rest());
      default:
        return { kind: "opaque", record: { ...content }, json: "", stopped: false, before: [] };
    }
  }

  #openCall(content: JsonRecord, rest: Pick<Block, "stopped" | "before">): Block {
    const name = asText(content.name);
    const segment = this.#context.writer.openToolCall();
    const { toolCallId, providerCallId } = this.#context.ids.accept(asText(content.id));
    const fidelity: Fidelity = {};
    if (providerCallId !== undefined) fidelity.provider_call_id = providerCallId;
    if (rest.before.length > 0) fidelity.blocks_before = rest.before;
    if (Object.keys(fidelity).length > 0) segment.setFidelity({ ...fidelity, from: this.#context.from });
    // Called without a name it is still a call: its output tells the model so.
    segment.identify(ownToolName(name, this.#context.toolNames ?? [], ANTHROPIC_NAMES), toolCallId);
    return { kind: "call", segment, input: asRecord(content.input) ?? {}, ...rest };
  }

  #text(block: Of<"text">, text: string): void {
    if (text !== "") this.#visible = true;
    block.segment.append(text);
  }

  /** A delta for a block that never started or is over. Words are kept; arguments without a call are not. */
  #stray(index: number, delta: JsonRecord): void {
    if (delta.type === "text_delta" || delta.type === "thinking_delta") {
      this.start(index, { type: delta.type === "text_delta" ? "text" : "thinking" });
      this.delta(index, delta);
    } else if (delta.type === "input_json_delta" && !isBlank(asText(delta.partial_json))) {
      this.#problem = "arguments outside of a tool call";
    }
  }

  #stop(block: Block): void {
    block.stopped = true;
    if (block.kind !== "call") this.#finish(block, false);
    else {
      fillIn(block);
      // What is broken here may turn out to have been cut by a limit: the answer's end tells.
      if (isBlankOrObject(block.segment.content)) block.segment.end();
    }
  }

  #finish(block: Exclude<Block, Of<"call">>, isCut: boolean): void {
    block.stopped = true;
    if (block.kind !== "opaque") this.#close(block, fidelityOf(block, isCut));
    else if (!isCut && asText(block.record.type) !== "") this.#waiting.push(opaqueRecord(block));
  }

  /** Ends a segment with its fidelity. One that holds nothing leaves nothing, and what rode in it waits again. */
  #close(block: Of<"text" | "thinking" | "redacted">, own: Fidelity): void {
    const { segment, before, kind } = block;
    const isEmpty = segment.content === "" && (kind === "text" || Object.keys(own).length === 0);
    if (isEmpty) this.#waiting = [...before, ...this.#waiting];
    else {
      const fidelity = before.length > 0 ? { blocks_before: before, ...own } : own;
      // Unsigned reasoning still says whose it is.
      const isOwned = kind !== "text" || Object.keys(fidelity).length > 0;
      if (isOwned) segment.setFidelity({ ...fidelity, from: this.#context.from });
    }
    segment.end();
  }

  #takeWaiting(): JsonRecord[] {
    const waiting = this.#waiting;
    this.#waiting = [];
    return waiting;
  }
}

function fidelityOf(block: Of<"text" | "thinking" | "redacted">, isCut: boolean): Fidelity {
  switch (block.kind) {
    case "text":
      return block.citations.length > 0 ? { citations: block.citations } : {};
    case "thinking":
      // Half a signature is none.
      return block.signature === "" || isCut ? {} : { signature: block.signature };
    case "redacted":
      return block.data === "" ? {} : { redacted_thinking: block.data };
    default:
      return unreachable(block);
  }
}

const isBlankOrObject = (text: string): boolean => isBlank(text) || isObjectText(text);

/** Ends a call of a complete answer. One that no stop closed must have whole arguments to be run. */
function endCall(call: Of<"call">, isCut: boolean): void {
  if (call.segment.ended) return;
  fillIn(call);
  const { content } = call.segment;
  const isWhole = isObjectText(content) || (isBlank(content) && !isCut);
  const stop: StopReason | undefined = isWhole || (call.stopped && !isCut) ? undefined : "malformed";
  call.segment.end(stop);
}

/** Some servers send the whole input with the start, and no delta. */
function fillIn(call: Of<"call">): void {
  const isGiven = isBlank(call.segment.content) && Object.keys(call.input).length > 0;
  if (isGiven) call.segment.append(JSON.stringify(call.input));
}

/** Strings of an unknown delta continue the block's own; anything else replaces. */
function glue(record: JsonRecord, delta: JsonRecord): void {
  for (const [key, value] of Object.entries(delta)) {
    if (key === "type") continue;
    record[key] = typeof value === "string" ? asText(record[key]) + value : value;
  }
}

/** The block as it goes back: input that came in pieces is put in its place. */
function opaqueRecord({ record, json }: Of<"opaque">): JsonRecord {
  if (isBlank(json)) return record;
  // Arguments that do not parse leave the block as it began; the provider ran it on its own.
  const isInput = !nestsDeeper(json, MAX_ARGUMENT_DEPTH) && isObjectText(json);
  return isInput ? { ...record, input: JSON.parse(json) } : record;
}
