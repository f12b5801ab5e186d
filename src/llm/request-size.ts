// A conversation larger than any provider takes is refused before it is written: writing it holds up everybody else, and
// the answer is known. What can be summarised is a context that is too long; what cannot is an input that is refused.

import type { LLMRequest } from "../engine/ports.js";
import { type Failure, failure } from "./outcome.js";

/** In characters of what is said in it. The most that a provider takes is about half of that. */
const MAX_REQUEST_CHARS = 64 * 1024 * 1024;

/** @returns why this Request is not sent, if it is not. */
export function refusedForSize({ messages }: Pick<LLMRequest, "messages">): Failure | undefined {
  let chars = 0;
  let wasAnswered = false;
  for (const { payload } of messages) {
    chars += charsOf(payload);
    wasAnswered ||= payload.role === "assistant";
  }
  if (chars <= MAX_REQUEST_CHARS) return undefined;
  const message = `the Request holds ${chars} characters, limit ${MAX_REQUEST_CHARS}`;
  if (wasAnswered) return failure("context_overflow", message);
  return { error: { kind: "invalid_request", message, http_status: 413 } };
}

/** The characters of all strings in a JSON value. Not by recursion: `fidelity` nests as deep as its provider made it. */
function charsOf(value: unknown): number {
  let chars = 0;
  const open = [value];
  while (open.length > 0) {
    const each = open.pop();
    if (typeof each === "string") chars += each.length;
    else if (typeof each === "object" && each !== null) for (const inner of Object.values(each)) open.push(inner);
  }
  return chars;
}
