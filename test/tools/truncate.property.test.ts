import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { OutputCap } from "../../src/tools/truncate.js";

const cap = (limit: number, parts: readonly string[], reserve = 0) => {
  const output = new OutputCap(limit);
  const streamed = parts.map((part) => output.push(part)).join("");
  return { output, streamed, last: output.finish(reserve) };
};

const limits = fc.integer({ min: 200, max: 600 });
/** Any UTF-16 text, cut anywhere: also between the halves of a pair, and with halves that belong to nothing. */
const parts = fc.array(
  fc.oneof(
    fc.string({ unit: "binary", maxLength: 80 }),
    fc.constantFrom("\ud83d", "\ude42", "🙂", "北\n", ""),
    fc.integer({ min: 0, max: 900 }).map((length) => "🙂é\n".repeat(length).slice(0, length)),
  ),
  { maxLength: 12 },
);
const LEFT_OUT = /\n?\[\.\.\. (\d+) characters left out \.\.\.\]\n/;

const isWellFormed = (text: string) => !/\p{Surrogate}/u.test(text);
const wellFormed = (text: string) => text.replace(/\p{Surrogate}/gu, "\uFFFD");

describe("the output cap", () => {
  test("never lets more than the limit through, and never half a character, wherever the producer cuts", () => {
    fc.assert(
      fc.property(limits, parts, fc.integer({ min: 0, max: 40 }), (limit, pieces, reserve) => {
        const { streamed, last } = cap(limit, pieces, reserve);
        const whole = wellFormed(pieces.join(""));
        const held = whole.length > streamed.length;
        expect(streamed.length + last.length).toBeLessThanOrEqual(held ? limit - reserve : limit);
        expect(isWellFormed(streamed)).toBe(true);
        expect(isWellFormed(last)).toBe(true);
      }),
    );
  });

  test("lets a text within the limit through unchanged, however it is cut", () => {
    fc.assert(
      fc.property(limits, parts, (limit, pieces) => {
        const whole = wellFormed(pieces.join(""));
        fc.pre(whole.length <= limit);
        const { streamed, last } = cap(limit, pieces);
        expect(streamed + last).toBe(whole);
      }),
    );
  });

  test("of a longer text it streams the first half and gives the end, and the line counts what is between", () => {
    fc.assert(
      fc.property(
        limits,
        fc.string({ unit: "grapheme", minLength: 300, maxLength: 900 }),
        fc.nat(),
        (limit, text, seed) => {
          const body = text
            .padEnd(limit + 1, "xyz")
            .concat("end")
            .replaceAll("[", "(");
          const cut = seed % body.length;
          const { streamed, last } = cap(limit, [body.slice(0, cut), body.slice(cut)]);
          const half = Math.floor(limit / 2);
          expect(body.startsWith(streamed)).toBe(true);
          expect([half, half - 1]).toContain(streamed.length);
          const line = LEFT_OUT.exec(last);
          expect(line?.index).toBe(0);
          const end = last.slice(line?.[0].length);
          expect(body.endsWith(end)).toBe(true);
          expect(Number(line?.[1])).toBe(body.length - streamed.length - end.length);
          // Nothing is wasted: at most the digits of the count and one half character.
          expect(limit - streamed.length - last.length).toBeLessThanOrEqual(4);
        },
      ),
    );
  });

  test("the size of the pieces changes nothing in what goes out", () => {
    fc.assert(
      fc.property(
        limits,
        fc.string({ unit: "binary", maxLength: 1500 }),
        fc.array(fc.nat(1500)),
        (limit, text, cuts) => {
          const at = [0, ...cuts.filter((cut) => cut <= text.length).sort((a, b) => a - b), text.length];
          const pieces = at.slice(1).map((end, index) => text.slice(at[index], end));
          const [one, many] = [cap(limit, [text]), cap(limit, pieces)];
          expect(many.streamed + many.last).toBe(one.streamed + one.last);
          expect(many.output.bytes).toBe(one.output.bytes);
        },
      ),
    );
  });

  test("counts bytes of UTF-8 and shows the latest text while it holds back", () => {
    const output = new OutputCap(200);
    output.push("x".repeat(100));
    expect(output.holding).toBe(false);
    output.push("北🙂");
    expect(output.holding).toBe(true);
    expect(output.bytes).toBe(107);
    expect(output.latest(2)).toBe("🙂");
    expect(output.latest(1)).toBe("");
  });

  test("C14: a million single characters are taken in linear time and bounded memory", () => {
    const output = new OutputCap(16_000);
    let out = "";
    for (let i = 0; i < 1_000_000; i += 1) out += output.push("a");
    out += output.finish();
    expect(out).toHaveLength(16_000);
    expect(out).toContain("characters left out");
  });

  test("refuses a limit that could not hold the line about what was left out", () => {
    expect(() => new OutputCap(199)).toThrow(/least 200/);
  });
});
