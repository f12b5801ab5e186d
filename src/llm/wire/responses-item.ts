// One output item each: a message, reasoning, a call. An item takes its place among the segments when it is announced
// and leaves nothing there if it stays empty.

import { append } from "../../append.js";
import type { Fidelity } from "../../protocol/payloads.js";
import type { ContentSegment, ToolCallSegment } from "../../protocol/segment.js";
import { asList, asRecord, asText, isBlank, isObjectText, type JsonRecord } from "./json.js";
import { isReadable, reasoningMembers } from "./responses-fidelity.js";
import { RESPONSES_NAMES } from "./responses-names.js";
import { type PartKind, type PartPiece, Parts } from "./responses-parts.js";
import { ownToolName } from "./tool-names.js";
import type { DecoderContext } from "./wire.js";

/** Takes the hosted tools' items that stand right before an item and have not been kept yet. */
export type TakeBefore = () => JsonRecord[];

/** Members with ours beside them; none where there is nothing to keep. */
function marked(members: Fidelity, before: readonly JsonRecord[], from: string): Fidelity | undefined {
  const all = before.length > 0 ? { ...members, before } : members;
  return Object.keys(all).length > 0 ? { ...all, from } : undefined;
}

export class MessageItem {
  readonly kind = "message";
  readonly #context: DecoderContext;
  readonly #takeBefore: TakeBefore;
  readonly #segment: ContentSegment;
  readonly #parts = new Parts();
  #phase = "";
  #before: JsonRecord[] = [];
  refusal = "";
  done = false;

  constructor(context: DecoderContext, takeBefore: TakeBefore) {
    this.#context = context;
    this.#takeBefore = takeBefore;
    this.#segment = context.writer.openText();
  }

  get isVisible(): boolean {
    return this.#segment.content !== "";
  }

  announce(item: JsonRecord): void {
    this.#phase = asText(item.phase) || this.#phase;
  }

  add(piece: PartPiece): void {
    const { text = "" } = this.#parts.add(piece) ?? {};
    if (piece.kind === "refusal") this.refusal += text;
    else if (text !== "") {
      const isFirst = !this.isVisible;
      this.#segment.append(text);
      // Now, not only at the end: an answer that fails later keeps its phase too.
      if (isFirst) this.#mark();
    }
  }

  finish(item: JsonRecord): void {
    this.announce(item);
    const content = typeof item.content === "string" ? [{ type: "output_text", text: item.content }] : item.content;
    for (const piece of wholeParts(content)) this.add(piece);
    if (this.isVisible) this.#mark();
    this.#segment.end();
    this.done = true;
  }

  #mark(): void {
    append(this.#before, this.#takeBefore());
    const fidelity = marked(this.#phase === "" ? {} : { phase: this.#phase }, this.#before, this.#context.from);
    if (fidelity !== undefined) this.#segment.setFidelity(fidelity);
  }
}

export class ReasoningItem {
  readonly kind = "reasoning";
  readonly #context: DecoderContext;
  readonly #takeBefore: TakeBefore;
  readonly #parts = new Parts();
  #segment: ContentSegment;
  /** Retold or raw: the one that came first is shown, the other says the same. */
  #shown: PartKind | undefined;
  #id: string;
  #gaveWay = false;
  done = false;

  /** @param fallbackId names the item where the server gives it no id. */
  constructor(context: DecoderContext, takeBefore: TakeBefore, fallbackId: string) {
    this.#context = context;
    this.#takeBefore = takeBefore;
    this.#segment = context.writer.openThinking();
    this.#id = fallbackId;
  }

  announce(item: JsonRecord): void {
    this.#id = asText(item.id) || this.#id;
  }

