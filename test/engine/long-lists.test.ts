// Lists of a length that nobody bounds: a Prompt of very many parts, an answer of very many segments. What is added to a
// list as arguments of one call overflows the stack from some hundred thousand on.

import { expect, test } from "vitest";
import { Context } from "../../src/engine/context.js";
import {
  assistantText,
  emptyTokenCounts,
  requestBegin,
  requestEnd,
  tokenUsage,
  userText,
} from "../../src/protocol/builders.js";
import { AT } from "../support/messages.js";

const MANY = 300_000;

function fold(status: "completed" | "aborted") {
  const context = new Context();
  for (let n = 0; n < MANY; n += 1) context.push(userText(AT, "part"));
  context.push(requestBegin(AT));
  for (let n = 0; n < MANY; n += 1) context.push(assistantText(AT, "said"));
  for (let n = 0; n < MANY; n += 1) context.push(userText(AT, "steering"));
  context.push(tokenUsage(AT, emptyTokenCounts(), emptyTokenCounts()));
  context.push(requestEnd(AT, { status }));
  return context.assemble().length;
}

test("a Session holds a Prompt, an answer and steering of as many parts as there are", () => {
  expect(fold("completed")).toBe(3 * MANY);
  // The answer is told in one block.
  expect(fold("aborted")).toBe(2 * MANY + 1);
});
