// The whole way: a request over a socket, and the answer back.

import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { segmentsOf } from "./support.js";
import { exchange, streamHead } from "./upstream.js";

const stream = (name: string): Buffer =>
  readFileSync(new URL(`../fixtures/anthropic-messages/${name}.sse`, import.meta.url));
const model = { protocol: "anthropic-messages", modelId: "claude-sonnet-4-5" } as const;

test("a Request goes out as one and its answer comes back as segments and an outcome", async () => {
  const { upstream, messages, outcome } = await exchange((response) => {
    response.writeHead(200, streamHead).end(stream("thinking-then-calls"));
  }, model);
  expect(upstream.requests).toMatchObject([
    { path: "/v1/messages", headers: { "x-api-key": "sk-secret", "anthropic-version": "2023-06-01" } },
  ]);
  expect(segmentsOf(messages).map(({ type }) => type)).toEqual(["thinking", "text", "tool_call", "tool_call"]);
  expect(outcome).toMatchObject({ status: "completed", finishReason: "tool_use" });
});

test("F16: a refused key is told without the key, and an overload with the wait that was asked for", async () => {
  const refusal = (type: string, message: string) => JSON.stringify({ type: "error", error: { type, message } });
  const denied = await exchange((response) => {
    response.writeHead(401).end(refusal("authentication_error", "invalid x-api-key sk-secret"));
  }, model);
  expect(denied.outcome).toMatchObject({ status: "failed", error: { kind: "auth", http_status: 401 } });
  expect(denied.outcome.error?.message).not.toContain("sk-secret");
  const busy = await exchange((response) => {
    response.writeHead(529, { "retry-after": "7" }).end(refusal("overloaded_error", "Overloaded"));
  }, model);
  expect(busy.outcome).toMatchObject({ status: "timeout", error: { kind: "overloaded" }, retryAfterMs: 7000 });
});

test("F15: a socket that is cut before message_stop leaves nothing complete but what had ended", async () => {
  const { messages, outcome } = await exchange((response) => {
    const bytes = stream("call-cut-by-limit");
    response.writeHead(200, streamHead).write(bytes.subarray(0, bytes.indexOf("message_delta")), () => {
      response.destroy();
    });
  }, model);
  expect(outcome).toMatchObject({ status: "timeout", error: { kind: "network" } });
  expect(segmentsOf(messages).at(-1)).toMatchObject({ id: "toolu_b" });
});
