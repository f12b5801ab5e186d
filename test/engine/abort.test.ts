import { expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { harness, kinds, type Script, type ScriptedTool, scriptedModel, scriptedTools } from "../support/engine.js";

const never = new Promise<never>(() => {});
const last = (messages: readonly OmniMessage[]) => messages[messages.length - 1]?.payload;
const texts = (messages: readonly OmniMessage[]) =>
  messages.filter((message) => isPayload(message, "text")).map((message) => message.payload.text);

const stuck: ScriptedTool = async function* (_args, { signal }) {
  yield "some ";
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
};

async function interrupted(first: Script, options: { until: (message: OmniMessage) => boolean; ask?: boolean }) {
  const model = scriptedModel([first, { steps: [{ say: "next" }] }]);
  const task = harness({
    model,
    environment: scriptedTools({ stuck }),
    ...(options.ask === true ? { approver: () => never } : {}),
  });
  const run = task.run("first");
  await task.shown(options.until);
  task.abort();
  expect(await run).toEqual({ status: "aborted" });
  expect(last(task.stream)).toEqual({ type: "abort", reason: "user" });
  const shown = kinds(task.stream);
  await task.run("second");
  return { shown, sent: model.requests[1]?.messages ?? [], stream: task.stream };
}

test.each([
  ["before the first byte", [], "request_begin"],
  ["in thinking", [{ think: "hm" }], "thinking"],
] as const)(
  "%s: the input goes again word for word, and the model is told that nothing was said",
  async (_, steps, until) => {
    const { shown, sent } = await interrupted(
      { steps: [...steps, { wait: never }] },
      { until: (message) => isPayload(message, until) },
    );
    expect(shown.filter((kind) => kind !== "thinking")).toEqual([
      "request_begin",
      "token_usage",
      "request_end aborted",
      "abort",
    ]);
    expect(texts(sent)).toEqual([
      "first",
      "[turn_aborted]\nThe last turn was interrupted before anything was said in it.\n[/turn_aborted]",
      "second",
    ]);
  },
);

test("F3: an upstream that ignores the signal does not hold the Session", async () => {
  const { shown } = await interrupted(
    { steps: [{ begin: "half" }, { wait: never, ignoresAbort: true }] },
    { until: (message) => isPayload(message, "partial_text") },
  );
  expect(shown).toEqual(["request_begin", "text", "token_usage", "request_end aborted", "abort"]);
});

test("in mid-text: the segment is closed aborted, and the model is told what it had said", async () => {
  const { sent, stream } = await interrupted(
    { steps: [{ think: "hm" }, { begin: "I was just" }, { wait: never }] },
    { until: (message) => isPayload(message, "partial_text") },
  );
  expect(stream.find((message) => isPayload(message, "text"))?.payload).toMatchObject({
    text: "I was just",
    stop_reason: "aborted",
  });
  const [first, block, second] = texts(sent);
  expect([first, second]).toEqual(["first", "second"]);
  expect(block).toMatch(/^\[turn_aborted\]\n.*I was just\n\[\/turn_aborted\]$/s);
});

test("E8: with an approval pending after the Request committed: denied by abort, and the next prompt goes on", async () => {
  const { shown, sent } = await interrupted(
    {
      steps: [
        { call: "stuck", id: "a" },
        { call: "stuck", id: "b" },
      ],
    },
    { until: (message) => isPayload(message, "request_end"), ask: true },
  );
  expect(shown).toEqual([
    "request_begin",
    "tool_call a",
    "tool_call b",
    "token_usage",
    "request_end completed",
    "approval_decision a",
    "tool_call_output a",
    "approval_decision b",
    "tool_call_output b",
    "abort",
  ]);
  expect(sent.map((message) => message.payload.type)).toEqual([
    "text",
    "tool_call",
    "tool_call",
    "tool_call_output",
    "tool_call_output",
    "text",
  ]);
});

test("in a tool while the model still speaks: text closed, output closed, the Request's tail, then abort", async () => {
  const { shown, sent, stream } = await interrupted(
    { steps: [{ call: "stuck", id: "a" }, { begin: "and" }, { wait: never }] },
    { until: (message) => isPayload(message, "partial_tool_call_output") && message.payload.event_type === "delta" },
  );
  expect(shown).toEqual([
    "request_begin",
    "tool_call a",
    "approval_decision a",
    "text",
    "tool_call_output a",
    "token_usage",
    "request_end aborted",
    "abort",
  ]);
  expect(stream.find((message) => isPayload(message, "tool_call_output"))?.payload).toMatchObject({
    output: "some [interrupted: tool aborted by user]",
    stop_reason: "aborted",
  });
  // Nothing of the Request is in the context but its input; the block tells the rest.
  expect(sent.map((message) => message.payload.type)).toEqual(["text", "text", "text"]);
  expect(texts(sent)[1]).toContain("Called stuck");
});

test("aborting again and again does not nest blocks", async () => {
  const half = (): Script => ({ steps: [{ begin: "half" }, { wait: never }] });
  const model = scriptedModel([half(), half(), half(), { steps: [{ say: "done" }] }]);
  const task = harness({ model });
  for (const prompt of ["one", "two", "three"]) {
    const run = task.run(prompt);
    const begun = task.stream.length;
    await task.shown((message) => task.stream.indexOf(message) >= begun && isPayload(message, "partial_text"));
    task.abort();
    await run;
  }
  await task.run("four");
  const sent = texts(model.requests[3]?.messages ?? []);
  expect(sent.length).toBe(7);
  for (const text of sent) expect(text.split("[turn_aborted]").length).toBeLessThanOrEqual(2);
});

test("an abort before the run begins still ends it with abort", async () => {
  const model = scriptedModel([{ steps: [{ say: "x" }] }]);
  const task = harness({ model });
  const run = task.run("first");
  task.abort();
  expect((await run).status).toBe("aborted");
  expect(last(task.stream)).toMatchObject({ type: "abort" });
});
