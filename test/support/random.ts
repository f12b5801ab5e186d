// Numbers that look random and are the same for the same seed.

/** @returns a function that gives whole numbers from 0 up to, not including, `below` */
export function randomOf(seed: number): (below: number) => number {
  let state = seed | 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}
