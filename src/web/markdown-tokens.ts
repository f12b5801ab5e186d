// Markdown in pieces that grow: what stands is not read again for each word that comes after it.
//
// Only what comes last can still become something else (a paragraph a table or a heading, a list a longer one), so
// reading goes on a few tokens before the end. Definitions are the exception, since one may make a link of anything:
// with them all is read anew.
//
// Reading never throws, and what it costs is bounded whatever the text is: see markdown-lexer.ts. What is beyond its
// bounds is one token of the type `plain`, to be shown as it is written.

import type { Token } from "marked";
import { BoundedLexer } from "./markdown-lexer.js";
import { plainText } from "./terminal-text.js";

export interface Tokens {
  /** Line ends are line feeds. */
  readonly text: string;
  readonly list: readonly Token[];
  /** The definitions of links, as text; empty where there are none. */
  readonly definitions: string;
}

export const NO_TOKENS: Tokens = { text: "", list: [], definitions: "" };

/** More than can belong to one block: the block, the room behind it, and one to be sure. */
const OPEN_TOKENS = 4;

/** A longer text is plain, in characters: above it the page would stand still while it is read and laid out. */
export const MOST_CHARACTERS = 200_000;
/** A text with more blocks, and the room between them, is plain. */
export const MOST_TOKENS = 8_000;

/** The tokens of a text, with what is known of its beginning. */
export function tokensOf(text: string, before: Tokens = NO_TOKENS): Tokens {
  const plain = withoutControls(text).replace(/\r\n?/g, "\n");
  if (plain === before.text) return before;
  if (plain.length > MOST_CHARACTERS) return asWritten(plain);
  // It was too much already; trying again with each word would cost as much again.
  if (isPlain(before) && plain.startsWith(before.text)) return asWritten(plain);
  if (before.definitions !== "" || !plain.startsWith(before.text)) return read(plain);
  const stable = before.list.slice(0, -OPEN_TOKENS);
  const length = stable.reduce((sum, { raw }) => sum + raw.length, 0);
  const rest = read(plain.slice(length));
  if (rest.definitions !== "") return read(plain);
  // As if it had been read as a whole.
  if (isPlain(rest)) return asWritten(plain);
  const list = [...stable, ...rest.list];
  return list.length > MOST_TOKENS ? asWritten(plain) : { text: plain, list, definitions: "" };
}

/** What quotes a terminal does not show the codes of its colours. */
const withoutControls = (text: string): string =>
  text.includes("\u001b") && text.length <= MOST_CHARACTERS ? plainText(text) : text;

function read(text: string): Tokens {
  try {
    const list = new BoundedLexer().lex(text);
    if (list.length > MOST_TOKENS) return asWritten(text);
    const definitions = Object.keys(list.links).length === 0 ? "" : JSON.stringify(list.links);
    return { text, list, definitions };
  } catch {
    // It has too many pieces, or the library cannot read it (its expressions have a stack of their own). It is still
    // the answer.
    return asWritten(text);
  }
}

/** Nothing in it was read: it is to be shown as it is written. */
export const isPlain = ({ list }: Tokens): boolean => list[0]?.type === "plain";

const asWritten = (text: string): Tokens => ({ text, list: [{ type: "plain", raw: text }], definitions: "" });
