import fc from "fast-check";
import { expect, test } from "vitest";
import { NO_TOKENS, tokensOf } from "../../src/web/markdown-tokens.js";

const piece = fc.constantFrom(
  ...["a", " ", "\n", "\n\n", "\r\n", "`", "```\n", "~~~\n", "*", "**", "[x](", "[x]", "https://a.b", ")", "- ", "1. "],
  ...["# ", "> ", "|", "|---|\n", "===\n", "---\n", "    ", "\t", "  b\n", "<div>\n", "</div>\n", "<!--", "-->", "\\"],
);
const kinds = ({ list }: ReturnType<typeof tokensOf>) => list.map(({ type, raw }) => [type, raw]);

test("a text that grew in pieces has the blocks of the text as a whole", () => {
  fc.assert(
    fc.property(fc.array(fc.array(piece, { minLength: 1, maxLength: 6 }), { maxLength: 14 }), (pieces) => {
      let tokens = NO_TOKENS;
      let text = "";
      for (const next of pieces) {
        text += next.join("");
        tokens = tokensOf(text, tokens);
        expect(kinds(tokens)).toEqual(kinds(tokensOf(text)));
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a definition at the end is known to the link at the beginning", () => {
  const first = tokensOf("[x] here.\n\nMore.\n\n");
  expect(first.definitions).toBe("");
  const whole = tokensOf("[x] here.\n\nMore.\n\n[x]: https://a.example\n", first);
  expect(whole.definitions).toContain("https://a.example");
  expect(JSON.stringify(whole.list[0])).toContain('"type":"link"');
});

test("what stands is not read again: its tokens stay the same objects", () => {
  const half = tokensOf(Array.from({ length: 50 }, (_, index) => `Paragraph ${index}.\n\n`).join(""));
  const more = tokensOf(`${half.text}And one more.`, half);
  expect(more.list.slice(0, 90).every((token, index) => token === half.list[index])).toBe(true);
});
