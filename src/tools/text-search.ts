// Search in a large text without holding the process: linear in the text, whatever is looked for and wherever it stands.

/** Up to this length of a part the engine's own search is linear; beyond it, it is text times part at worst. */
const PLAIN_PART = 250;
/** Text times part that are searched in no time even then. */
const PLAIN_WORK = 20_000_000;

/** @returns a function that gives the first place of `part` at or after another one, or -1. */
export function finder(text: string, part: string): (from: number) => number {
  if (part.length <= PLAIN_PART || text.length * part.length <= PLAIN_WORK) return (from) => text.indexOf(part, from);
  return knuthMorrisPratt(text, part);
}

/** @see https://en.wikipedia.org/wiki/Knuth%E2%80%93Morris%E2%80%93Pratt_algorithm */
function knuthMorrisPratt(text: string, part: string): (from: number) => number {
  const { length } = part;
  const codes = new Uint16Array(length);
  for (let at = 0; at < length; at++) codes[at] = part.charCodeAt(at);
  // For each length that fits: the longest shorter one that fits too, so no character is compared again.
  const shorter = new Uint32Array(length + 1);
  const extend = (fits: number, code: number): number => {
    let next = fits;
    while (next > 0 && codes[next] !== code) next = shorter[next] as number;
    return codes[next] === code ? next + 1 : 0;
  };
  for (let at = 1, fits = 0; at < length; at++) {
    fits = extend(fits, codes[at] as number);
    shorter[at + 1] = fits;
  }
  return (from) => {
    let fits = 0;
    for (let at = from; at < text.length; at++) {
      fits = extend(fits, text.charCodeAt(at));
      if (fits === length) return at - length + 1;
    }
    return -1;
  };
}

/** The numbers of the lines at these places, which ascend. Counted from 1. */
export function lineNumbers(text: string, places: readonly number[]): number[] {
  let line = 1;
  let at = 0;
  return places.map((place) => {
    // Much faster than a search for each line end where lines are short.
    for (; at < place; at++) if (text.charCodeAt(at) === 10) line += 1;
    return line;
  });
}

const MAX_CANDIDATES = 10_000;
const MAX_WORD = 100;
const MAX_LINE = 2_000;

/** The number of the first line that is like the first line of `part` but for its white space, if that is soon found. */
export function similarLine(text: string, part: string): number | undefined {
  const begin = part.search(/\S/);
  if (begin < 0) return undefined;
  const end = part.indexOf("\n", begin);
  const firstLine = part.slice(begin, end < 0 ? undefined : end);
  if (firstLine.length > MAX_LINE) return undefined;
  const wanted = squeezed(firstLine);
  const word = wanted.split(" ").reduce((longest, one) => (one.length > longest.length ? one : longest));
  const find = finder(text, word.slice(0, MAX_WORD));
  let place = find(0);
  for (let seen = 0; place >= 0 && seen < MAX_CANDIDATES; seen++) {
    const first = text.lastIndexOf("\n", place) + 1;
    const next = text.indexOf("\n", place);
    const last = next < 0 ? text.length : next;
    if (last - first <= 2 * MAX_LINE && squeezed(text.slice(first, last)) === wanted) {
      return lineNumbers(text, [first])[0];
    }
    place = find(last);
  }
  return undefined;
}

const squeezed = (line: string): string => line.replace(/\s+/g, " ").trim();
