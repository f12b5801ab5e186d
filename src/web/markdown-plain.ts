// A text as it is written, in pieces: while it grows only the last one changes, and the browser lays out those that are
// seen. A cut is made at a line's end where there is one, and never within a character.

const CHUNK_CHARACTERS = 20_000;

/** The pieces of a text. Put below each other they are the text; the line end between two of them is left out. */
export function chunksOf(text: string): string[] {
  const chunks: string[] = [];
  let start = 0;
  while (text.length - start > CHUNK_CHARACTERS) {
    const [end, next] = cutIn(text, start, start + CHUNK_CHARACTERS);
    chunks.push(text.slice(start, end));
    start = next;
  }
  chunks.push(text.slice(start));
  return chunks;
}

/** Where a piece ends, and where the next one begins. */
function cutIn(text: string, start: number, limit: number): [number, number] {
  const line = text.lastIndexOf("\n", limit);
  if (line > start) return [line, line + 1];
  const space = text.lastIndexOf(" ", limit - 1);
  if (space > start) return [space + 1, space + 1];
  const isWithin = /[\ud800-\udbff]/.test(text.charAt(limit - 1));
  const end = isWithin ? limit - 1 : limit;
  return [end, end];
}
