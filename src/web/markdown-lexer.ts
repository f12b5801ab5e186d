// The library's lexer, held to bounds: it recurses once for each level of nesting, and its time for the marks in a piece
// of text grows with their square. Two kilobytes of `>` overflow its stack, thirty of `*a_` take it seconds.
//
// What is nested too deep, and a piece with too many marks or characters, stays as it is written. A model's own text has
// neither; what it quotes may.

import { Lexer, type Token, type TokensList } from "marked";

/** Levels of blocks in blocks, and of marks in marks; more would leave a phone no room for the words. */
const MOST_LEVELS = 12;
/** Characters of one piece of text: a paragraph, an item, a cell. */
const MOST_INLINE_CHARACTERS = 10_000;
/** Characters of one piece that could begin or end something. */
const MOST_MARKS = 500;
/** Pieces of one reading. Each is an element of the page, and a list or a table is laid out as a whole. */
const MOST_PIECES = 16_000;

/** @throws RangeError where there are too many pieces */
export class BoundedLexer extends Lexer {
  #levels = 0;
  #pieces = 0;

  constructor() {
    super({ gfm: true });
  }

  override blockTokens(src: string, tokens?: Token[], isClipped?: boolean): Token[];
  override blockTokens(src: string, tokens?: TokensList, isClipped?: boolean): TokensList;
  override blockTokens(src: string, tokens: Token[] = [], isClipped?: boolean): Token[] {
    return this.#within(
      () => super.blockTokens(src, tokens, isClipped),
      () => append(tokens, paragraphOf(src)),
    );
  }

  override inline(src: string, tokens: Token[] = []): Token[] {
    this.#pieces += 1;
    if (this.#pieces > MOST_PIECES) throw new RangeError(`more than ${MOST_PIECES} pieces of text`);
    return super.inline(src, tokens);
  }

  override inlineTokens(src: string, tokens: Token[] = []): Token[] {
    if (isTooMuch(src)) return append(tokens, textOf(src));
    return this.#within(
      () => super.inlineTokens(src, tokens),
      () => append(tokens, textOf(src)),
    );
  }

  #within(read: () => Token[], instead: () => Token[]): Token[] {
    if (this.#levels >= MOST_LEVELS) return instead();
    this.#levels += 1;
    try {
      return read();
    } finally {
      this.#levels -= 1;
    }
  }
}

const textOf = (text: string): Token => ({ type: "text", raw: text, text, escaped: false });
const paragraphOf = (text: string): Token => ({ type: "paragraph", raw: text, text, tokens: [textOf(text)] });

function append(tokens: Token[], token: Token): Token[] {
  tokens.push(token);
  return tokens;
}

function isTooMuch(text: string): boolean {
  // Each place in a long run of letters is tried as the beginning of a mail address.
  if (text.includes("@") && /[\w.+-]{500}/.test(text)) return true;
  // A picture that is all there is one long word, which costs no more than its length.
  const length = text.includes("@") ? text.length : text.replace(DATA, "").length;
  return length > MOST_INLINE_CHARACTERS || marksIn(text) > MOST_MARKS;
}

const DATA = /\(data:image\/\w+;base64,[\w+/=]+/g;

function marksIn(text: string): number {
  let count = 0;
  for (const character of text) if ("*_~`[]()<>!\\&".includes(character)) count += 1;
  return count;
}
