// The word for how an answer ended is the provider's own text, and goes on record.

import { expect, test } from "vitest";
import type { Protocol } from "../../src/llm/model-spec.js";
import { sse } from "./support.js";
import { exchange, streamHead } from "./upstream.js";

const KEY = "sk-secret";

const answers: [Protocol, (word: string) => string][] = [
  ["openai-chat", (word) => sse({ choices: [{ index: 0, delta: { content: "hi" }, finish_reason: word }] }, "[DONE]")],
  [
    "anthropic-messages",
    (word) =>
      sse(
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "hi" } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: word } },
        { type: "message_stop" },
      ),
  ],
  [
    "openai-responses",
    (word) =>
      sse({ type: "response.incomplete", response: { status: "incomplete", incomplete_details: { reason: word } } }),
  ],
  ["gemini", (word) => sse({ candidates: [{ content: { parts: [{ text: "hi" }] }, finishReason: word }] })],
];

test.each(answers)("%s: it is told without the key, and cut", async (protocol, answer) => {
  const finish = async (word: string) => {
    const { outcome } = await exchange((response) => response.writeHead(200, streamHead).end(answer(word)), {
      protocol,
    });
    return outcome.finishReason;
  };
  expect(await finish(`refused ${KEY} now`)).toBe("refused *** now");
  const long = await finish(`${KEY}${"x".repeat(10_000)}`);
  expect(long).toMatch(/^\*\*\*x+…$/);
  expect(long?.length).toBe(101);
});
