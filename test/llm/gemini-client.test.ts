// The whole way over a socket: what was answered, what is sent next, and what a refusal comes to.

import { readFileSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createLLMClient } from "../../src/llm/client.js";
import { toolCallOutput, userText } from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import type { ToolDefinition } from "../../src/protocol/payloads.js";
import { chunk, fromTrace } from "./gemini-support.js";
import { ManualClock } from "./manual-clock.js";
import { AT, expectDiscipline, llmRequest, modelSpec, sse } from "./support.js";
import { drain, SILENCE_MS, streamHead, Upstream } from "./upstream.js";

const KEY = "AIzaSy-secret-key";

/** A client of one upstream; each call is one Request. */
async function talk(answer: (response: ServerResponse, request: IncomingMessage) => void) {
  const upstream = await Upstream.start(answer);
  let n = 0;
  const model = modelSpec({ protocol: "gemini", baseUrl: upstream.baseUrl, apiKey: KEY, modelId: "gemini-2.5-pro" });
  const deps = { clock: new ManualClock(), newId: () => `id${++n}`, requestTimeoutMs: SILENCE_MS, demoDelayMs: 0 };
  const client = createLLMClient(model, deps);
  const ask = async (messages: CompleteMessage[], tools: ToolDefinition[] = []) => {
    const answered = await drain(client.stream(llmRequest({ messages, tools })));
    expectDiscipline(answered.messages);
    return answered;
  };
  return { upstream, ask };
}

const stream = (name: string) => readFileSync(new URL(`../fixtures/gemini/${name}.sse`, import.meta.url));

describe("over a socket", () => {
  test("F8: the next Request brings the signature back in its call's part, and the response behind it", async () => {
    const { upstream, ask } = await talk((response) => {
      response.writeHead(200, streamHead).end(stream("think-then-text-then-call"));
    });
    const prompt = userText(AT, "what is up?");
    const { messages } = await ask([prompt]);
    const said = fromTrace(messages);
    const id = said.map(({ payload }) => (payload.type === "tool_call" ? payload.tool_call_id : "")).join("");
    await ask([prompt, ...said, toolCallOutput(AT, { output: "blue", tool_call_id: id })]);
    const [first, second] = upstream.requests;
    expect(first).toMatchObject({
      path: "/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
      headers: { "x-goog-api-key": KEY },
    });
    expect(second?.body).toContain(
      '{"functionCall":{"name":"look","args":{"at":"sky"}},"thoughtSignature":"c2lnMQ=="}]},' +
        '{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"blue"}}}]}',
    );
    expect(second?.body).not.toContain("Let me see");
  });

  test("a tool whose name the protocol refuses is declared by another and called by its own", async () => {
    const own = "mcp__a b__search";
    const { upstream, ask } = await talk((response) => {
      const { tools } = JSON.parse(upstream.requests.at(-1)?.body ?? "");
      const [{ name }] = tools[0].functionDeclarations;
      response.writeHead(200, streamHead).end(sse(chunk([{ functionCall: { name } }], { finishReason: "STOP" })));
    });
    const { messages } = await ask([userText(AT, "go")], [{ name: own, description: "S" }]);
    expect(upstream.requests[0]?.body).not.toContain(own);
    expect(messages.at(-1)?.payload).toMatchObject({ type: "tool_call", name: own });
  });

  test("a bad key is an auth error though its status is 400, and no key is in what is told", async () => {
    const details = [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "API_KEY_INVALID" }];
    const error = { code: 400, message: `API key ${KEY} not valid.`, status: "INVALID_ARGUMENT", details };
    const { ask } = await talk((response) => {
      response.writeHead(400, { "content-type": "application/json" }).end(JSON.stringify({ error }));
    });
    const { outcome } = await ask([userText(AT, "go")]);
    expect(outcome).toMatchObject({ status: "failed", error: { kind: "auth", http_status: 400 } });
    expect(outcome.error?.message).toBe("API key *** not valid.");
  });

  test("F17: the wait that a 429 asks for stands in its body", async () => {
    const error = { code: 429, status: "RESOURCE_EXHAUSTED", message: "quota", details: [{ retryDelay: "37s" }] };
    const { ask } = await talk((response) => {
      response.writeHead(429, { "content-type": "application/json" }).end(JSON.stringify([{ error }]));
    });
    const { outcome } = await ask([userText(AT, "go")]);
    expect(outcome).toMatchObject({ status: "timeout", retryAfterMs: 37_000, error: { kind: "rate_limit" } });
  });

  test("F15: a socket that is cut before the finishReason is a network error, after it no matter", async () => {
    const cut = (parts: object) => (response: ServerResponse) => {
      response.writeHead(200, streamHead);
      response.write(sse(parts), () => response.destroy());
    };
    const before = await talk(cut(chunk([{ text: "a" }])));
    expect((await before.ask([userText(AT, "go")])).outcome).toMatchObject({ error: { kind: "network" } });
    const after = await talk(cut(chunk([{ text: "a" }], { finishReason: "STOP" })));
    expect((await after.ask([userText(AT, "go")])).outcome).toMatchObject({ status: "completed" });
  });
});
