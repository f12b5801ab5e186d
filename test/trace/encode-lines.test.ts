import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { toLine } from "../../src/protocol/message.js";
import { encodeLines } from "../../src/trace/encode-lines.js";
import { isMetaLine, isOwnMetaLine } from "../../src/trace/trace-index.js";

const line = fc
  .tuple(fc.string({ unit: "grapheme", maxLength: 40 }), fc.integer({ min: 1, max: 2000 }))
  .map(([text, times]) => JSON.stringify(text.repeat(times)));

describe("encodeLines", () => {
  test("groups that are held at the same time keep their bytes, whatever their size and the order of their release", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(line, { minLength: 1, maxLength: 4 }), fc.boolean(), fc.nat({ max: 6 })), {
          maxLength: 30,
        }),
        (groups) => {
          const held: { encoded: ReturnType<typeof encodeLines>; expected: Buffer }[] = [];
          const letGo = (count: number) => {
            for (const { encoded, expected } of held.splice(0, count)) {
              expect(encoded.data.equals(expected)).toBe(true);
              encoded.release();
            }
          };
          for (const [lines, isOpen, released] of groups) {
            const encoded = encodeLines(lines, isOpen ? "\n" : "");
            expect(encoded.sizes).toEqual(lines.map((each) => Buffer.byteLength(each) + 1));
            held.push({ encoded, expected: Buffer.from(`${isOpen ? "\n" : ""}${lines.join("\n")}\n`) });
            letGo(released);
          }
          letGo(held.length);
        },
      ),
      { numRuns: 200 },
    );
  });

  test("a record with a line feed in it is refused, and takes no buffer", () => {
    for (let n = 0; n < 10; n += 1) expect(() => encodeLines(["x".repeat(5000), "a\nb"], "")).toThrow();
    expect(encodeLines(["x".repeat(5000)], "").data).toHaveLength(5001);
  });
});

test("by its beginning a line of our own is taken for a session_meta exactly when it is one", () => {
  const message = fc.record({
    timestamp: fc.constantFrom("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z", 'a","type":"model_msg"'),
    type: fc.constantFrom("session_meta", "model_msg", "event_msg"),
    payload: fc.dictionary(fc.constantFrom("type", "text", "timestamp"), fc.constantFrom("session_meta", "text", '"')),
  });
  const anyOrder = fc.tuple(message, fc.shuffledSubarray(["timestamp", "type", "payload"], { minLength: 3 }));
  fc.assert(
    fc.property(anyOrder, ([value, keys]) => {
      const text = toLine(Object.fromEntries(keys.map((key) => [key, value[key as keyof typeof value]])));
      expect([text, isOwnMetaLine(text)]).toEqual([text, isMetaLine(text)]);
    }),
    { numRuns: 500 },
  );
});
