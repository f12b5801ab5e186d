// A Request that no provider would take is not written and not sent, and the Session finds a way out of it.

import { expect, test } from "vitest";
import { assistantText, userText } from "../../src/protocol/builders.js";
import { AT } from "../support/messages.js";
import { ManualClock } from "./manual-clock.js";
import { delta, sse } from "./support.js";
import { drain, start, streamHead, Upstream } from "./upstream.js";

const HUGE = "x".repeat(33 * 1024 * 1024);

test.each([
  [
    "of a conversation is a context that is too long",
    [userText(AT, HUGE), assistantText(AT, "so"), userText(AT, HUGE)],
    "context_overflow",
  ],
  ["of input alone is input that is refused", [userText(AT, HUGE), userText(AT, HUGE)], "invalid_request"],
] as const)("64 Mi characters %s, and nothing is sent", async (_, messages, kind) => {
  let calls = 0;
  const upstream = await Upstream.start(() => {
    calls += 1;
  });
  const { outcome } = await drain(start(upstream, new ManualClock(), {}, { messages: [...messages] }).stream);
  expect(outcome).toMatchObject({
    status: "failed",
    error: { kind, message: expect.stringContaining("limit 67108864") },
  });
  expect(calls).toBe(0);
});

test("half of it is sent", async () => {
  const upstream = await Upstream.start((response) => {
    response.writeHead(200, streamHead);
    response.end(sse(delta({ content: "ok" })) + sse(delta({}, "stop"), "[DONE]"));
  });
  const { outcome } = await drain(start(upstream, new ManualClock(), {}, { messages: [userText(AT, HUGE)] }).stream);
  expect(outcome.status).toBe("completed");
});
