// Which part of a long list is in the page, from the heights that are known. Pure numbers: no element is touched here.

/** Shorter lists are in the page as a whole, so that the browser finds and copies all of it. */
export const WHOLE_UP_TO = 120;
/** What is kept ready above and below what is seen, in pixels. */
const OVERSCAN = 900;

export interface Range {
  start: number;
  /** The first that is not in it. */
  end: number;
}

/** `offsets[i]` is where item `i` begins; the last one is the height of all. */
export function offsetsOf(heights: readonly number[]): Float64Array {
  const offsets = new Float64Array(heights.length + 1);
  for (let index = 0; index < heights.length; index += 1) {
    offsets[index + 1] = (offsets[index] ?? 0) + (heights[index] ?? 0);
  }
  return offsets;
}

/** The item at a place; the nearest where there is none. */
export function indexAt(offsets: Float64Array, place: number): number {
  let low = 0;
  let high = Math.max(0, offsets.length - 2);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((offsets[middle] ?? 0) <= place) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** What has to be in the page when `[top, top + height)` of the list is seen. */
export function rangeAt(offsets: Float64Array, top: number, height: number): Range {
  const count = offsets.length - 1;
  if (count <= WHOLE_UP_TO) return { start: 0, end: count };
  return {
    start: indexAt(offsets, top - OVERSCAN),
    end: Math.min(count, indexAt(offsets, top + height + OVERSCAN) + 1),
  };
}
