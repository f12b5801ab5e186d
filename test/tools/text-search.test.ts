import fc from "fast-check";
import { expect, test } from "vitest";
import { finder, lineNumbers, similarLine } from "../../src/tools/text-search.js";

test("a long part is found where the engine finds it, whatever the two repeat", () => {
  const periodic = fc.tuple(fc.stringMatching(/^[ab]{1,4}$/), fc.integer({ min: 300, max: 600 }));
  fc.assert(
    fc.property(periodic, fc.nat(), fc.nat(), fc.option(fc.nat()), ([period, length], cut, from, flaw) => {
      const text = `${period.repeat(40_000)}c${period.repeat(500)}`;
      const begin = cut % (text.length - length);
      const whole = text.slice(begin, begin + length);
      const at = (flaw ?? 0) % length;
      const part = flaw === null ? whole : `${whole.slice(0, at)}c${whole.slice(at + 1)}`;
      const start = from % text.length;
      expect(finder(text, part)(start)).toBe(text.indexOf(part, start));
    }),
    { numRuns: 40 },
  );
});

test("the lines of places are counted from 1", () => {
  expect(lineNumbers("a\n\nb\nb", [0, 1, 2, 3, 5])).toEqual([1, 1, 2, 3, 4]);
});

test("a line that differs in white space alone is found, and no other", () => {
  const text = "one\n\tif (a)  {\nif (a) { // b\nif (a) {\n";
  expect(similarLine(text, "\n  if (a) {\n    b")).toBe(2);
  expect(similarLine(text, "if (a) { // b")).toBe(3);
  expect(similarLine(text, "if (b) {")).toBeUndefined();
  expect(similarLine(text, " \n ")).toBeUndefined();
});

const LARGE = 16_000_000;
const msOf = (work: () => void): number => {
  const began = performance.now();
  work();
  return performance.now() - began;
};

test("a part of one letter with a flaw in its middle is looked for in linear time in a text of that letter", () => {
  const half = "a".repeat(50_000);
  const find = finder("a".repeat(LARGE), `${half}b${half}`);
  // The engine's own search takes minutes.
  expect(msOf(() => expect(find(0)).toBe(-1))).toBeLessThan(10_000);
});

test.each([
  ["lines without end", "\n"],
  ["lines that are nearly what is looked for", "zz z\n"],
  ["one endless line", "zz "],
])("in %s a similar line is looked for in a fraction of the time it takes to cut them up", (_what, unit) => {
  const text = Buffer.alloc(LARGE / 8, unit).toString();
  const cutUp = msOf(() => text.split("\n").map((line) => line.replace(/\s+/g, " ").trim()));
  const tries = [1, 2, 3].map(() => msOf(() => expect(similarLine(text, "zz y")).toBeUndefined()));
  expect(Math.min(...tries)).toBeLessThan(cutUp / 4);
});
