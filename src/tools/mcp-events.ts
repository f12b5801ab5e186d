// The events of a stream as bytes: cut apart and measured before the SDK reads them, and left as they are otherwise.
//
// Invariant: what is found here to be an event's data is what a parser of event streams finds. A line that ends with a
// carriage return alone would be read in two ways, so it is told as what no honest server sends.

import { HeldBytes } from "./held-bytes.js";

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf];
const DATA = Buffer.from("data");
const COLON = 0x3a;
const SPACE = 0x20;

/** Whole events, each to its empty line, as chunks of their stream come in. */
export class EventCutter {
  readonly #held = new HeldBytes();
  #isLineEmpty = true;
  #lines = 0;

  /** Bytes of the event that has not ended yet. */
  get held(): number {
    return this.#held.length;
  }

  get lines(): number {
    return this.#lines;
  }

  /** The events that end in the chunk, and how many lines each has. */
  *cut(chunk: Uint8Array): Generator<{ event: Buffer; lines: number }, void, void> {
    let begin = 0;
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#lines += 1;
      const isEmpty = this.#isLineEmpty && isBlank(chunk, from, end);
      this.#isLineEmpty = true;
      from = end + 1;
      if (!isEmpty) continue;
      this.#held.add(chunk.subarray(begin, from));
      const lines = this.#lines;
      this.#lines = 0;
      yield { event: this.#held.take(), lines };
      begin = from;
    }
    this.#isLineEmpty &&= isBlank(chunk, from, chunk.length);
    this.#held.add(chunk.subarray(begin));
  }

  /** What came after the last whole event. */
  rest(): Buffer {
    return this.#held.take();
  }
}

/** True for nothing, and for the carriage return of a line end. */
const isBlank = (chunk: Uint8Array, from: number, to: number): boolean =>
  from === to || (to - from === 1 && chunk[from] === CARRIAGE_RETURN);

/** The data of an event, or "unclear" where parsers of event streams would not agree on what it is. */
export function dataOf(event: Buffer): Buffer | "unclear" {
  const parts: Buffer[] = [];
  let from = BYTE_ORDER_MARK.every((byte, at) => event[at] === byte) ? BYTE_ORDER_MARK.length : 0;
  while (from < event.length) {
    const newline = event.indexOf(NEWLINE, from);
    const end = newline < 0 ? event.length : newline;
    const text = end > from && event[end - 1] === CARRIAGE_RETURN && newline >= 0 ? end - 1 : end;
    const line = event.subarray(from, text);
    if (line.includes(CARRIAGE_RETURN)) return "unclear";
    if (DATA.equals(line.subarray(0, DATA.length)) && (line[DATA.length] ?? COLON) === COLON) {
      const value = line[DATA.length + 1] === SPACE ? DATA.length + 2 : DATA.length + 1;
      parts.push(line.subarray(value), Buffer.of(NEWLINE));
    }
    from = end + 1;
  }
  // One line, as nearly always, is not copied.
  return parts.length === 2 ? (parts[0] as Buffer) : Buffer.concat(parts.slice(0, -1));
}
