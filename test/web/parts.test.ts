import fc from "fast-check";
import { expect, test } from "vitest";
import { lineDiff } from "../../src/web/diff.js";
import { connectionText } from "../../src/web/standing.js";
import { readArguments } from "../../src/web/tool-words.js";
import { indexAt, offsetsOf, rangeAt, WHOLE_UP_TO } from "../../src/web/virtual-window.js";

test("arguments are read by name, the telling one apart; what is no object is shown as it is", () => {
  expect(readArguments('{"timeout_ms":5,"cmd":"ls\\npwd"}')).toMatchObject({
    telling: "ls\npwd",
    others: [{ name: "timeout_ms", value: "5" }],
    raw: "",
  });
  expect(readArguments("  ")).toEqual({ telling: "", others: [], raw: "", values: {} });
  for (const raw of ['{"cmd":"l', "[1]", "null", "7"]) expect(readArguments(raw).raw).toBe(raw);
});

test("the state of the connection is said in words, with the seconds that are left", () => {
  const now = Date.parse("2026-07-18T03:10:22.000Z");
  const waiting = (retryAt: number) =>
    ({ status: "waiting", attempt: 1, retryAt, reason: "it was closed", code: "closed" }) as const;
  expect(connectionText(waiting(now + 2_100), now, true)).toMatchObject({ text: "Reconnecting in 3 s" });
  expect(connectionText(waiting(now - 50), now, true)).toMatchObject({ text: "Reconnecting in 0 s" });
  expect(connectionText(waiting(now), now, false)).toMatchObject({ text: "Offline", tone: "lost" });
  expect(connectionText({ status: "live", resynced: true }, now, true).text).toBe("Live, resynced");
});

const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 });

test("a difference holds both texts, and what both share is not called changed", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = lineDiff(before.map((line) => `${line}\n`).join(""), after.map((line) => `${line}\n`).join(""));
      const side = (kind: string) => diff.filter((line) => line.kind !== kind).map(({ text }) => text);
      expect(side("added")).toEqual(before);
      expect(side("removed")).toEqual(after);
    }),
  );
  expect(lineDiff("one\ntwo\nthree", "one\n2\nthree")).toEqual([
    { kind: "same", text: "one" },
    { kind: "removed", text: "two" },
    { kind: "added", text: "2" },
    { kind: "same", text: "three" },
  ]);
});

test("what is seen of a long list is in the page, and not much more than that", () => {
  const heights = fc.array(fc.integer({ min: 1, max: 900 }), { minLength: WHOLE_UP_TO + 1, maxLength: 400 });
  fc.assert(
    fc.property(heights, fc.double({ min: 0, max: 1, noNaN: true }), (list, at) => {
      const offsets = offsetsOf(list);
      const all = offsets.at(-1) ?? 0;
      const top = at * Math.max(0, all - 800);
      const { start, end } = rangeAt(offsets, top, 800);
      expect(offsets[start]).toBeLessThanOrEqual(top);
      expect(offsets[end]).toBeGreaterThanOrEqual(Math.min(all, top + 800));
      expect((offsets[end] ?? 0) - (offsets[start] ?? 0)).toBeLessThanOrEqual(800 + 2 * 900 + 2 * 900);
      const index = indexAt(offsets, top);
      expect(offsets[index]).toBeLessThanOrEqual(top);
    }),
  );
});
