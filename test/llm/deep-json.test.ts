// JSON that nests deeper than it can be written: every wire lets it in somewhere, and no Session may end of it.

import { describe, expect, test } from "vitest";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { gemini } from "../../src/llm/wire/gemini.js";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import { toolCall, toolCallOutput, userText } from "../../src/protocol/builders.js";
import { AT, llmRequest, modelSpec, protocolOf } from "./support.js";

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
