import { describe, expect, test } from "vitest";
import { failure } from "../../src/llm/outcome.js";
import { anthropicMessages } from "../../src/llm/wire/anthropic-messages.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { complete, type DecodeOptions, decodeText, llmRequest, modelSpec, segmentsOf, sse } from "./support.js";

const decode = (events: (object | string)[], options: DecodeOptions = {}) =>
  decodeText(sse(...events), { wire: anthropicMessages, ...options });
const text = (body: string) => decodeText(body, { wire: anthropicMessages });

const start = { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } };
const open = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
const delta = (index: number, inner: object) => ({ type: "content_block_delta", index, delta: inner });
const words = (index: number, said: string) => delta(index, { type: "text_delta", text: said });
const json = (index: number, partial_json: string) => delta(index, { type: "input_json_delta", partial_json });
const close = (index: number) => ({ type: "content_block_stop", index });
const ending = (stop_reason: string | null) => ({ type: "message_delta", delta: { stop_reason }, usage: {} });
const stop = { type: "message_stop" };
const call = (id: string, name = "f") => ({ type: "tool_use", id, name, input: {} });
const TEXT = { type: "text", text: "" };

const stops = (messages: OmniMessage[]) =>
  complete(messages).map(({ payload }) => (payload as { stop_reason?: string }).stop_reason);

