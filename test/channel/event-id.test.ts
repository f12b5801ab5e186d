import fc from "fast-check";
import { expect, test } from "vitest";
import { formatEventId, parseEventId } from "../../src/channel/event-id.js";

test("every id that is given out reads back as itself", () => {
  fc.assert(
    fc.property(fc.maxSafeNat(), fc.maxSafeNat(), (epoch, seq) => {
      expect(parseEventId(formatEventId(epoch, seq))).toEqual({ epoch, seq });
    }),
  );
});

test.each([
  ["", " ", "1", "-", "1-", "-1", "--1", "1-2-3", "1.0-2", "1e3-2", "0x1-2", "+1-2", "1-+2", "1--2"],
  ["01-2", "1-02", "00-0", " 1-2", "1-2 ", "1 -2", "1-2\n", "1\u00002", "1-2\u0000", "١-٢", "1-２", "1–2"],
  ["null", "undefined", "NaN-NaN", "Infinity-1", `1-${"9".repeat(400)}`, "*", "$", ">"],
])("what is not two plain decimal numbers is not an id (%s …)", (...texts) => {
  for (const text of texts) expect(parseEventId(text), JSON.stringify(text)).toBeUndefined();
});

test("a number too large to be exact stays above every number that was given out", () => {
  const id = parseEventId("18446744073709551615-9007199254740993");
  expect(id?.epoch).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
  expect(id?.seq).toBeGreaterThan(Number.MAX_SAFE_INTEGER);
});

test("any text either is an id in its one spelling or is refused", () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom("0", "1", "9", "-", "+", " ", "٣", "x") }), (text) => {
      const id = parseEventId(text);
      if (id) expect(`${BigInt(id.epoch)}-${BigInt(id.seq)}`.length).toBeGreaterThanOrEqual(3);
      expect(id !== undefined).toBe(/^\d{1,300}-\d{1,300}$/.test(text) && !/(^|-)0\d/.test(text));
    }),
  );
});
