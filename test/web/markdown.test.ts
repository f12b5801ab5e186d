import fc from "fast-check";
import { Marked } from "marked";
import { expect, test } from "vitest";
import { chunksOf } from "../../src/web/markdown-plain.js";
import { isPlain, MOST_CHARACTERS, NO_TOKENS, tokensOf } from "../../src/web/markdown-tokens.js";

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

const wordsOf = (text: string): string => {
  const { list } = tokensOf(text);
  return new Marked().parser([...list]).replace(/<[^>]*>/g, "");
};

test.each<[string, string]>([
  ["quotes in quotes", `${">".repeat(2_500)}a`],
  ["nothing but quotes", ">".repeat(MOST_CHARACTERS)],
  ["lists in lists", `${"- ".repeat(5_000)}a`],
  ["lists in quotes", `${"> - ".repeat(5_000)}a`],
  ["stars around stars", `${"*".repeat(8_000)}a${"*".repeat(8_000)}`],
  ["emphasis that never ends", `${"*a_".repeat(10_000)}a`],
  ["brackets that never end", `${"[a](".repeat(10_000)}a`],
  ["one long word before an at sign", `${"a".repeat(50_000)}@`],
  ["many of them", `${"a".repeat(9_000)}@\n\n`.repeat(20)],
])("no nesting and no mark is more than the page can read: %s", (_, text) => {
  expect(wordsOf(text)).toContain(text.includes("a") ? "a" : "&gt;");
});

test("what comes after a piece that is too much is read as ever", () => {
  const { list } = tokensOf(`${"*a_".repeat(10_000)}\n\n**bold** and \`code\``);
  expect(list.map(({ type }) => type)).toEqual(["paragraph", "space", "paragraph"]);
  expect(list[0]).toMatchObject({ tokens: [{ type: "text", raw: "*a_".repeat(10_000) }] });
  expect(list[2]).toMatchObject({ tokens: [{ type: "strong" }, { type: "text" }, { type: "codespan" }] });
});

test("a picture that is all there is one, however long", () => {
  const { list } = tokensOf(`See ![it](data:image/png;base64,${"iVBO+/".repeat(20_000)}==)`);
  expect(list[0]).toMatchObject({ tokens: [{ type: "text" }, { type: "image" }] });
});

test.each<[string, string]>([
  ["too long", "word ".repeat(MOST_CHARACTERS / 4)],
  ["too long, with many paragraphs", "word\n\n".repeat(MOST_CHARACTERS / 4)],
  ["of too many blocks", "a\n\n".repeat(MOST_CHARACTERS / 4)],
  ["a list of too many items", "- a\n".repeat(MOST_CHARACTERS / 5)],
  ["a table of too many cells", `|a|b|\n|-|-|\n${"|a|b|\n".repeat(MOST_CHARACTERS / 10)}`],
])("a text that is %s is shown as it is written, whether it came in pieces or not", (_, text) => {
  expect(isPlain(tokensOf(text))).toBe(true);
  const half = tokensOf(text.slice(0, 1_000));
  expect(isPlain(half)).toBe(false);
  const whole = tokensOf(text, half);
  expect(whole).toEqual(tokensOf(text));
  expect(tokensOf(`${text}more`, whole).text).toBe(`${text}more`);
});

test("the pieces of a text are the text, small ones, and half a text has the same ones up to its end", () => {
  const part = fc.constantFrom("x".repeat(7_000), "\n", " ", "\u{1f600}".repeat(6_001), "word ".repeat(900), "\n\n");
  fc.assert(
    fc.property(fc.array(part, { maxLength: 30 }), fc.nat(), (parts, seed) => {
      const text = parts.join("");
      const chunks = chunksOf(text);
      expect(chunks.join("").replaceAll("\n", "")).toBe(text.replaceAll("\n", ""));
      expect(chunks.every((chunk) => chunk.length <= 20_000 && !/^[\udc00-\udfff]|[\ud800-\udbff]$/.test(chunk))).toBe(
        true,
      );
      const half = chunksOf(text.slice(0, seed % (text.length + 1)));
      expect(chunks.slice(0, half.length - 1)).toEqual(half.slice(0, -1));
    }),
    { numRuns: 300 },
  );
});
