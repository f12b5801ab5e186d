// JSON that nests deeper than it can be written: every wire lets it in somewhere, and no Session may end of it.

import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { gemini } from "../../src/llm/wire/gemini.js";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import { toolCall, toolCallOutput, userText } from "../../src/protocol/builders.js";
import { toLine } from "../../src/protocol/message.js";
import { AT, complete, decodeText, delta, llmRequest, modelSpec, protocolOf, sse } from "./support.js";

const WIRES = [anthropicMessages, openaiChat, openaiResponses, gemini].map((wire) => [protocolOf(wire), wire] as const);

const nested = (levels: number): string => '{"a":'.repeat(levels) + 1 + "}".repeat(levels);

describe("arguments of a past call", () => {
  const bodyWith = (wire: (typeof WIRES)[number][1], args: string): string => {
    const messages = [
      userText(AT, "go"),
      toolCall(AT, { name: "f", arguments: args, tool_call_id: "a" }),
      toolCallOutput(AT, { output: "out", tool_call_id: "a" }),
    ];
    return wire.encode(llmRequest({ messages }), modelSpec({ protocol: protocolOf(wire) })).body;
  };

  test.each(WIRES)("%s: nested too deeply to be written, they go out as text", (_, wire) => {
    const body = bodyWith(wire, nested(20_000));
    expect(body).toContain("unparsed_arguments");
    expect(() => JSON.stringify(JSON.parse(body))).not.toThrow();
  });

  test.each(WIRES)("%s: nested as deeply as is taken, they stay an object", (_, wire) => {
    expect(bodyWith(wire, nested(500))).not.toContain("unparsed_arguments");
    expect(bodyWith(wire, nested(501))).toContain("unparsed_arguments");
  });
});

describe("data that is kept as fidelity", () => {
  const start = '{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"n"';
  const stop = { type: "content_block_stop", index: 0 };
  const ends = [{ type: "message_delta", delta: { stop_reason: "end_turn" } }, { type: "message_stop" }];
  const answers = (deep: string): [string, (typeof WIRES)[number][1], string][] => [
    [
      "reasoning_details",
      openaiChat,
      sse(
        `{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.x","data":${deep}}]}}]}`,
        delta({ content: "hi" }, "stop"),
      ),
    ],
    [
      "extra_content",
      openaiChat,
      sse(
        `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","extra_content":${deep},"function":{"name":"f","arguments":"{}"}}]}}]}`,
        delta({}, "tool_calls"),
      ),
    ],
    ["server_tool_use", anthropicMessages, sse(`${start},"input":${deep}}}`, stop, ...ends)],
    [
      "a reasoning item",
      openaiResponses,
      sse(
        `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","encrypted_content":"e","x":${deep}}}`,
        { type: "response.completed", response: { status: "completed" } },
      ),
    ],
    [
      "an unknown part",
      gemini,
      sse(`{"candidates":[{"content":{"parts":[{"executableCode":${deep}}]},"finishReason":"STOP"}]}`),
    ],
  ];

  test.each(answers(nested(20_000)))("%s: an event that nests too deeply ends the answer", (_, wire, bytes) => {
    const { messages, outcome } = decodeText(bytes, { wire });
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(outcome.error?.message).toMatch(/nests too deeply/);
    for (const message of messages) toLine(message);
  });

  test.each(answers(nested(900)))("%s: one that can be written is kept", (_, wire, bytes) => {
    const { messages, outcome } = decodeText(bytes, { wire });
    expect(outcome.status).toBe("completed");
    expect(complete(messages).map(toLine).join("")).toContain('{"a":{"a":');
  });

  test("input that comes in pieces and nests too deeply leaves its block as it began", () => {
    const piece = { type: "content_block_delta", index: 0 };
    const json = { ...piece, delta: { type: "input_json_delta", partial_json: nested(20_000) } };
    const { messages, outcome } = decodeText(sse(`${start},"input":{}}}`, json, stop, ...ends), {
      wire: anthropicMessages,
    });
    expect(outcome.status).toBe("completed");
    expect(complete(messages).map(toLine).join("")).toContain('"name":"n","input":{}');
  });

  test("a path of streamed arguments that goes too deep is an error, and its call never runs", () => {
    const partialArgs = [{ jsonPath: `$${".a".repeat(20_000)}`, boolValue: true }];
    const parts = [{ functionCall: { name: "f", partialArgs } }];
    const { messages, outcome } = decodeText(sse({ candidates: [{ content: { parts }, finishReason: "STOP" }] }), {
      wire: gemini,
    });
    expect(outcome.status).toBe("malformed");
    expect(complete(messages).map(({ payload }) => payload)).toMatchObject([{ stop_reason: "malformed" }]);
  });
});
