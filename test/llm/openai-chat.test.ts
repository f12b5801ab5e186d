import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { complete, decodeChunks, essence, pieces, segmentsOf } from "./support.js";

const folder = new URL("../fixtures/openai-chat/", import.meta.url);
const stream = (name: string): Buffer => readFileSync(new URL(`${name}.sse`, folder));
const read = (name: string) => decodeChunks([stream(name)]);
const call = (id: string, name: string, args: string) => ({ type: "tool_call", id, name, arguments: args });
const USAGE = { cache_read: 0, cache_write: 20, output: 5, total: 25 };

describe("hand-written streams", () => {
  const expected: Record<string, { segments: object[]; outcome: object }> = {
    "text-crlf-bom": {
      segments: [{ type: "text", text: "北🙂é done" }],
      outcome: { status: "completed", finishReason: "stop", usage: USAGE },
    },
    "text-cr-only": { segments: [{ type: "text", text: "one two" }], outcome: { status: "completed" } },
    "think-then-text": {
      segments: [
        { type: "thinking", thinking: "Let me see." },
        { type: "text", text: "42" },
      ],
      outcome: { status: "completed", usage: USAGE },
    },
    "reasoning-details": {
      segments: [{ type: "thinking", thinking: "Let me." }, call("toolu_1", "one", '{"x": 1.0}')],
      outcome: { status: "completed", usage: USAGE },
    },
    "calls-same-index": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "calls-no-index": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "calls-interleaved": {
      segments: [call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":2}')],
      outcome: { status: "completed" },
    },
    "call-id-later": { segments: [call("a1", "one", '{"x":1}')], outcome: { status: "completed" } },
    "call-cut-by-length": {
      segments: [{ type: "text", text: "Writing." }, call("a1", "one", '{"x":1}'), call("b2", "two", '{"y":"lo')],
      outcome: { status: "completed", truncated: true, finishReason: "length" },
    },
    "error-then-finish": {
      segments: [{ type: "text", text: "Hal" }],
      outcome: { status: "timeout", error: { kind: "timeout", message: "upstream fell over" }, usage: USAGE },
    },
    "odd-chunks": { segments: [{ type: "text", text: "ok" }], outcome: { status: "completed", usage: USAGE } },
    "no-done": { segments: [{ type: "text", text: "fine" }], outcome: { status: "completed" } },
    "bare-error": {
      segments: [{ type: "text", text: "so" }],
      outcome: { status: "timeout", error: { kind: "overloaded", message: "try later" } },
    },
  };

  test("every written stream has its expectation", () => {
    expect(readdirSync(folder).sort()).toEqual(
      Object.keys(expected)
        .map((name) => `${name}.sse`)
        .sort(),
    );
  });

  test.each(Object.entries(expected))("F10 F14 F16 F22: %s gives its segments and its outcome", (name, right) => {
    const { messages, outcome } = read(name);
    expect(segmentsOf(messages)).toEqual(right.segments);
    expect(outcome).toMatchObject(right.outcome);
  });

  test.each(Object.keys(expected))("B3: %s reads the same split in two at every byte offset", (name) => {
    const bytes = stream(name);
    const whole = essence(decodeChunks([bytes]));
    for (let at = 0; at <= bytes.length; at++) {
      expect(essence(decodeChunks([bytes.subarray(0, at), bytes.subarray(at)]))).toEqual(whole);
    }
    expect(essence(decodeChunks(pieces(bytes, 1)))).toEqual(whole);
  });

  test.each(Object.keys(expected))("F15: %s cut at any byte never ends well before its end mark", (name) => {
    const bytes = stream(name);
    for (let at = 0; at < bytes.length; at++) {
      const part = bytes.subarray(0, at);
      const { messages, outcome } = decodeChunks([part]);
      const hasEnd = /"finish_reason": ?"|data: \[DONE\]/.test(part.toString("utf8"));
      if (!hasEnd) expect(outcome.status).not.toBe("completed");
      for (const message of complete(messages)) {
        if (!isPayload(message, "tool_call") || message.payload.stop_reason !== undefined) continue;
        if (!hasEnd || message.payload.arguments !== "")
          expect(() => JSON.parse(message.payload.arguments)).not.toThrow();
      }
    }
  });
});
