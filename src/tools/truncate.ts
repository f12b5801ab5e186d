// The limit on a tool's output. Stream, Trace and model get the same text: the first half of the limit goes out as it
// comes; from then on only the end is kept, and `finish` gives it, after a line that says how much was left out.
//
// Invariants: what goes out is never longer than the limit; it holds no half of a surrogate pair, wherever the producer
// or the limit cuts; memory is a small multiple of the limit, and time is linear in what comes in.
// A character is a UTF-16 code unit here, as in `string.length`.

const LONE_SURROGATE = /\p{Surrogate}/gu;

/** A limit below this leaves no room for the line that says what was left out. */
export const MIN_OUTPUT_CHARS = 200;

/** Caps one output. `push` and `finish` return what goes out. */
export class OutputCap {
  readonly #limit: number;
  readonly #headLimit: number;
  #headLength = 0;
  /** The last character that went out as it came. */
  #headEnd = "\n";
  #lastChar = "";
  /** A high surrogate whose other half has not come yet. */
  #half = "";
  #holding = false;
  #tail = "";
  #heldLength = 0;
  #bytes = 0;

  constructor(limit: number) {
    if (!Number.isInteger(limit) || limit < MIN_OUTPUT_CHARS) {
      throw new Error(`an output limit of ${limit} characters, least ${MIN_OUTPUT_CHARS}`);
    }
    this.#limit = limit;
    this.#headLimit = Math.floor(limit / 2);
  }

  /** True once text is being kept back. */
  get holding(): boolean {
    return this.#holding;
  }

  /** Bytes of UTF-8 that came in so far. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The last character that came in, empty when none did. */
  get lastChar(): string {
    return this.#lastChar;
  }

  /** The end of what came in since text is kept back, at most `length` characters. */
  latest(length: number): string {
    return lastOf(this.#tail, length);
  }

  push(text: string): string {
    let whole = this.#half + text;
    this.#half = "";
    if (isHigh(whole.charCodeAt(whole.length - 1))) {
      this.#half = whole.slice(-1);
      whole = whole.slice(0, -1);
    }
    return this.#take(whole.replace(LONE_SURROGATE, "\uFFFD"));
  }

  /**
   * Ends the output.
   * @param reserve characters of the limit that are left for text the caller adds after it.
   */
  finish(reserve = 0): string {
    const now = this.#half === "" ? "" : this.#take("\uFFFD");
    this.#half = "";
    const room = this.#limit - this.#headLength - reserve;
    if (this.#heldLength <= room) return now + this.#tail;
    // The longest line this count can need, so that the real one fits whatever it leaves out.
    const keep = Math.max(0, room - this.#leftOut(this.#heldLength).length);
    const end = lastOf(this.#tail, keep);
    return now + this.#leftOut(this.#heldLength - end.length) + end;
  }

  #take(text: string): string {
    if (text === "") return "";
    this.#bytes += Buffer.byteLength(text);
    this.#lastChar = text.slice(-1);
    if (this.#holding) {
      this.#hold(text);
      return "";
    }
    const room = this.#headLimit - this.#headLength;
    const head = text.length <= room ? text : text.slice(0, isHigh(text.charCodeAt(room - 1)) ? room - 1 : room);
    this.#headLength += head.length;
    this.#headEnd = head === "" ? this.#headEnd : head.slice(-1);
    if (head.length < text.length) {
      this.#holding = true;
      this.#hold(text.slice(head.length));
    }
    return head;
  }

  #hold(text: string): void {
    this.#heldLength += text.length;
    this.#tail += text;
    // Trimmed only when it has doubled, so that a producer of single characters costs linear time.
    if (this.#tail.length > 2 * this.#limit) this.#tail = this.#tail.slice(-this.#limit);
  }

  #leftOut(count: number): string {
    return `${this.#headEnd === "\n" ? "" : "\n"}[... ${count} characters left out ...]\n`;
  }
}

/** True for the first half of a surrogate pair. */
export const isHigh = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;
const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** The last `length` characters of a well-formed text, one less where that would begin with half a character. */
function lastOf(text: string, length: number): string {
  if (length <= 0) return "";
  const start = Math.max(0, text.length - length);
  return text.slice(isLow(text.charCodeAt(start)) ? start + 1 : start);
}
