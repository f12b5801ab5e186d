// Providers that say all they have to say and leave the socket open. The answer is complete at its protocol's end mark;
// what may still follow (token numbers, an error) gets a moment, and nothing that is no word of the provider's prolongs it.

import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { createLLMClient } from "../../src/llm/client.js";
import type { Protocol } from "../../src/llm/model-spec.js";
import { chunk } from "./gemini-support.js";
import { ManualClock } from "./manual-clock.js";
import { completed, message } from "./openai-responses-support.js";
import { delta, expectDiscipline, llmRequest, modelSpec, segmentsOf, sse } from "./support.js";
import { drain, streamHead, Upstream } from "./upstream.js";

const SILENCE_MS = 60_000;
const WORD_MS = 500;
const USAGE_MS = 5000;

/** An answer that begins with `first` and whose socket stays open. */
async function open(protocol: Protocol, ...first: object[]) {
  const clock = new ManualClock();
  let socket: ServerResponse | undefined;
  const upstream = await Upstream.start((response) => {
    socket = response;
    response.writeHead(200, streamHead).write(sse(...first));
  });
  const model = modelSpec({ protocol, baseUrl: upstream.baseUrl });
  const deps = { clock, newId: () => "id", requestTimeoutMs: SILENCE_MS, demoDelayMs: 0 };
  let isOver = false;
  const answer = drain(createLLMClient(model, deps).stream(llmRequest())).finally(() => {
    isOver = true;
  });
  // The wait for the next bytes, and the one for the body's end.
  await clock.waiting(2);
  return {
    clock,
    answer,
    isOver: () => isOver,
    /** Sends more, and returns when it was read. */
    send: async (text: string) => {
      const before = clock.looks;
      socket?.write(text);
      // One wait has ended, and the next begun.
      await clock.looked(before + 2);
    },
  };
}

const USAGE = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const COUNTS = { promptTokenCount: 3, candidatesTokenCount: 2, totalTokenCount: 5 };
const said = [delta({ content: "ok" }), delta({}, "stop")];
const COUNTED = { status: "completed", usage: { output: 2, total: 5 } };

describe("an answer that is complete while its socket stays open", () => {
  test.each<[Protocol, object[]]>([
    ["openai-chat", [...said, { choices: [], usage: USAGE }]],
    ["openai-chat", [delta({ content: "ok" }), { ...delta({}, "stop"), usage: USAGE }]],
    [
      "gemini",
      [chunk([{ text: "o" }]), { ...chunk([{ text: "k" }], { finishReason: "STOP" }), usageMetadata: COUNTS }],
    ],
    ["openai-responses", [completed([message("ok")], { usage: { input_tokens: 3, output_tokens: 2 } })]],
  ])("by %s ends a moment after its end mark and its numbers, whatever comments come", async (protocol, events) => {
    const { clock, answer, send } = await open(protocol, ...events);
    for (let n = 0; n < 4; n++) {
      clock.advance(WORD_MS / 5);
      await send(": ping\n\n");
    }
    clock.advance(WORD_MS / 5);
    const { messages, outcome } = await answer;
    expectDiscipline(messages);
    expect(segmentsOf(messages)).toEqual([{ type: "text", text: "ok" }]);
    expect(outcome).toMatchObject(COUNTED);
    expect(clock.now()).toBe(WORD_MS);
  });

  test("waits longer for numbers that have not come, and takes them", async () => {
    const { clock, answer, send, isOver } = await open("openai-chat", ...said);
    clock.advance(USAGE_MS - 1);
    expect(isOver()).toBe(false);
    await send(sse({ choices: [], usage: USAGE }));
    await clock.waiting(2);
    clock.advance(WORD_MS);
    expect((await answer).outcome).toMatchObject(COUNTED);
  });

  test.each<[Protocol, object[]]>([
    ["openai-chat", said],
    ["gemini", [chunk([{ text: "ok" }], { finishReason: "MAX_TOKENS" })]],
  ])("by %s ends without numbers where none come", async (protocol, events) => {
    const { clock, answer } = await open(protocol, ...events);
    clock.advance(USAGE_MS);
    expect((await answer).outcome).toMatchObject({ status: "completed", usage: { total: 0 } });
  });

  test.each<[Protocol, object]>([
    ["openai-chat", { error: { code: 503, message: "busy" } }],
    ["openai-responses", { type: "error", code: "server_error", message: "busy" }],
  ])("by %s ends as failed after an error that nothing follows", async (protocol, error) => {
    const { clock, answer } = await open(protocol, error);
    clock.advance(USAGE_MS);
    expect((await answer).outcome).toMatchObject({ status: "timeout", error: { message: "busy" } });
  });
});

test.each<[Protocol, (text: string) => object]>([
  ["openai-chat", (content) => delta({ content }, "stop")],
  ["gemini", (text) => ({ ...chunk([{ text }], { finishReason: "STOP" }), usageMetadata: COUNTS })],
])("a server of %s that ends every event with the end mark is read to its body's end", async (protocol, event) => {
  const { clock, answer, send, isOver } = await open(protocol, event("a"));
  await send(sse(event("b")));
  clock.advance(USAGE_MS);
  expect(isOver()).toBe(false);
  await send(sse(event("c")));
  clock.advance(SILENCE_MS);
  expect(segmentsOf((await answer).messages)).toEqual([{ type: "text", text: "abc" }]);
});

test("a STOP without numbers, as old Vertex servers put on every chunk, ends nothing", async () => {
  const clock = new ManualClock();
  const upstream = await Upstream.start((response) => {
    response.writeHead(200, streamHead).flushHeaders();
    // The wait for the headers has ended, and so has, later, the one for the first event: another lasts each time.
    void clock
      .looked(3)
      .then(() => response.write(sse(chunk([{ text: "a" }], { finishReason: "STOP" }))))
      .then(() => clock.looked(5))
      .then(() => {
        clock.advance(USAGE_MS);
        response.end(sse(chunk([{ text: "b" }], { finishReason: "STOP" })));
      });
  });
  const model = modelSpec({ protocol: "gemini", baseUrl: upstream.baseUrl });
  const deps = { clock, newId: () => "id", requestTimeoutMs: SILENCE_MS, demoDelayMs: 0 };
  const { messages, outcome } = await drain(createLLMClient(model, deps).stream(llmRequest()));
  expect(outcome.status).toBe("completed");
  expect(segmentsOf(messages)).toEqual([{ type: "text", text: "ab" }]);
});
