import fc from "fast-check";
import { expect, test } from "vitest";
import { createLog, createScrubber } from "../../src/http/logging.js";

test("whatever is logged, no secret and no access_token is in the line, and the line is still JSON", () => {
  const secret = fc
    .string({ minLength: 8, maxLength: 40 })
    .filter((text) => /[^\w\s]/.test(text) && !text.includes("redacted"));
  fc.assert(
    fc.property(fc.array(secret, { minLength: 1, maxLength: 4 }), fc.string(), (secrets, around) => {
      const lines: string[] = [];
      const log = createLog({ logLevel: "info", secrets }, { write: (line) => lines.push(line) });
      log.error(
        { err: new Error(`failed with ${around}${secrets.join(around)}`) },
        `at ?access_token=${"q".repeat(9)}&x=1`,
      );
      const read = JSON.stringify(JSON.parse(lines.join("")));
      expect(read).not.toContain("qqqqqqqqq");
      for (const each of secrets) expect(read).not.toContain(JSON.stringify(each).slice(1, -1));
    }),
  );
});

test("a secret that is part of another hides neither half of the longer one", () => {
  const scrub = createScrubber(["abcd", "abcdefgh"]);
  expect(scrub("x abcdefgh y abcd z")).toBe("x [redacted] y [redacted] z");
});
