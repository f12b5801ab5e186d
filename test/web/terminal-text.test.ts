import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { BLANK, MOST_PIECES, plainText, type Screen, screenOf } from "../../src/web/terminal-text.js";

const shown = (output: string) => screenOf(output).pieces.map(({ text, look }) => (look === "" ? text : [text, look]));

test.each<[string, unknown[]]>([
  ["plain\ttext\n", ["plain\ttext\n"]],
  ["\u001b[31mred\u001b[0m plain", [["red", "sgr-ink-1"], " plain"]],
  [
    "\u001b[1;92;44ma\u001b[22mb\u001b[39;49mc",
    [["a", "sgr-bold sgr-ground-4 sgr-ink-10"], ["b", "sgr-ground-4 sgr-ink-10"], "c"],
  ],
  ["\u001b[3;4;9ma\u001b[23;24;29mb", [["a", "sgr-italic sgr-struck sgr-underline"], "b"]],
  [
    "\u001b[7ma\u001b[31mb\u001b[42mc\u001b[27md\u001b[md",
    [
      ["a", "sgr-inverse"],
      ["b", "sgr-ground-1"],
      ["c", "sgr-ground-1 sgr-ink-2"],
      ["d", "sgr-ground-2 sgr-ink-1"],
      "d",
    ],
  ],
  [
    "\u001b[38;5;9ma\u001b[38;5;196mb\u001b[48;5;236mc",
    [
      ["ab", "sgr-ink-9"],
      ["c", "sgr-ground-0 sgr-ink-9"],
    ],
  ],
  [
    "\u001b[38;2;10;120;10;1ma\u001b[38:2::250:250:250mb",
    [
      ["a", "sgr-bold sgr-ink-2"],
      ["b", "sgr-bold sgr-ink-15"],
    ],
  ],
  ["\u001b[4:3ma\u001b[4:0mb\u001b[58;5;1mc", [["a", "sgr-underline"], "bc"]],
  ["\u001b[999;38;5;999ma\u001b[>4;1mb\u001b[1 mc", ["abc"]],
  ["\u001b[8mnot hidden", ["not hidden"]],
  ["\u009b32mgreen", [["green", "sgr-ink-2"]]],
])("the colours of %j are seen", (output, pieces) => {
  expect(shown(output)).toEqual(pieces);
});

test.each([
  ["a\u001b[2K\u001b[1A\u001b[?25lb\u001b[10;20Hc", "abc"],
  ["\u001b]0;a title\u0007a\u001b]8;;https://x.example\u001b\\link\u001b]8;;\u001b\\b", "alinkb"],
  ["\u001bPq#0;2;0\u001b\\a\u001b(Bb\u001b7c\u001bcd", "abcd"],
  ["a\u0000\u0007\u0008b\u007f\u0085c\u000b", "abc"],
  ["\u001b]0;no end\nthe next line", "\nthe next line"],
  [`\u001b]${"x".repeat(10_000)}`, "x".repeat(10_000)],
  ["a\u001b[31\nb\u001b", "a\nb"],
  ["one\r\ntwo\r\n", "one\ntwo\n"],
  ["10%\r20%\r\u001b[K100%\ndone\r", "100%\ndone"],
  ["kept\nlost\r\r\nlost, too\rseen", "kept\nlost\nseen"],
])("what a terminal would not show of %j is left out", (output, text) => {
  expect(plainText(output)).toBe(text);
});

const bits = fc.constantFrom(
  "\u001b",
  "[",
  "3",
  "1",
  ";",
  "m",
  "\r",
  "\n",
  "]",
  "0",
  "\u0007",
  "\\",
  "word",
  "\u009b",
  "(",
  "é",
);

test("an output that comes in pieces, cut anywhere, looks as when it comes at once", () => {
  fc.assert(
    fc.property(fc.array(bits, { maxLength: 60 }), fc.array(fc.nat(3), { maxLength: 40 }), (parts, steps) => {
      const output = parts.join("");
      let screen: Screen = BLANK;
      let length = 0;
      for (const step of steps) {
        length = Math.min(output.length, length + step);
        screen = screenOf(output.slice(0, length), screen);
      }
      expect(screenOf(output, screen).pieces).toEqual(screenOf(output).pieces);
    }),
  );
});

test("no control of a terminal is left in what is shown, whatever comes", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(bits, fc.string()), { maxLength: 60 }), (parts) => {
      expect(plainText(parts.join(""))).not.toMatch(/[^\P{Cc}\n\t]/u);
    }),
  );
});

test("every ink can be read on every ground, in the light and in the dark", () => {
  const css = readFileSync(new URL("../../src/web/styles/terminal.css", import.meta.url), "utf8");
  const pairs = (property: string) =>
    [...css.matchAll(new RegExp(`[^-]${property}: light-dark\\((#\\w+), (#\\w+)\\)`, "g"))].map((found) =>
      found.slice(1),
    );
  const grounds = [["#f5f5f2", "#111216"], ...pairs("background")];
  expect([pairs("color").length, grounds.length]).toEqual([10, 8]);
  for (const inks of pairs("color")) {
    for (const [index, ink] of inks.entries()) {
      for (const ground of grounds) expect(contrast(ink, ground[index] ?? "")).toBeGreaterThanOrEqual(4.5);
    }
  }
});

/** As WCAG 2 has it: 1 to 21. */
function contrast(...colours: [string, string]): number {
  const [a = 0, b = 0] = colours.map((colour) => {
    const [red = 0, green = 0, blue = 0] = [1, 3, 5].map((at) => {
      const part = Number.parseInt(colour.slice(at, at + 2), 16) / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05;
  });
  return Math.max(a, b) / Math.min(a, b);
}

test("pieces that stay are the same objects, so that a page need not look at them again", () => {
  const before = screenOf("\u001b[31mone\n\u001b[32mtwo\n\u001b[0mthr");
  const after = screenOf("\u001b[31mone\n\u001b[32mtwo\n\u001b[0mthree", before);
  expect(after.pieces[0]).toBe(before.pieces[0]);
  expect(after.pieces[1]).toBe(before.pieces[1]);
  expect(after.pieces.at(-1)?.text).toBe("three");
});

test("the number of pieces is bounded, and no text is lost by that", () => {
  const output = Array.from({ length: 20_000 }, (_, n) => `\u001b[3${n % 7}m${n} `).join("");
  const { pieces } = screenOf(output);
  expect(pieces.length).toBeLessThanOrEqual(MOST_PIECES + 1);
  expect(plainText(output)).toBe(Array.from({ length: 20_000 }, (_, n) => `${n} `).join(""));
});
