import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import type { LLMOutcome, LLMRequest } from "../../src/engine/ports.js";
import { createLLMClient, speaks } from "../../src/llm/client.js";
import { assistantText, toolCall, toolCallOutput, userText } from "../../src/protocol/builders.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { CompleteMessage, OmniMessage } from "../../src/protocol/message.js";
import type { ToolCallOutputPayload } from "../../src/protocol/payloads.js";
import { ManualClock } from "./manual-clock.js";
import { AT, complete, expectDiscipline, llmRequest, modelSpec, segmentsOf } from "./support.js";

const tools = ["exec_command", "read_file", "write_file", "run_subagent"].map((name) => ({ name, description: name }));

const client = (demoDelayMs = 0, clock = systemClock()) =>
  createLLMClient(modelSpec({ provider: "demo", modelId: "demo", protocol: "demo", baseUrl: "" }), {
    clock,
    newId: () => "fresh",
    requestTimeoutMs: 1000,
    demoDelayMs,
  });

async function ask(messages: CompleteMessage[], changes: Partial<LLMRequest> = {}) {
  const stream = client().stream(llmRequest({ messages, tools, ...changes }));
  const said: OmniMessage[] = [];
  for (;;) {
    const step = await stream.next();
    if (step.done === true) {
      expectDiscipline(said);
      return { messages: said, segments: segmentsOf(said), outcome: step.value as LLMOutcome };
    }
    said.push(...step.value);
  }
}

const prompt = (text: string, changes?: Partial<LLMRequest>) => ask([userText(AT, text)], changes);
const textOf = (segments: Record<string, string>[]) => segments.find(({ type }) => type === "text")?.text ?? "";

describe("a prompt", () => {
  test.each([
    ["/run ls -la && date", [{ name: "exec_command", arguments: { cmd: "ls -la && date" } }]],
    ["/read src/a.ts", [{ name: "read_file", arguments: { file_path: "src/a.ts" } }]],
    ["/write a.txt two words", [{ name: "write_file", arguments: { file_path: "a.txt", content: "two words" } }]],
    [
      "/parallel sleep 1 && echo two",
      [
        { name: "exec_command", arguments: { cmd: "sleep 1" } },
        { name: "exec_command", arguments: { cmd: "echo two" } },
      ],
    ],
    ["/subagent /run date", [{ name: "run_subagent", arguments: { prompt: "/run date", description: "/run date" } }]],
  ])("%s thinks, speaks, then calls", async (text, calls) => {
    const { segments, outcome } = await prompt(text);
    expect(segments.map(({ type }) => type)).toEqual(["thinking", "text", ...calls.map(() => "tool_call")]);
    const made = segments.filter(({ type }) => type === "tool_call");
    expect(made.map((each) => ({ name: each.name, arguments: JSON.parse(each.arguments ?? "") }))).toEqual(calls);
    expect(new Set(made.map(({ id }) => id)).size).toBe(calls.length);
    expect(outcome).toMatchObject({ status: "completed", finishReason: "tool_calls" });
  });

  test("/think thinks the text", async () => {
    const { segments } = await prompt("/think about cats");
    expect(segments[0]).toEqual({ type: "thinking", thinking: "about cats" });
    expect(textOf(segments)).toContain("demo");
  });

  test("/fail is a failed Request that the ladder leaves alone", async () => {
    const { outcome } = await prompt("/fail");
    expect(outcome).toMatchObject({ status: "failed", error: { kind: "invalid_request" } });
    expect(outcome.usage.output).toBeGreaterThan(0);
  });

  test("anything else gets an answer that says it is a demo and names every command", async () => {
    for (const text of ["hello", "/nothing", "tell me about /run"]) {
      const { segments, outcome } = await prompt(text);
      for (const word of ["demo", "/run", "/read", "/write", "/think", "/parallel", "/subagent", "/fail"]) {
        expect(textOf(segments)).toContain(word);
      }
      expect(outcome).toMatchObject({ status: "completed", finishReason: "stop" });
    }
  });

  test.each(["/run", "/read", "/write a.txt", "/parallel", "/subagent"])(
    "%s without its arguments calls nothing",
    async (text) => {
      const { segments } = await prompt(text);
      expect(segments.map(({ type }) => type)).toEqual(["text"]);
    },
  );

  test("a tool that is not offered is not called, and the answer says so", async () => {
    const { segments } = await prompt("/subagent x", { tools: [] });
    expect(segments).toEqual([{ type: "text", text: expect.stringContaining("not offered") }]);
  });
});

