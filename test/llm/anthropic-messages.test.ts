import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { complete, decodeChunks, decodeText, essence, fromOf, pieces, segmentsOf } from "./support.js";

const folder = new URL("../fixtures/anthropic-messages/", import.meta.url);
const stream = (name: string): Buffer => readFileSync(new URL(`${name}.sse`, folder));
const wire = anthropicMessages;
const read = (name: string) => decodeChunks([stream(name)], { wire });

const text = (words: string) => ({ type: "text", text: words });
const thought = (words: string) => ({ type: "thinking", thinking: words });
const call = (id: string, name: string, args: string) => ({ type: "tool_call", id, name, arguments: args });
const USAGE = { cache_read: 7, cache_write: 23, output: 5, total: 35, cache_creation: 3 };
const done = (finishReason: string) => ({ status: "completed", finishReason, usage: USAGE });

const expected: Record<string, { segments: object[]; outcome: object }> = {
  "text-crlf": { segments: [text("北🙂é done")], outcome: done("end_turn") },
  "text-cr-unnamed": { segments: [text("one two")], outcome: done("stop_sequence") },
  "thinking-then-calls": {
    segments: [thought("Let me see."), text("Looking."), call("toolu_a", "one", '{"x":1}'), call("toolu_b", "two", "")],
    outcome: done("tool_use"),
  },
  "hidden-thinking": { segments: [thought(""), thought(""), thought(""), text("ok")], outcome: done("end_turn") },
  interleaved: {
    segments: [thought("first"), call("toolu_a", "one", "{}"), thought("second"), text("so")],
    outcome: done("tool_use"),
  },
  "server-tool": { segments: [text("Searching."), text("Found.")], outcome: done("end_turn") },
  pause: { segments: [thought("")], outcome: { ...done("pause_turn"), pause: true } },
  "call-cut-by-limit": {
    segments: [text("Writing."), call("toolu_a", "one", '{"x":1}'), call("toolu_b", "two", '{"y":"lo')],
    outcome: { ...done("max_tokens"), truncated: true },
  },
  "thinking-cut-by-limit": { segments: [thought("Hm, ")], outcome: { ...done("max_tokens"), truncated: true } },
  "error-midstream": {
    segments: [text("Hal")],
    outcome: { status: "timeout", error: { kind: "overloaded", message: "Overloaded" } },
  },
  "bare-error": {
    segments: [text("so")],
    outcome: { status: "timeout", error: { kind: "timeout", message: "upstream fell over" } },
  },
  refusal: { segments: [], outcome: { status: "failed", error: { kind: "content_filter", message: "Not this." } } },
  splice: {
    segments: [call("toolu_a", "one", '{"x":')],
    outcome: { status: "malformed", error: { kind: "malformed" }, usage: USAGE },
  },
  "no-end": { segments: [text("all of it")], outcome: { status: "malformed", finishReason: "end_turn", usage: USAGE } },
  "usage-overwritten": {
    segments: [text("ok")],
    outcome: { usage: { cache_read: 7, cache_write: 50, output: 5, total: 62, cache_creation: 0 } },
  },
  "whole-in-start": {
    segments: [thought("hm"), text("hi"), call("toolu_a", "one", '{"x":1}')],
    outcome: done("tool_use"),
  },
  "odd-events": { segments: [text("ok"), thought("")], outcome: done("end_turn") },
};
const names = Object.keys(expected);

