import fc from "fast-check";
import { expect, test } from "vitest";
import { nestsDeeper } from "../../src/protocol/json-depth.js";

function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

test("any JSON nests deeper than every limit below its depth, and than no other", () => {
  const word = fc.oneof(fc.string(), fc.constantFrom('"', "\\", '\\"[', "]}", "{"));
  const { node } = fc.letrec((tie) => ({
    node: fc.oneof({ maxDepth: 5 }, word, tie("list"), tie("object")),
    list: fc.array(tie("node"), { maxLength: 3 }),
    object: fc.dictionary(word, tie("node"), { maxKeys: 3 }),
  }));
  fc.assert(
    fc.property(node, fc.nat(7), (value, limit) => {
      // Blanks, so that no text is too short to be looked at.
      expect(nestsDeeper(`        ${JSON.stringify(value)}`, limit)).toBe(depthOf(value) > limit);
    }),
  );
});

test.each(['"', '"\\', "]]]]", '{"a":"'])("text that is no JSON (%j) is a guess, without an exception", (text) => {
  expect(nestsDeeper(text, 0)).toBe(text.startsWith("{"));
});
