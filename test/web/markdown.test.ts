import fc from "fast-check";
import { expect, test } from "vitest";
import { load, type MarkdownSpan } from "./modules.js";

const { blocksOf, spansOf } = await load("markdown.js");

const textOf = (spans: MarkdownSpan[]): string => spans.map((span) => span.text ?? textOf(span.spans ?? [])).join("");

test("a tag is text, in prose and in code", () => {
  const evil = '<img src=x onerror="alert(1)"> <script>alert(1)</script>';
  expect(blocksOf(evil)).toEqual([{ kind: "paragraph", source: evil }]);
  expect(spansOf(evil)).toEqual([{ kind: "text", text: evil }]);
});

test.each(["javascript:alert(1)", "data:text/html,x", "//elsewhere.example", "file:///etc/passwd", " https://a b"])(
  "no link leads to %s",
  (href) => {
    expect(JSON.stringify(spansOf(`[click](${href})`))).not.toContain('"kind":"link"');
  },
);

test("an image is no image: nothing is loaded from elsewhere", () => {
  const spans = spansOf("![pixel](https://track.example/p.png)");
  expect(spans.map(({ kind }) => kind)).toEqual(["text", "link"]);
});

test("a code block is code from its first fence on, also before it is closed", () => {
  expect(blocksOf("Look:\n```ts\nconst a = 1;\n# no heading")).toEqual([
    { kind: "paragraph", source: "Look:" },
    { kind: "code", language: "ts", source: "const a = 1;\n# no heading" },
  ]);
});

test("a longer fence holds a shorter one", () => {
  expect(blocksOf("````\n```\n````\nafter")).toMatchObject([{ kind: "code", source: "```" }, { kind: "paragraph" }]);
});

test("blocks are told apart", () => {
  const text = "# Title\n\n- one\n- two\n  more\n\n1. first\n\n> quoted\n\n---\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";
  expect(blocksOf(text)).toMatchObject([
    { kind: "heading", level: 1, source: "Title" },
    { kind: "list", ordered: false, items: ["one", "two\nmore"] },
    { kind: "list", ordered: true, items: ["first"] },
    { kind: "quote", source: "quoted" },
    { kind: "rule" },
    {
      kind: "table",
      rows: [
        ["a", "b"],
        ["1", "2"],
      ],
    },
  ]);
});

test("arithmetic and globs are not emphasis", () => {
  for (const text of ["2 * 3 * 4", "ls *.ts src/*.js", "a*b*c", "snake_case_name"]) {
    expect(spansOf(text)).toEqual([{ kind: "text", text }]);
  }
});

const markdown = fc.array(
  fc.constantFrom("a", " ", "\n", "`", "*", "**", "[x](", "https://a.b", ")", "- ", "#", ">", "|", "~~~"),
);

test("every text ends in finitely many blocks, and every word of a paragraph is kept", () => {
  fc.assert(
    fc.property(markdown, (pieces) => {
      const text = pieces.join("");
      for (const block of blocksOf(text)) expect(block.source.length).toBeLessThanOrEqual(text.length);
      const letters = (of: string) => of.replace(/[^a]/g, "");
      if (!text.includes("https")) expect(letters(textOf(spansOf(text)))).toBe(letters(text));
    }),
  );
});
