// How deep JSON text nests. `JSON.parse` takes any depth and `JSON.stringify` does not: what was read without a bound
// overflows the stack when it is written, in a request body or in a Trace, long after it was let in.

/** The deepest arguments of a tool call that are taken as an object. */
export const MAX_ARGUMENT_DEPTH = 500;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** True when lists and objects nest deeper than `limit` in the text. For text that is no JSON it is a guess. */
export function nestsDeeper(json: string, limit: number): boolean {
  // Each level takes a character to open: nearly all text is too short to be looked at.
  if (json.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < json.length; at++) {
    const char = json.charCodeAt(at);
    if (char === QUOTE) at = endOfString(json, at);
    // `[` and `{`, `]` and `}` differ in one bit.
    else if ((char | 0x20) === 0x7b) depth += 1;
    else if ((char | 0x20) === 0x7d) depth -= 1;
    if (depth > limit) return true;
  }
  return false;
}

/** Where the string that begins at `at` ends. */
function endOfString(json: string, at: number): number {
  for (let next = at + 1; next < json.length; next++) {
    const char = json.charCodeAt(next);
    if (char === QUOTE) return next;
    if (char === BACKSLASH) next += 1;
  }
  return json.length;
}