describe("after the tools", () => {
  const call = toolCall(AT, { name: "exec_command", arguments: '{"cmd":"ls \\"a\\""}', tool_call_id: "c1" });
  const report = async (output: Partial<ToolCallOutputPayload>, ...more: CompleteMessage[]) => {
    const result = toolCallOutput(AT, { output: "", tool_call_id: "c1", ...output });
    return ask([userText(AT, '/run ls "a"'), call, result, ...more]);
  };

  test("the answer reports what ran, its exit code and the beginning of what it printed", async () => {
    const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`).join("\n");
    const { segments } = await report({ output: lines, exit_code: 3 });
    expect(segments).toHaveLength(1);
    expect(textOf(segments)).toMatch(/`ls "a"` ended with exit code 3/);
    expect(textOf(segments)).toContain("line 0");
    expect(textOf(segments)).toContain("28 more lines");
  });

  test.each([
    [{ stop_reason: "aborted", output: "Tool call denied by user.\nnot today" } as const, "was denied"],
    [{ stop_reason: "aborted", output: "[interrupted: tool aborted by user]" } as const, "was interrupted"],
    [{ stop_reason: "failed", output: "no such file" } as const, "failed"],
    [{ stop_reason: "timeout", output: "" } as const, "too long"],
  ])("%j is told as it was", async (output, words) => {
    expect(textOf((await report(output)).segments)).toContain(words);
  });

  test("an output that quotes something itself stays one quotation", async () => {
    const { segments } = await report({ output: "done.\n```\nquoted\n```" });
    expect(textOf(segments)).toContain("\n````\ndone.\n```\nquoted\n```\n````");
  });

  test("a person who steered meanwhile gets the report and then what they asked for", async () => {
    const { segments } = await report({ output: "a", exit_code: 0 }, userText(AT, "/read b.txt"));
    expect(textOf(segments)).toMatch(/exit code 0[\s\S]*Reading `b.txt`/);
    expect(segments.at(-1)).toMatchObject({ type: "tool_call", name: "read_file", id: "call_demo_2" });
  });

  test("what the engine carries over is not taken for a prompt", async () => {
    const retried = userText(AT, "[turn_retried]\n/fail\n[/turn_retried]");
    const { segments } = await ask([userText(AT, "/think of it"), retried]);
    expect(segments[0]).toEqual({ type: "thinking", thinking: "of it" });
  });
});

test("the same context gives the same answer, ids included; a taken id is replaced", async () => {
  const first = await prompt("/run date");
  expect((await prompt("/run date")).segments).toEqual(first.segments);
  const second = await prompt("/run date", { isCallIdTaken: (id) => id === "call_demo_1" });
  expect(second.segments.at(-1)?.id).toBe("call_fresh");
});

test("usage is the size of what was sent and said, and an earlier context is read from the cache", async () => {
  const { outcome, messages } = await prompt("hello");
  const { cache_read, cache_write, output, total } = outcome.usage;
  expect([cache_read, total]).toEqual([0, cache_write + output]);
  const said = complete(messages).at(-1)?.payload;
  const later = await ask([
    userText(AT, "hello"),
    assistantText(AT, said?.type === "text" ? String((said as { text: string }).text) : ""),
    userText(AT, "again"),
  ]);
  expect(later.outcome.usage.cache_read).toBeGreaterThan(0);
  expect(later.outcome.usage.cache_write).toBeLessThan(cache_write);
});

test("fragments are of about a word and come with the pause between them", async () => {
  const clock = new ManualClock();
  const stream = client(20, clock).stream(llmRequest({ messages: [userText(AT, "hello")] }));
  const fragments: string[] = [];
  for (;;) {
    const next = stream.next();
    await Promise.race([clock.waiting(), next]);
    clock.advance(20);
    const step = await next;
    if (step.done === true) break;
    for (const message of step.value) {
      if (isPartial(message) && isPayload(message, "partial_text") && message.payload.text !== "")
        fragments.push(message.payload.text);
    }
  }
  expect(fragments.length).toBeGreaterThan(30);
  for (const fragment of fragments) expect(fragment.trim().length).toBeLessThanOrEqual(12);
  expect(clock.now()).toBeGreaterThan(20 * fragments.length);
});

test("abort ends it during a pause, with the usage so far", async () => {
  const clock = new ManualClock();
  const abort = new AbortController();
  const stream = client(20, clock).stream(llmRequest({ messages: [userText(AT, "hello")], signal: abort.signal }));
  const next = stream.next();
  await clock.waiting();
  abort.abort();
  expect(await next).toMatchObject({ done: true, value: { status: "aborted", usage: { output: 0 } } });
  expect(clock.pending).toBe(0);
});

test("a protocol without a wire is refused when the client is made, not when it is used", () => {
  expect(speaks("demo") && speaks("openai-chat")).toBe(true);
  const deps = { clock: systemClock(), newId: () => "x", requestTimeoutMs: 1, demoDelayMs: 0 };
  expect(() => createLLMClient(modelSpec({ protocol: "other" as "demo" }), deps)).toThrow("other");
});
