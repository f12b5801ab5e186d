import { expect, test } from "vitest";
import { draftsToKeep, readDrafts } from "../../src/web/drafts-kept.js";

const draftOf = (of: string | null, text: string) => ({ of, text, key: "k" });

test("drafts are kept with the latest first to stay, within bounds of number and size; empty ones are not", () => {
  const many = Array.from({ length: 80 }, (_, n) => draftOf(`s${n}`, "text"));
  expect(draftsToKeep(many)).toEqual(many.slice(30));
  const [old, huge, late, empty] = [
    draftOf("a", "x".repeat(60_000)),
    draftOf("b", "y".repeat(150_000)),
    draftOf(null, "z".repeat(60_000)),
    draftOf("c", ""),
  ];
  expect(draftsToKeep([old, huge, late, empty])).toEqual([old, late]);
});

test("what was kept by another version, or by nobody, is read as far as it can be", () => {
  const good = draftOf(null, "text");
  expect(readDrafts([good, draftOf("a", "b"), null, 7, { of: 1, text: "", key: "" }, { of: "a" }])).toEqual([
    good,
    draftOf("a", "b"),
  ]);
  for (const value of [undefined, null, "text", { of: null }]) expect(readDrafts(value)).toEqual([]);
});
