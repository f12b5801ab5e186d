// What a command writes, as a terminal would show it: SGR colours as pieces of text with a look, a lone carriage return
// begins its line anew, every other control sequence is left out. (ECMA-48, and xterm's 256 and direct colours.)
//
// The output is read on from where it was, also within a sequence that was cut, and time is linear in what came. Text is
// text: nothing in it becomes an element, and past `MOST_PIECES` it has no look of its own.

import { applySgr, type Look, lookName, PLAIN } from "./terminal-look.js";

export interface Piece {
  readonly text: string;
  /** Class names; empty where it looks as all the rest. */
  readonly look: string;
}

/** An output as far as it was read. */
export interface Screen {
  readonly source: string;
  readonly pieces: readonly Piece[];
  readonly state: State;
}

interface State {
  /** How much of the source was taken; behind it stands a sequence that has no end yet. */
  readonly taken: number;
  readonly finished: readonly Piece[];
  /** The line that is being written. */
  readonly line: readonly Piece[];
  readonly look: Look;
  /** A carriage return came: what is written next stands in the place of the line. */
  readonly isReturned: boolean;
}

export const MOST_PIECES = 4_000;
/** A sequence that is longer is none. */
const MOST_PARAMETERS = 256;
const MOST_STRING = 4_096;

export const BLANK: Screen = {
  source: "",
  pieces: [],
  state: { taken: 0, finished: [], line: [], look: PLAIN, isReturned: false },
};

/** The screen of an output, with what is known of its beginning. Pieces that stay as they are are the same objects. */
export function screenOf(source: string, before: Screen = BLANK): Screen {
  if (source === before.source) return before;
  const { state } = source.startsWith(before.source) ? before : BLANK;
  const writer = new Writer(state);
  const taken = read(source, state.taken, writer);
  const { finished, line, look, isReturned } = writer;
  return { source, pieces: [...finished, ...line], state: { taken, finished, line, look, isReturned } };
}

/** The text alone. */
export const plainText = (output: string): string =>
  screenOf(output)
    .pieces.map(({ text }) => text)
    .join("");

/** @returns where it stopped: before a sequence that may go on */
function read(source: string, from: number, writer: Writer): number {
  let start = from;
  let at = from;
  while (at < source.length) {
    const code = source.charCodeAt(at);
    if (!isControl(code)) {
      at += 1;
      continue;
    }
    writer.write(source.slice(start, at));
    if (code === CR) writer.isReturned = true;
    const end = code === ESC || code > DELETE ? takeSequence(source, at, writer) : at + 1;
    if (end === undefined) return at;
    start = end;
    at = end;
  }
  writer.write(source.slice(start));
  return source.length;
}

const TAB = 0x09;
const LF = 0x0a;
const CR = 0x0d;
const ESC = 0x1b;
const DELETE = 0x7f;

const isControl = (code: number): boolean =>
  (code < 0x20 && code !== TAB && code !== LF) || (code >= DELETE && code < 0xa0);

/** Applies the sequence that begins here. @returns its end, or undefined where it may go on behind what there is */
function takeSequence(source: string, at: number, writer: Writer): number | undefined {
  const isLong = source.charCodeAt(at) === ESC;
  const body = isLong ? at + 2 : at + 1;
  if (isLong && at + 1 >= source.length) return undefined;
  // One character of C1 is ESC and one of `@` to `_`.
  const kind = isLong ? source.charAt(at + 1) : String.fromCharCode(source.charCodeAt(at) - 0x40);
  if (kind === "[") return takeControl(source, body, writer);
  if ("]PX^_".includes(kind)) return endOfString(source, body);
  if (!isLong) return body;
  const last = pastAll(source, at + 1, 0x20, 0x2f);
  if (last === source.length && last - at < MOST_PARAMETERS) return undefined;
  return isBetween(source.charCodeAt(last), 0x30, 0x7e) ? last + 1 : at + 1;
}

/** `ESC [`, parameters, intermediates, a final letter. */
function takeControl(source: string, body: number, writer: Writer): number | undefined {
  const between = pastAll(source, body, 0x30, 0x3f);
  const last = pastAll(source, between, 0x20, 0x2f);
  if (last === source.length && last - body < MOST_PARAMETERS) return undefined;
  if (!isBetween(source.charCodeAt(last), 0x40, 0x7e)) return last;
  const parameters = source.slice(body, last);
  // `<` to `?` at the beginning make something else of it.
  if (source.charAt(last) === "m" && /^[\d;:]*$/.test(parameters)) writer.style(parameters);
  return last + 1;
}

/** A title, a link, a picture: it ends with BEL or ESC \, and any other control is the end of it, too. */
function endOfString(source: string, body: number): number | undefined {
  const most = Math.min(source.length, body + MOST_STRING);
  for (let at = body; at < most; at += 1) {
    const code = source.charCodeAt(at);
    if (code >= 0x20 && !isControl(code)) continue;
    if (code === 0x07 || code === 0x9c) return at + 1;
    if (code !== ESC) return at;
    if (at + 1 >= source.length) return undefined;
    return source.charAt(at + 1) === "\\" ? at + 2 : at;
  }
  return most === source.length && most - body < MOST_STRING ? undefined : body;
}

const isBetween = (code: number, low: number, high: number): boolean => code >= low && code <= high;

function pastAll(source: string, from: number, low: number, high: number): number {
  const most = Math.min(source.length, from + MOST_PARAMETERS);
  let at = from;
  while (at < most && isBetween(source.charCodeAt(at), low, high)) at += 1;
  return at;
}

/** Puts text into pieces. The last line is kept apart, so that beginning it anew costs no more than it is long. */
class Writer {
  readonly finished: Piece[];
  line: Piece[];
  look: Look;
  isReturned: boolean;
  /** What was applied to what before, since programs use few colours many times. */
  readonly #looks = new Map<Look, Map<string, Look>>();

  constructor({ finished, line, look, isReturned }: State) {
    this.finished = [...finished];
    this.line = [...line];
    this.look = look;
    this.isReturned = isReturned;
  }

  write(text: string): void {
    if (text === "") return;
    if (this.isReturned && !text.startsWith("\n")) this.line = [];
    this.isReturned = false;
    const end = text.lastIndexOf("\n") + 1;
    if (end > 0) {
      for (const piece of this.line) append(this.finished, piece);
      this.line = [];
      append(this.finished, this.#piece(text.slice(0, end)));
    }
    if (end < text.length) append(this.line, this.#piece(text.slice(end)));
  }

  style(parameters: string): void {
    if (this.#isFull) return;
    const known = this.#looks.get(this.look) ?? new Map<string, Look>();
    this.#looks.set(this.look, known);
    const look = known.get(parameters) ?? applySgr(this.look, parameters);
    known.set(parameters, look);
    this.look = look;
  }

  #piece(text: string): Piece {
    return { text, look: this.#isFull ? "" : lookName(this.look) };
  }

  get #isFull(): boolean {
    return this.finished.length + this.line.length >= MOST_PIECES;
  }
}

function append(pieces: Piece[], piece: Piece): void {
  const last = pieces.at(-1);
  if (last?.look !== piece.look) pieces.push(piece);
  else pieces[pieces.length - 1] = { text: last.text + piece.text, look: last.look };
}
