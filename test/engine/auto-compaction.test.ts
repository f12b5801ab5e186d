import { describe, expect, test } from "vitest";
import { compactionDue } from "../../src/engine/auto-compaction.js";

const size = (tokens: number, turns = 3, more: object = {}) => ({
  tokens,
  turns,
  leastTokens: 0,
  isCompacted: false,
  ...more,
});

describe("a context is due", () => {
  test.each([
    ["at maxContextLength", size(1_000), { maxContextLength: 1_000, maxSessionTurns: -1 }, 128_000, "context"],
    ["not below it", size(999), { maxContextLength: 1_000, maxSessionTurns: -1 }, 128_000, undefined],
    [
      "at 0.8 of the window, if that is less",
      size(800),
      { maxContextLength: 5_000, maxSessionTurns: -1 },
      1_000,
      "context",
    ],
    ["not below 0.8 of it", size(799), { maxContextLength: 5_000, maxSessionTurns: -1 }, 1_000, undefined],
    [
      "by length alone where the window is not known",
      size(5_000),
      { maxContextLength: 5_000, maxSessionTurns: -1 },
      0,
      "context",
    ],
    [
      "F21: never by length when that is switched off",
      size(9_999),
      { maxContextLength: -1, maxSessionTurns: -1 },
      1_000,
      undefined,
    ],
    ["at maxSessionTurns", size(1, 3), { maxContextLength: 1_000, maxSessionTurns: 3 }, 0, "turns"],
    ["not below it", size(1, 2), { maxContextLength: 1_000, maxSessionTurns: 3 }, 0, undefined],
    ["by length first", size(1_000, 3), { maxContextLength: 1_000, maxSessionTurns: 3 }, 0, "context"],
    ["never while nothing has committed", size(0, 0), { maxContextLength: 1_000, maxSessionTurns: 0 }, 0, undefined],
    [
      "F20: not again where the last compaction did not help",
      size(2_000, 9, { isCompacted: true, leastTokens: 1_000 }),
      { maxContextLength: 1_000, maxSessionTurns: -1 },
      0,
      undefined,
    ],
    [
      "again where it did",
      size(2_000, 9, { isCompacted: true, leastTokens: 999 }),
      { maxContextLength: 1_000, maxSessionTurns: -1 },
      0,
      "context",
    ],
  ] as const)("%s", (_, at, settings, window, due) => expect(compactionDue(at, settings, window)).toBe(due));
});
