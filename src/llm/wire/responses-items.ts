// The output items of one answer, each found by its place in the output: ids change from event to event with some
// servers, and other servers send events without the announcement that should come first.

import type { StopReason } from "../../protocol/payloads.js";
import { unreachable } from "../../result.js";
import { asRecord, asText, type JsonRecord } from "./json.js";
import { CallItem, MessageItem, ReasoningItem } from "./responses-item.js";
import type { PartKind, PartPiece } from "./responses-parts.js";
import type { DecoderContext } from "./wire.js";

/** What a hosted tool did. Not ours to show; it goes back in its place, for reasoning may not lose what it led to. */
class HostedItem {
  readonly kind = "hosted";
  done = false;
  raw: JsonRecord | undefined;

  announce(): void {}

  add(): void {}

  finish(item: JsonRecord): void {
    this.done = true;
    this.raw = item;
  }
}

type Item = MessageItem | ReasoningItem | CallItem | HostedItem;

const KIND_OF_PART: Record<PartKind, Item["kind"]> = {
  text: "message",
  refusal: "message",
  summary: "reasoning",
  reasoning: "reasoning",
  arguments: "call",
};

export class ResponseItems {
  readonly #context: DecoderContext;
  /** In the order of their announcement. */
  readonly #items: Item[] = [];
  readonly #byIndex = new Map<number, Item>();
  #lastIndex = -1;

  constructor(context: DecoderContext) {
    this.#context = context;
  }

  /** True when some text of the answer was shown. */
  get isVisible(): boolean {
    return this.#messages().some((item) => item.isVisible);
  }

  get refusal(): string {
    return this.#messages()
      .map((item) => item.refusal)
      .join("");
  }

  get hasCalls(): boolean {
    return this.#calls().length > 0;
  }

  /** What makes a call undecodable, if something does. */
  get problem(): string | undefined {
    return this.#calls()
      .map((call) => call.problem)
      .find((problem) => problem !== undefined);
  }

  /** @param place the event's `output_index`. */
  announce(place: unknown, item: JsonRecord): void {
    const kind = kindOf(item);
    const index = typeof place === "number" ? place : this.#lastIndex + 1;
    // The same call under another place is still one call, and must not run twice.
    const known = this.#openCall(kind, asText(item.call_id));
    if (known !== undefined) this.#byIndex.set(index, known);
    (known ?? this.#open(index, kind)).announce(item);
  }

  part(place: unknown, piece: PartPiece): void {
    const kind = KIND_OF_PART[piece.kind];
    const known = this.#byIndex.get(this.#index(place));
    if (known?.kind === "hosted" || (known?.kind === kind && known.done && piece.whole)) return;
    if (piece.text === "") return;
    const item = this.#find(place, kind) ?? this.#open(this.#index(place), kind);
    if (kind === "message") this.#letThrough(item);
    item.add(piece);
  }

  finish(place: unknown, item: JsonRecord): void {
    const kind = kindOf(item);
    const index = this.#index(place);
    const known = this.#byIndex.get(index);
    if (known?.kind === kind && known.done && isSame(known, item)) return;
    const found = this.#openCall(kind, asText(item.call_id)) ?? this.#find(place, kind) ?? this.#open(index, kind);
    this.#byIndex.set(index, found);
    if (kind === "message") this.#letThrough(found);
    found.finish(item);
  }

  /**
   * Ends what was not ended.
   * @param output the list at the end of the answer, which is all there is where nothing was streamed. One whose places
   *   are not those of the stream is not used.
   * @param cut the answer ended before its time.
   */
  settle(output: readonly unknown[], cut: boolean): void {
    const items = output.map((item) => asRecord(item) ?? {});
    if ([...this.#byIndex].every(([index, { kind }]) => kind === kindOf(items[index] ?? {}))) {
      items.forEach((item, index) => {
        if (this.#byIndex.get(index)?.done !== true) this.finish(index, item);
      });
    }
    for (const call of this.#calls()) call.settle(cut);
  }

  /** Ends all segments of an answer that failed. */
  closeAll(stop: StopReason): void {
    for (const call of this.#calls()) call.identifyLate();
    this.#context.writer.endAll(stop);
  }

  #index(place: unknown): number {
    return typeof place === "number" ? place : Math.max(this.#lastIndex, 0);
  }

  /**
   * The open item of this kind in its place; where the event names no place, or another item has taken it since, the
   * last one that is open.
   */
  #find(place: unknown, kind: Item["kind"]): Item | undefined {
    const known = this.#byIndex.get(this.#index(place));
    if (known?.kind === kind && !known.done) return known;
    const placed = typeof place === "number" ? new Set(this.#byIndex.values()) : undefined;
    return this.#items.findLast((item) => item.kind === kind && !item.done && placed?.has(item) !== true);
  }

  #open(index: number, kind: Item["kind"]): Item {
    const item = this.#make(index, kind);
    if (item.kind === "call") this.#letThrough(item);
    this.#items.push(item);
    this.#byIndex.set(index, item);
    this.#lastIndex = index;
    return item;
  }

  #make(index: number, kind: Item["kind"]): Item {
    const position = this.#items.length;
    const takeBefore = () => this.#takeHosted(position);
    switch (kind) {
      case "message":
        return new MessageItem(this.#context, takeBefore);
      case "reasoning":
        return new ReasoningItem(this.#context, takeBefore, `output_${index}`);
      case "call":
        return new CallItem(this.#context, takeBefore);
      case "hosted":
        return new HostedItem();
      default:
        return unreachable(kind);
    }
  }

  /** `item` has something to show: what it would wait for and need not, gives way. */
  #letThrough(item: Item): void {
    for (const earlier of this.#items) {
      if (earlier === item) return;
      if (earlier.kind === "reasoning" && !earlier.done) earlier.giveWay();
    }
  }

  #takeHosted(position: number): JsonRecord[] {
    return this.#items.slice(0, position).flatMap((item) => {
      if (item.kind !== "hosted" || item.raw === undefined) return [];
      const { raw } = item;
      item.raw = undefined;
      return [raw];
    });
  }

  /** The call that is open under this id, wherever it was announced. */
  #openCall(kind: Item["kind"], callId: string): Item | undefined {
    if (kind !== "call" || callId === "") return undefined;
    return this.#calls().find((call) => !call.done && call.callId === callId);
  }

  #messages(): MessageItem[] {
    return this.#items.filter((item) => item.kind === "message");
  }

  #calls(): CallItem[] {
    return this.#items.filter((item) => item.kind === "call");
  }
}

function kindOf(item: JsonRecord): Item["kind"] {
  switch (item.type) {
    case "message":
    case "reasoning":
      return item.type;
    case "function_call":
      return "call";
    default:
      return "hosted";
  }
}

/** The same item once more, not another one in its place. */
const isSame = (known: Item, item: JsonRecord): boolean =>
  known.kind !== "call" || known.callId === asText(item.call_id);
