// The Responses protocol through the whole server: what a provider gave is stored, read again by another process, and
// goes back byte for byte in the place that it came from.

import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { expectRules, type Item } from "../llm/openai-responses-rules.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { type Script, startUpstream, type Upstream } from "../support/upstream.js";
import { at, expectLawful, makeSession, payloads } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const RESPONSES = { protocol: "openai-responses", thinking: true };
const stream = (name: string): Script => ({
  steps: [readFileSync(new URL(`../fixtures/openai-responses/${name}.sse`, import.meta.url))],
});
const answer = (text: string): Script => ({
  steps: [
    { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: text },
    { type: "response.completed", response: { status: "completed", output: [] } },
  ],
});

async function play(server: Server, id: string, input: string) {
  const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input } });
  await reader.ended;
  return reader.messages;
}

/** The input of a request, which keeps the protocol's rules. */
function inputOf(upstream: Upstream, number: number): Item[] {
  const { input } = JSON.parse(upstream.requests[number]?.raw ?? "{}") as { input: Item[] };
  expectRules(input);
  return input;
}

const text = (role: string, text: string, more: object = {}): object =>
  role === "user"
    ? { type: "message", role, content: [{ type: "input_text", text }] }
    : { type: "message", role, content: [{ type: "output_text", text, annotations: [] }], ...more };

test("F5: reasoning, phases and what a hosted tool did go back byte for byte after a restart", async () => {
  const upstream = await startUpstream();
  // A router hands on what many providers give, reasoning that is signed in the clear among it.
  const provider = "openrouter";
  const config = { ...upstream.config({ ...RESPONSES, provider }), defaultModel: { provider, modelId: "m" } };
  const server = await startOmnid({ config });
  const id = await makeSession(server);
  upstream.script(stream("summaries"), stream("hosted-between"), stream("phases"), stream("raw-reasoning-ends-late"));
  for (const input of ["one", "two", "three", "four"]) await play(server, id, input);
  await server.stop("SIGTERM");
  upstream.script(answer("five"));
  await play(await server.restart(), id, "five");

  const retold = ["**One**", "Two."].map((text) => ({ type: "summary_text", text }));
  const thoughts = [{ type: "reasoning_text", text: "Let me see." }];
  expect(inputOf(upstream, 4)).toEqual([
    text("user", "one"),
    { type: "reasoning", id: "rs_1", summary: retold, encrypted_content: "second+/=" },
    text("assistant", "ok"),
    text("user", "two"),
    { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "AA==" },
    { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
    { type: "reasoning", id: "rs_2", summary: [], encrypted_content: "BB==" },
    text("assistant", "hit"),
    text("user", "three"),
    text("assistant", "Looking.", { phase: "commentary" }),
    text("assistant", "Found.", { phase: "final_answer" }),
    text("user", "four"),
    { type: "reasoning", id: "rs_1", summary: [], signature: "S+/=", content: thoughts },
    text("assistant", "42"),
    text("user", "five"),
  ]);
  // Every request begins with the bytes of the one before, so that the provider's cache holds.
  upstream.requests.slice(1).forEach(({ raw }, n) => {
    expect(raw.startsWith(upstream.requests[n]?.raw.slice(0, -2) as string)).toBe(true);
  });
});

test("F1: a call that the output limit cut is not run, and goes back paired like the whole one", async () => {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(RESPONSES) });
  const id = await makeSession(server, { approvalMode: "allow-all" });
  upstream.script(stream("call-cut-by-limit"), answer("done"));
  const messages = await play(server, id, "go");
  await expectLawful(server, id, messages);
  expect(payloads(messages, "request_end")[0]).toMatchObject({
    ...{ status: "completed", truncated: true, finish_reason: "max_output_tokens" },
  });
  expect(payloads(messages, "approval_decision").map(({ tool_call_id }) => tool_call_id)).toEqual(["a1"]);
  expect(inputOf(upstream, 1).map(({ type, call_id }) => [type, call_id])).toEqual([
    ["message", undefined],
    ["function_call", "a1"],
    ["function_call", "b2"],
    ["function_call_output", "a1"],
    ["function_call_output", "b2"],
  ]);
});
