// Markdown in pieces that grow: what stands is not read again for each word that comes after it.
//
// Only what comes last can still become something else (a paragraph a table or a heading, a list a longer one), so
// reading goes on a few tokens before the end. Definitions are the exception, since one may make a link of anything:
// with them all is read anew.

import { Lexer, type Token } from "marked";

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

/** The tokens of a text, with what is known of its beginning. */
export function tokensOf(text: string, before: Tokens = NO_TOKENS): Tokens {
  const plain = text.replace(/\r\n?/g, "\n");
  if (plain === before.text) return before;
  if (before.definitions !== "" || !plain.startsWith(before.text)) return read(plain);
  const stable = before.list.slice(0, -OPEN_TOKENS);
  const length = stable.reduce((sum, { raw }) => sum + raw.length, 0);
  const rest = read(plain.slice(length));
  if (rest.definitions !== "") return read(plain);
  return { text: plain, list: [...stable, ...rest.list], definitions: "" };
}

function read(text: string): Tokens {
  const list = new Lexer({ gfm: true }).lex(text);
  const definitions = Object.keys(list.links).length === 0 ? "" : JSON.stringify(list.links);
  return { text, list, definitions };
}