describe("endings", () => {
  test.each(["max_tokens", "model_context_window_exceeded"])("%s is completed and truncated", (reason) => {
    const { outcome } = decode([start, open(0, TEXT), words(0, "a"), close(0), ending(reason), stop]);
    expect(outcome).toMatchObject({ status: "completed", truncated: true, finishReason: reason });
  });

  test("a refusal after visible text is completed, and not truncated", () => {
    const { outcome } = decode([start, open(0, TEXT), words(0, "a"), close(0), ending("refusal"), stop]);
    expect(outcome).toMatchObject({ status: "completed", finishReason: "refusal" });
    expect(outcome.truncated).toBeUndefined();
  });

  test("an answer that is empty and ended well is completed with nothing", () => {
    const { messages, outcome } = decode([start, open(0, TEXT), close(0), ending("end_turn"), stop]);
    expect(messages).toEqual([]);
    expect(outcome.status).toBe("completed");
  });

  test("a connection lost after message_stop lost nothing; before, it is the reason", () => {
    const lost = failure("network", "reset");
    expect(decode([start, ending("end_turn"), stop], { lost }).outcome.status).toBe("completed");
    expect(decode([start, ending("end_turn")], { lost }).outcome).toMatchObject({ error: { kind: "network" } });
  });

  test("an end without a stop reason is complete, unless it fell within a call", () => {
    expect(decode([start, open(0, TEXT), words(0, "a"), close(0), stop]).outcome.status).toBe("completed");
    expect(decode([start, open(0, call("a")), json(0, '{"x'), stop]).outcome.status).toBe("malformed");
  });

  test("an event that is not JSON is malformed and what was open is closed as such", () => {
    const { messages, outcome } = decode([
      start,
      open(0, TEXT),
      words(0, "a"),
      "{broken",
      close(0),
      ending("end_turn"),
    ]);
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("a start that is only repeated before anything came is no second answer", () => {
    expect(decode([start, start, open(0, TEXT), words(0, "a"), stop]).outcome.status).toBe("completed");
  });
});

describe("F16: errors under HTTP 200", () => {
  test.each([
    ["overloaded_error", "timeout", "overloaded"],
    ["api_error", "timeout", "timeout"],
    ["timeout_error", "timeout", "timeout"],
    ["rate_limit_error", "timeout", "rate_limit"],
    ["authentication_error", "failed", "auth"],
    ["permission_error", "failed", "auth"],
    ["invalid_request_error", "failed", "invalid_request"],
    ["not_found_error", "failed", "invalid_request"],
    ["request_too_large", "failed", "invalid_request"],
    ["billing_error", "failed", "invalid_request"],
  ])("%s is %s, %s, first, in the middle and behind the stop reason", (type, status, kind) => {
    const error = { type: "error", error: { type, message: "no" } };
    for (const events of [
      [error],
      [start, open(0, TEXT), words(0, "a"), error],
      [start, open(0, TEXT), words(0, "a"), close(0), ending("end_turn"), error, stop],
    ]) {
      expect(decode(events).outcome).toMatchObject({ status, error: { kind, message: "no" } });
    }
  });

  test("a JSON body, a list of one, a bare explanation and an event that is only named so are errors", () => {
    const body = { type: "error", error: { type: "overloaded_error", message: "busy" } };
    for (const answer of [JSON.stringify(body), JSON.stringify([body]), "event: error\ndata: overloaded\n\n"]) {
      expect(text(answer).outcome).toMatchObject({ status: "timeout", error: { kind: "overloaded" } });
    }
    expect(text('{"detail":"no such route"}').outcome).toMatchObject({ error: { message: "no such route" } });
  });

  test("a prompt that is too long says so", () => {
    const error = { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" };
    expect(decode([{ type: "error", error }]).outcome.error?.kind).toBe("context_overflow");
  });
});

describe("servers that bend the protocol", () => {
  test("an answer in one piece is read like a stream", () => {
    const message = {
      type: "message",
      content: [
        { type: "thinking", thinking: "hm", signature: "U2ln" },
        { type: "text", text: "hi" },
        { type: "tool_use", id: "a", name: "f", input: { x: 1 } },
      ],
      stop_reason: "tool_use",
      usage: { input_tokens: 3, output_tokens: 2 },
    };
    const { messages, outcome } = text(JSON.stringify(message));
    expect(segmentsOf(messages)).toEqual([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "hi" },
      { type: "tool_call", id: "a", name: "f", arguments: '{"x":1}' },
    ]);
    expect(outcome).toMatchObject({ status: "completed", finishReason: "tool_use", usage: { total: 5 } });
  });

  test("blocks without a stop, on one index, or without any index keep apart", () => {
    const both = [
      { type: "text", text: "a" },
      { type: "tool_call", id: "t", name: "f", arguments: '{"x":1}' },
    ];
    const unstopped = [open(0, TEXT), words(0, "a"), open(1, call("t")), json(1, '{"x":1}')];
    const reused = [open(0, TEXT), words(0, "a"), open(0, call("t")), json(0, '{"x":1}')];
    const bare = unstopped.map(({ index: _index, ...event }) => event);
    for (const events of [unstopped, reused, bare]) {
      const { messages, outcome } = decode([start, ...events, ending("tool_use"), stop]);
      expect(segmentsOf(messages)).toEqual(both);
      expect(stops(messages)).toEqual([undefined, undefined]);
      expect(outcome.status).toBe("completed");
    }
  });

  test("words for a block that never started or is over are kept; arguments are a fault", () => {
    const { messages } = decode([start, words(0, "a"), close(0), words(0, "b"), ending("end_turn"), stop]);
    expect(segmentsOf(messages)).toEqual([
      { type: "text", text: "a" },
      { type: "text", text: "b" },
    ]);
    expect(decode([start, json(0, "{}"), ending("tool_use"), stop]).outcome.status).toBe("malformed");
    const after = [open(0, call("a")), json(0, "{}"), close(0), json(0, '{"x":1}')];
    expect(decode([start, ...after, ending("tool_use"), stop]).outcome.status).toBe("malformed");
  });

  test("a block that leaves nothing hands on what rode in front of it", () => {
    const events = [open(0, { type: "fallback" }), close(0), open(1, TEXT), close(1), open(2, call("a")), close(2)];
    const { messages } = decode([start, ...events, ending("tool_use"), stop]);
    expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
      { type: "tool_call", fidelity: { blocks_before: [{ type: "fallback" }] } },
    ]);
  });

  test("a call without a name is a call all the same, for its output to say so", () => {
    const { messages, outcome } = decode([start, open(0, call("a", "")), close(0), ending("tool_use"), stop]);
    expect(messages.at(-1)?.payload).toMatchObject({ type: "tool_call", name: "" });
    expect(outcome.status).toBe("completed");
  });

  test("arguments that are whole and no object are the model's fault, not a cut; with a limit they are a cut", () => {
    const answer = (reason: string) =>
      decode([start, open(0, call("a")), json(0, '{"x'), close(0), ending(reason), stop]);
    expect(stops(answer("tool_use").messages)).toEqual([undefined]);
    expect(stops(answer("max_tokens").messages)).toEqual(["malformed"]);
  });

  test("a call that a limit cut before its first argument is malformed; one that ended is a call without any", () => {
    const cut = decode([start, open(0, call("a")), close(0), open(1, call("b")), ending("max_tokens"), stop]);
    expect(stops(cut.messages)).toEqual([undefined, "malformed"]);
    const whole = decode([start, open(0, call("a")), ending("tool_use"), stop]);
    expect(stops(whole.messages)).toEqual([undefined]);
  });

  test("a tool whose name the protocol does not take comes back under its own", () => {
    const tools = ["mcp.files/read", "other"];
    const body = JSON.parse(
      anthropicMessages.encode(
        llmRequest({ tools: tools.map((name) => ({ name, description: "" })) }),
        modelSpec({ protocol: "anthropic-messages", modelId: "claude-sonnet-4-5" }),
      ).body,
    );
    const sent = body.tools.map(({ name }: { name: string }) => name);
    expect(sent[0]).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    const { messages } = decode([start, open(0, call("a", sent[0])), close(0), ending("tool_use"), stop], {
      toolNames: tools,
    });
    expect(segmentsOf(messages)[0]?.name).toBe("mcp.files/read");
  });

  test("an id that the Session knows is replaced, and the provider's own kept for sending back", () => {
    const { messages } = decode([start, open(0, call("a")), close(0), ending("tool_use"), stop], {
      isTaken: (id) => id === "a",
    });
    const [only] = complete(messages);
    expect(only?.payload).toMatchObject({ fidelity: { provider_call_id: "a" } });
    expect(segmentsOf(messages)[0]?.id).not.toBe("a");
  });
});
