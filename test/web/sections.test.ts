import fc from "fast-check";
import { expect, test } from "vitest";
import { sectionsOf } from "../../src/web/markdown-sections.js";

test("a long text is cut at empty lines, and never within a piece of code", () => {
  const code = `\`\`\`ts\n${"const a = 1;\n\n".repeat(4_000)}\`\`\`\n`;
  const prose = `${"word ".repeat(500)}\n\n`.repeat(20);
  const sections = sectionsOf(`${prose}${code}\n${prose}`);
  expect(sections.length).toBeGreaterThan(3);
  for (const section of sections.slice(0, -1)) expect(section).toMatch(/\n\n$/);
  expect(sections.filter((section) => section.includes(code))).toHaveLength(1);
});

test("sections are of a bounded size where lines are, and together they are the text", () => {
  const piece = fc.constantFrom("\n", "\n\n", "```\n", "~~~~\n", "```", "x".repeat(30_000), "word\n", "\r\n");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 60 }), (pieces) => {
      const text = pieces.join("");
      const sections = sectionsOf(text);
      expect(sections.join("")).toBe(text);
      const longest = Math.max(0, ...text.split("\n").map(({ length }) => length));
      for (const section of sections) expect(section.length).toBeLessThanOrEqual(150_001 + longest);
    }),
  );
});