describe("hand-written streams", () => {
  test("every written stream has its expectation", () => {
    expect(readdirSync(folder).sort()).toEqual(names.map((name) => `${name}.sse`).sort());
  });

  test.each(names)("%s is read as it is meant", (name) => {
    const { messages, outcome } = read(name);
    expect(segmentsOf(messages)).toEqual(expected[name]?.segments);
    expect(outcome).toMatchObject(expected[name]?.outcome as object);
    expect("pause" in outcome).toBe(name === "pause");
  });

  test.each(names)("B3: %s reads the same cut at every byte, and a byte at a time", (name) => {
    const bytes = stream(name);
    const decode = (chunks: Iterable<Uint8Array>) => essence(decodeChunks(chunks, { wire }));
    const whole = decode([bytes]);
    expect(decode(pieces(bytes, 1))).toEqual(whole);
    // Shifts of seven-byte pieces: a cut at each offset, once.
    for (let shift = 0; shift < 7; shift++) {
      expect(decode([bytes.subarray(0, shift), ...pieces(bytes.subarray(shift), 7)])).toEqual(whole);
    }
  });

  test.each(names)("F15: %s broken off after any event is not complete before its end mark", (name) => {
    const frames = stream(name)
      .toString()
      .split(/(?<=\n\n|\r\n\r\n|\r\r)/);
    for (let count = 0; count < frames.length; count++) {
      const part = frames.slice(0, count).join("");
      const { messages, outcome } = decodeText(part, { wire });
      if (!part.includes('"message_stop"')) expect(outcome.status).not.toBe("completed");
      for (const { type, stop_reason, arguments: args } of payloads(messages)) {
        if (type === "tool_call" && stop_reason === undefined) expect(JSON.parse(args || "{}")).toBeTypeOf("object");
      }
    }
  });
});

type Payload = { type: string; fidelity?: unknown; stop_reason?: string; arguments?: string };
const payloads = (messages: Parameters<typeof complete>[0]): Payload[] =>
  complete(messages).map(({ payload }) => payload as unknown as Payload);
const fidelities = (name: string): unknown[] => payloads(read(name).messages).map(({ fidelity }) => fidelity);

describe("what is kept for the provider", () => {
  const from = fromOf("anthropic-messages");

  test("F5: a signature is kept as the concatenation of its pieces, beside its thinking and nowhere else", () => {
    expect(fidelities("thinking-then-calls")).toEqual([
      { signature: "U2lnbmVk", from },
      undefined,
      undefined,
      undefined,
    ]);
  });

  test("F5: hidden reasoning keeps its data, block by block and in order", () => {
    expect(fidelities("hidden-thinking")).toEqual([
      { redacted_thinking: "UmVkMQ==", from },
      { redacted_thinking: "UmVkMg==", from },
      { signature: "U2ln", from },
      undefined,
    ]);
  });

  test("half a signature, of thinking that a limit cut off, is not kept", () => {
    expect(fidelities("thinking-cut-by-limit")).toEqual([{ from }]);
  });

  test("F5: server tools ride in front of the segment that followed them, input put together", () => {
    expect(fidelities("server-tool")).toEqual([
      undefined,
      {
        blocks_before: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } },
          {
            type: "web_search_tool_result",
            tool_use_id: "srvtoolu_1",
            content: [{ type: "web_search_result", url: "https://x", encrypted_content: "RW5j" }],
          },
        ],
        citations: [{ type: "web_search_result_location", encrypted_index: "SWR4" }],
        from,
      },
    ]);
  });

  test("F5: behind the last segment they are a hidden thought; an unknown block takes its own deltas", () => {
    expect(fidelities("pause")).toEqual([
      { blocks_before: [{ type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: {} }], from },
    ]);
    expect(fidelities("odd-events")).toEqual([
      undefined,
      { blocks_before: [{ type: "crystal", facets: 2, shine: "glow" }], from },
    ]);
  });
});

describe("how segments are closed", () => {
  const stops = (name: string) => payloads(read(name).messages).map(({ stop_reason }) => stop_reason);

  test("only the call that the limit cut is malformed", () => {
    expect(stops("call-cut-by-limit")).toEqual([undefined, undefined, "malformed"]);
  });

  test("what a failure found open bears its status; what was over before does not", () => {
    expect(stops("error-midstream")).toEqual(["timeout"]);
    expect(stops("splice")).toEqual(["malformed"]);
    expect(stops("no-end")).toEqual([undefined]);
  });

  test("a call goes out at its block's stop, while the rest is still to come", () => {
    const upToStop = stream("thinking-then-calls")
      .toString()
      .split(/(?<="content_block_stop","index":2\}\n\n)/)[0];
    const { messages } = decodeChunks([Buffer.from(upToStop as string)], { wire });
    expect(payloads(messages).at(-1)).toMatchObject({ type: "tool_call", arguments: '{"x":1}' });
    expect(payloads(messages).at(-1)?.stop_reason).toBeUndefined();
  });
});
