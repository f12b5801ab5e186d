// What a Task owes, from its records.

import { expect, test } from "vitest";
import { Unfinished } from "../../src/engine/unfinished.js";
import {
  emptyTokenCounts,
  requestBegin,
  requestEnd,
  tokenUsage,
  toolCall,
  userText,
} from "../../src/protocol/builders.js";
import type { StopReason } from "../../src/protocol/payloads.js";

const AT = "2026-01-02T03:04:05.000Z";

function afterRequest(status: StopReason, retry_in_ms?: number): Unfinished {
  const owed = new Unfinished();
  const zero = emptyTokenCounts();
  for (const record of [
    userText(AT, "go"),
    requestBegin(AT),
    toolCall(AT, { name: "x", arguments: "{}", tool_call_id: "call-1" }),
    tokenUsage(AT, zero, zero),
    requestEnd(AT, { status, ...(retry_in_ms === undefined ? {} : { retry_in_ms }) }),
  ])
    owed.push(record);
  return owed;
}

test("E14: a call of a Request that committed waits for a person; one of a try that failed is owed its denial and waits for nobody", () => {
  expect(afterRequest("completed").awaitsDecisionOnly).toBe(true);
  for (const failed of [afterRequest("timeout", 2_000), afterRequest("timeout"), afterRequest("aborted")]) {
    expect(failed.isOpen).toBe(true);
    expect(failed.awaitsDecisionOnly).toBe(false);
  }
});
