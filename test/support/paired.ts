// The pairing that every provider demands of a context, over messages.

import { expect } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { CompletePayload } from "../../src/protocol/payloads.js";

/** Right after calls come their outputs, in call order, each once, and outputs stand nowhere else. */
export function expectPairedContext(messages: readonly OmniMessage<CompletePayload>[]): void {
  const seen = new Set<string>();
  let due: string[] = [];
  let calls: string[] = [];
  for (const message of messages) {
    if (isPayload(message, "tool_call_output")) {
      if (calls.length > 0) [due, calls] = [calls, []];
      expect(message.payload.tool_call_id, "an output in its place").toBe(due.shift());
      continue;
    }
    expect(due, "calls without an output").toEqual([]);
    if (isPayload(message, "tool_call")) {
      expect(seen, "a call twice").not.toContain(message.payload.tool_call_id);
      seen.add(message.payload.tool_call_id);
      calls.push(message.payload.tool_call_id);
    } else if (message.payload.role === "user") expect(calls, "calls without an output").toEqual([]);
  }
  expect([...due, ...calls]).toEqual([]);
}
