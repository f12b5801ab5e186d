import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { decodeResponses, hasEnding } from "./openai-responses-support.js";
import { complete, essence, fromOf, pieces, segmentsOf } from "./support.js";

const folder = new URL("../fixtures/openai-responses/", import.meta.url);
const stream = (name: string): Buffer => readFileSync(new URL(`${name}.sse`, folder));
const call = (id: string, name: string, args: string) => ({ type: "tool_call", id, name, arguments: args });
const text = (text: string) => ({ type: "text", text });
const thought = (thinking: string) => ({ type: "thinking", thinking });
const USAGE = { cache_read: 8, cache_write: 12, output: 5, total: 25 };
const COMPLETED = { status: "completed", finishReason: "completed", usage: USAGE };

interface Right {
  segments: object[];
  /** Of the segments, in order. */
  fidelity?: (object | undefined)[];
  outcome: object;
}

const from = fromOf("openai-responses");
const search = { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } };
const ONE_AND_TWO = [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')];
const retold = (...texts: string[]) => texts.map((text) => ({ type: "summary_text", text }));

const expected: Record<string, Right> = {
  "text-crlf-bom": { segments: [text("北🙂é done")], outcome: COMPLETED },
  phases: {
    segments: [text("Looking."), text("Found.")],
    fidelity: [
      { phase: "commentary", from },
      { phase: "final_answer", from },
    ],
    outcome: COMPLETED,
  },
  summaries: {
    segments: [thought("**One**\n\nTwo."), text("ok")],
    fidelity: [{ id: "rs_1", encrypted_content: "second+/=", summary: retold("**One**", "Two."), from }, undefined],
    outcome: COMPLETED,
  },
  "hosted-between": {
    segments: [thought(""), thought(""), text("hit")],
    fidelity: [
      { id: "rs_1", summary: [], encrypted_content: "AA==", from },
      { id: "rs_2", summary: [], encrypted_content: "BB==", before: [search], from },
      undefined,
    ],
    outcome: COMPLETED,
  },
  "arguments-in-done": { segments: [...ONE_AND_TWO, call("c3", "three", "")], outcome: COMPLETED },
  "calls-interleaved": { segments: ONE_AND_TWO, outcome: COMPLETED },
  "raw-reasoning-ends-late": {
    segments: [thought("Let me see."), text("42"), thought("")],
    fidelity: [
      { id: "rs_1", summary: [], from },
      undefined,
      {
        ...{ id: "rs_1", summary: [], signature: "S+/=", replaces: "rs_1", from },
        content: [{ type: "reasoning_text", text: "Let me see." }],
      },
    ],
    outcome: COMPLETED,
  },
  "call-cut-by-limit": {
    segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":"lo')],
    outcome: { ...COMPLETED, finishReason: "max_output_tokens", truncated: true },
  },
  "error-then-failed": {
    segments: [text("Hal")],
    outcome: {
      ...{ status: "timeout", finishReason: "failed", usage: USAGE },
      error: { kind: "timeout", message: "upstream fell over" },
    },
  },
  refusal: { segments: [], outcome: { status: "failed", error: { kind: "content_filter", message: "I will not." } } },
  "no-places": { segments: [thought("hm"), text("so"), call("a1", "one", '{"x":1}')], outcome: COMPLETED },
  "no-end": {
    segments: [call("a1", "one", '{"x":1}')],
    outcome: { status: "malformed", usage: { total: 0 } },
  },
  "whole-body": {
    segments: [thought("hm"), text("hi"), call("a1", "one", '{"x":1}')],
    fidelity: [
      { id: "rs_1", summary: retold("hm"), encrypted_content: "AA==", from },
      { phase: "final_answer", from },
      undefined,
    ],
    outcome: COMPLETED,
  },
};

describe("hand-written streams", () => {
  test("every written stream has its expectation", () => {
    expect(readdirSync(folder).sort()).toEqual(
      Object.keys(expected)
        .map((name) => `${name}.sse`)
        .sort(),
    );
  });

  test.each(Object.entries(expected))(
    "F5 F16 F22: %s gives its segments, its fidelity and its outcome",
    (name, right) => {
      const { messages, outcome } = decodeResponses([stream(name)]);
      expect(segmentsOf(messages)).toEqual(right.segments);
      expect(outcome).toMatchObject(right.outcome);
      if (right.fidelity === undefined) return;
      expect(complete(messages).map(({ payload }) => (payload as { fidelity?: object }).fidelity)).toEqual(
        right.fidelity,
      );
    },
  );

  test.each(Object.keys(expected))("B3: %s reads the same split in two at every byte offset", (name) => {
    const bytes = stream(name);
    const whole = essence(decodeResponses([bytes]));
    for (let at = 0; at <= bytes.length; at++) {
      expect(essence(decodeResponses([bytes.subarray(0, at), bytes.subarray(at)]))).toEqual(whole);
    }
    expect(essence(decodeResponses(pieces(bytes, 1)))).toEqual(whole);
  });

  test.each(Object.keys(expected))("F15: %s cut at any byte never ends well before the response says so", (stored) => {
    const bytes = stream(stored);
    for (let at = 0; at < bytes.length; at++) {
      const part = bytes.subarray(0, at);
      const { messages, outcome } = decodeResponses([part]);
      if (!hasEnding(part.toString("utf8"))) expect(outcome.status).not.toBe("completed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        const { tool_call_id: id, name, arguments: args } = message.payload;
        expect(expected[stored]?.segments).toContainEqual(call(id, name, args));
      }
    }
  });
});
