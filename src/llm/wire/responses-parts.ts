// The parts of one output item. A server may stream a part, give it whole when it ends, or both: each character counts
// once.

/** `summary` and `reasoning` are a model's thoughts, retold or raw. */
export type PartKind = "text" | "refusal" | "summary" | "reasoning" | "arguments";

export interface PartPiece {
  kind: PartKind;
  /** The part's place among those of its kind. */
  index: number;
  text: string;
  /** The text is all of the part, not an addition to it. */
  whole: boolean;
}

interface Part {
  kind: PartKind;
  index: number;
  text: string;
}

export class Parts {
  readonly #parts: Part[] = [];

  /**
   * What a piece adds. `first` is true for the first characters of a part.
   * @returns undefined for a whole part that is not what was streamed of it.
   */
  add(piece: PartPiece): { text: string; first: boolean } | undefined {
    const part = this.#find(piece);
    const first = part.text === "";
    if (piece.whole && !piece.text.startsWith(part.text)) return undefined;
    const text = piece.whole ? piece.text.slice(part.text.length) : piece.text;
    part.text += text;
    return { text, first };
  }

  #find({ kind, index }: PartPiece): Part {
    const known = this.#parts.findLast((part) => part.kind === kind && part.index === index);
    if (known !== undefined) return known;
    const part = { kind, index, text: "" };
    this.#parts.push(part);
    return part;
  }
}
