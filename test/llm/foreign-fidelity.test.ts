// What one protocol's provider signed is nothing to another protocol, also where the model keeps its provider and name:
// a person may change only the protocol in the configuration, and a Trace may come from somewhere else.

import { describe, expect, test } from "vitest";
import { type ModelSpec, modelName, originMark, type Protocol } from "../../src/llm/model-spec.js";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import { gemini } from "../../src/llm/wire/gemini.js";
import { openaiChat } from "../../src/llm/wire/openai-chat.js";
import { openaiResponses } from "../../src/llm/wire/openai-responses.js";
import type { Wire } from "../../src/llm/wire/wire.js";
import {
  assistantText,
  inlineData,
  thinking,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import type { Fidelity } from "../../src/protocol/payloads.js";
import { AT, llmRequest, modelSpec } from "./support.js";

const WIRES = {
  "anthropic-messages": anthropicMessages,
  "openai-chat": openaiChat,
  "openai-responses": openaiResponses,
  gemini,
} satisfies Partial<Record<Protocol, Wire>>;
type Spoken = keyof typeof WIRES;
const PROTOCOLS = Object.keys(WIRES) as Spoken[];

/** Everything that each decoder keeps, with `THEIRS` wherever a provider's own data stands. */
const KEPT: Record<Spoken, { thoughts: Fidelity[]; call: Fidelity; text: Fidelity }> = {
  "anthropic-messages": {
    thoughts: [
      { signature: "THEIRS==" },
      { redacted_thinking: "THEIRS" },
      { blocks_before: [{ type: "server_tool_use", id: "THEIRS", name: "web_search", input: {} }] },
    ],
    call: { provider_call_id: "THEIRS" },
    text: { citations: [{ cited_text: "THEIRS" }] },
  },
  "openai-chat": {
    thoughts: [
      { reasoning_field: "reasoning_content" },
      { reasoning_field: "reasoning", reasoning_details: [{ type: "reasoning.encrypted", data: "THEIRS" }] },
    ],
    call: { provider_call_id: "THEIRS", extra_content: { google: { thought_signature: "THEIRS" } } },
    text: {},
  },
  "openai-responses": {
    thoughts: [
      { id: "rs_THEIRS", summary: [], encrypted_content: "THEIRS" },
      { id: "rs_THEIRS", summary: [], signature: "THEIRS" },
      { before: [{ type: "web_search_call", id: "THEIRS" }], encrypted_content: "THEIRS" },
    ],
    call: { provider_call_id: "THEIRS" },
    text: { phase: "THEIRS" },
  },
  gemini: {
    thoughts: [{ thought_signature: "THEIRS" }, { part: { executableCode: { code: "THEIRS" } } }, {}],
    call: { provider_call_id: null, thought_signature: "THEIRS" },
    text: { thought_signature: "THEIRS" },
  },
};

function history(kept: Spoken, from: string | undefined, callId: boolean): CompleteMessage[] {
  const { thoughts, call, text } = KEPT[kept];
  const marked = (fidelity: Fidelity) => ({ fidelity: from === undefined ? fidelity : { ...fidelity, from } });
  const { provider_call_id, ...rest } = call;
  return [
    userText(AT, "go"),
    ...thoughts.map((fidelity) => thinking(AT, "THEIR THOUGHT", marked(fidelity))),
    assistantText(AT, "so", marked(text)),
    inlineData(AT, { role: "assistant", mime_type: "image/png", data: "AAAA", ...marked({}) }),
    toolCall(AT, { name: "f", arguments: "{}", tool_call_id: "a", ...marked(callId ? call : rest) }),
    toolCallOutput(AT, { output: "out", tool_call_id: "a" }),
  ];
}

const bodyOf = (messages: CompleteMessage[], model: ModelSpec): string =>
  WIRES[model.protocol as Spoken].encode(llmRequest({ messages }), model).body;

describe.each(PROTOCOLS)("a model that is spoken to by %s now", (protocol) => {
  const others = PROTOCOLS.filter((other) => other !== protocol);
  const models = ["one", "claude-sonnet-4-5", "gpt-5", "gemini-3-pro-preview"].flatMap((modelId) =>
    ["acme", "openrouter"].map((provider) => modelSpec({ protocol, provider, modelId })),
  );

  test.each(others)("gets nothing that it gave while it was spoken to by %s", (earlier) => {
    for (const model of models) {
      const body = bodyOf(history(earlier, originMark({ ...model, protocol: earlier }), true), model);
      expect(body).not.toMatch(/THEIR/);
    }
  });

  test.each(others)("gets nothing of a Trace from before marks told the protocol, where it shows %s", (earlier) => {
    for (const model of models) {
      for (const from of [modelName(model), undefined]) {
        // An id alone does not show whose it is, and does no harm.
        expect(bodyOf(history(earlier, from, false), model)).not.toMatch(/THEIR/);
      }
    }
  });

  test("gets its own back, whether the mark tells the protocol or not", () => {
    const model = modelSpec({ protocol, modelId: protocol === "anthropic-messages" ? "claude-sonnet-4-5" : "one" });
    const body = bodyOf(history(protocol, originMark(model), true), model);
    expect(body).toMatch(/THEIRS/);
    expect(bodyOf(history(protocol, modelName(model), true), model)).toBe(body);
  });
});

test("a signature of the Messages protocol is no reasoning item of the Responses protocol", () => {
  const model = modelSpec({ protocol: "openai-responses" });
  const signed = (from: string) => [
    userText(AT, "go"),
    thinking(AT, "TH", { fidelity: { signature: "SIG==", from } }),
    assistantText(AT, "ok"),
  ];
  for (const from of ["acme/one", "anthropic-messages acme/one", "openai-responses acme/one"]) {
    expect(bodyOf(signed(from), model)).not.toMatch(/SIG|"reasoning","summary"/);
  }
});

test("reasoning of another protocol is no thinking block for a model that signs nothing", () => {
  const model = modelSpec({ protocol: "anthropic-messages", modelId: "glm-4.6" });
  for (const fidelity of [
    { reasoning_field: "reasoning_content", from: "acme/glm-4.6" },
    { id: "rs_1", summary: [], from: "acme/glm-4.6" },
    { from: "acme/glm-4.6" },
    { reasoning_field: "reasoning_content", from: "openai-chat acme/glm-4.6" },
    {},
  ]) {
    const messages = [userText(AT, "go"), thinking(AT, "TH", { fidelity }), assistantText(AT, "ok"), userText(AT, "?")];
    expect(bodyOf(messages, model)).not.toMatch(/TH|thinking/);
  }
});