  add(piece: PartPiece): void {
    const added = this.#parts.add(piece);
    if (added === undefined || added.text === "") return;
    this.#shown ??= piece.kind;
    if (piece.kind !== this.#shown) return;
    if (this.#segment.ended) this.#segment = this.#context.writer.openThinking();
    const isParagraph = piece.kind === "summary" && added.first && this.#segment.content !== "";
    this.#segment.append(isParagraph ? `\n\n${added.text}` : added.text);
  }

  /**
   * Raw thoughts let the answer behind them through: some servers end them only after it, and it would wait till then.
   * An encrypted form that comes after all follows in a message of its own, which names the one it replaces.
   */
  giveWay(): void {
    if (this.#shown !== "reasoning" || this.#segment.ended) return;
    this.#gaveWay = true;
    this.#segment.setFidelity({ id: this.#id, summary: [], from: this.#context.from });
    this.#segment.end();
  }

  finish(item: JsonRecord): void {
    for (const piece of wholeParts(item.summary)) this.add(piece);
    for (const piece of wholeParts(item.content)) this.add(piece);
    this.done = true;
    const readable = isReadable(item);
    if (this.#segment.ended) {
      if (!readable) return;
      this.#segment = this.#context.writer.openThinking();
    }
    if (readable || this.#segment.content !== "") {
      const members = reasoningMembers(item);
      if (readable && this.#gaveWay) members.replaces = this.#id;
      const fidelity = marked(members, this.#takeBefore(), this.#context.from);
      if (fidelity !== undefined) this.#segment.setFidelity(fidelity);
    }
    this.#segment.end();
  }
}

export class CallItem {
  readonly kind = "call";
  readonly #context: DecoderContext;
  readonly #takeBefore: TakeBefore;
  readonly #segment: ToolCallSegment;
  readonly #parts = new Parts();
  #name = "";
  #callId = "";
  #isCut = false;
  #problem: string | undefined;
  done = false;

  constructor(context: DecoderContext, takeBefore: TakeBefore) {
    this.#context = context;
    this.#takeBefore = takeBefore;
    this.#segment = context.writer.openToolCall();
  }

  get callId(): string {
    return this.#callId;
  }

  /** What makes the call undecodable, if something does. */
  get problem(): string | undefined {
    return this.#problem;
  }

  announce(item: JsonRecord): void {
    if (this.#name === "") this.#name = asText(item.name);
    if (this.#callId === "") this.#callId = asText(item.call_id);
    if (this.#callId !== "") this.#identify();
  }

  add(piece: PartPiece): void {
    // A whole that says nothing takes nothing back.
    if (piece.whole && isBlank(piece.text)) return;
    const added = this.#parts.add(piece);
    if (added !== undefined) this.#segment.append(added.text);
    else if (!isObjectText(this.#segment.content)) {
      this.#problem = `the arguments of ${this.#name} are not what was streamed of them`;
    }
  }

  finish(item: JsonRecord): void {
    this.announce(item);
    this.add({ kind: "arguments", index: 0, text: argumentsText(item.arguments), whole: true });
    this.done = true;
    // The limit cut it off within its arguments: it is not a call that may run, and the answer's end says how it ends.
    this.#isCut = item.status === "incomplete" && !isObjectText(this.#segment.content);
    if (!this.#isCut && this.problem === undefined) this.#close();
  }

  /** @param answerIsCut the answer ended before its time. */
  settle(answerIsCut: boolean): void {
    if (this.#segment.ended) return;
    const cut = this.#isCut || (answerIsCut && !isObjectText(this.#segment.content));
    this.#close(cut ? "malformed" : undefined);
  }

  /** Makes a call of it as far as it came; whoever fails the answer closes it. */
  identifyLate(): void {
    this.#identify();
  }

  #close(stop?: "malformed"): void {
    // Called without a name it is still a call: its output tells the model so.
    this.#fix();
    this.#segment.end(stop);
  }

  #identify(): void {
    if (this.#name !== "") this.#fix();
  }

  #fix(): void {
    if (this.#segment.identified) return;
    const { ids, from, toolNames = [] } = this.#context;
    const { toolCallId, providerCallId } = ids.accept(this.#callId);
    const members: Fidelity = providerCallId === undefined ? {} : { provider_call_id: providerCallId };
    const fidelity = marked(members, this.#takeBefore(), from);
    if (fidelity !== undefined) this.#segment.setFidelity(fidelity);
    this.#segment.identify(ownToolName(this.#name, toolNames, RESPONSES_NAMES), toolCallId);
  }
}

const argumentsText = (value: unknown): string =>
  asRecord(value) === undefined ? asText(value) : JSON.stringify(value);

/** The kind of a part by its `type`, and the member that holds its text. */
const PART_TYPES: ReadonlyMap<unknown, { kind: PartKind; field: string }> = new Map(
  Object.entries({
    output_text: { kind: "text", field: "text" },
    refusal: { kind: "refusal", field: "refusal" },
    summary_text: { kind: "summary", field: "text" },
    reasoning_text: { kind: "reasoning", field: "text" },
  }),
);

/** A list of `content` or `summary` as pieces. */
export function wholeParts(list: unknown): PartPiece[] {
  return asList(list).flatMap((part, index) => wholePart(part, index) ?? []);
}

export function wholePart(value: unknown, index: number): PartPiece | undefined {
  const part = asRecord(value);
  const type = PART_TYPES.get(part?.type);
  return type && { kind: type.kind, index, text: asText(part?.[type.field]), whole: true };
}
