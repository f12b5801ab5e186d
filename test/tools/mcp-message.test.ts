// What is let through to be parsed, and what is not.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MAX_ANSWER_DEPTH, MAX_ANSWER_VALUES, MAX_LIST_BYTES, MAX_LIST_VALUES } from "../../src/tools/mcp-limits.js";
import { MessageGuard } from "../../src/tools/mcp-message.js";

function guardOf(...requests: [id: number, method: string][]) {
  const guard = new MessageGuard();
  for (const [id, method] of requests) guard.sent({ id, method });
  return (text: string) => {
    const admission = guard.admit(Buffer.from(text));
    return admission.kind === "instead" ? JSON.parse(admission.json.toString()) : admission;
  };
}

const answer = (id: unknown, result: string) => `{"result":${result},"jsonrpc":"2.0","id":${id}}`;
const deep = (levels: number) => "[".repeat(levels) + "]".repeat(levels);
const wide = (values: number) => `[${"0,".repeat(values - 1)}0]`;
const fine = { kind: "fine" };
const refused = (id: number, words: RegExp) => ({
  jsonrpc: "2.0",
  id,
  error: { code: -32_600, message: expect.stringMatching(words) },
});

test("any honest answer is let through as it is", () => {
  const admit = guardOf([7, "tools/call"]);
  fc.assert(
    fc.property(fc.json({ maxDepth: 30 }), (json) => {
      const padded = answer(7, `{"content":[],"structuredContent":${json},"text":"${"x".repeat(300)}"}`);
      expect(admit(padded)).toEqual(fine);
    }),
  );
});

test("brackets and commas in texts count for nothing", () => {
  const admit = guardOf([7, "tools/call"]);
  const text = JSON.stringify(`\\"${"[{,".repeat(1_000_000)}\\`);
  expect(admit(answer(7, `{"content":[{"type":"text","text":${text}}]}`))).toEqual(fine);
});

describe("the answer to a call", () => {
  const admit = guardOf([7, "tools/call"]);
  test.each([
    ["that nests too deep", deep(MAX_ANSWER_DEPTH), /nests 201 levels deep, limit 200/],
    ["that nests without end", deep(4_000_000), /nests 4000001 levels deep/],
    ["that holds too much", wide(MAX_ANSWER_VALUES), /holds \d+ values, limit 100000/],
  ])("%s becomes an error in its place", (_what, result, words) => {
    expect(admit(answer(7, result))).toEqual(refused(7, words));
    expect(admit(`\n {"id" : 7 , "result":${result}}`)).toEqual(refused(7, words));
  });

  test("may be far larger than any other message", () => {
    const large = JSON.stringify("x".repeat(MAX_LIST_BYTES));
    expect(admit(answer(7, large))).toEqual(fine);
    expect(admit(answer(8, large))).toEqual(refused(8, /bytes, limit 2097152/));
  });
});

describe("a list of tools", () => {
  test("may hold a tool that is too deep, which is left out of it later", () => {
    expect(guardOf([1, "tools/list"])(answer(1, deep(10_000)))).toEqual(fine);
  });

  test("is as large in all its pages as in one, and the next list begins anew", () => {
    const guard = new MessageGuard();
    const page = (id: number) => {
      guard.sent({ id, method: "tools/list" });
      return guard.admit(Buffer.from(answer(id, wide(MAX_LIST_VALUES / 4)))).kind;
    };
    expect([1, 2, 3, 4].map(page)).toEqual(["fine", "fine", "fine", "instead"]);
    guard.beginList();
    expect(page(5)).toBe("fine");
  });
});

test.each([
  ["no id", `{"method":"notifications/message","params":${wide(MAX_LIST_VALUES)}}`],
  ["two ids", `{"id":7,"result":${wide(MAX_LIST_VALUES)},"id":1}`],
  ["an id in disguise", `{"id":7,"result":${wide(MAX_LIST_VALUES)},"\\u0069d":1}`],
  ["an id that is a text", answer('"7"', wide(MAX_LIST_VALUES))],
  ["an id that is no whole number", answer("7.0", wide(MAX_LIST_VALUES))],
  ["a list around it", `[${answer(7, wide(MAX_LIST_VALUES))}]`],
])("a message that is too much for all but an answer, with %s, breaks the rules", (_what, text) => {
  const admit = guardOf([7, "tools/call"], [1, "tools/list"]);
  expect(admit(text)).toMatchObject({ kind: "breach", reason: expect.stringMatching(/^it sent a message that holds/) });
});

test("what is no JSON is let through, to be told as that", () => {
  const admit = guardOf();
  for (const text of ["x".repeat(1_000), '"'.repeat(1_001), `{"a":"${"\\".repeat(1_001)}`, "]".repeat(1_000)]) {
    expect(admit(text)).toEqual(fine);
  }
});

test("of requests that were never answered only the latest are remembered", () => {
  const guard = new MessageGuard();
  for (let id = 1; id <= 10_000; id++) guard.sent({ id, method: "tools/call" });
  const large = (id: number) => guard.admit(Buffer.from(answer(id, wide(MAX_LIST_VALUES)))).kind;
  expect([large(1), large(10_000)]).toEqual(["instead", "fine"]);
});
