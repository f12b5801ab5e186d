import { expect, onTestFinished, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { gate, harness, kinds, type Script, scriptedModel, scriptedTools } from "../support/engine.js";

const outputsOf = (messages: readonly OmniMessage[]) =>
  messages.filter((message) => isPayload(message, "tool_call_output")).map((message) => message.payload);
const texts = (messages: readonly OmniMessage[]) =>
  messages.map((message) => (isPayload(message, "text") ? message.payload.text : message.payload));

test("an answer without calls is one Request and ends the Task completed", async () => {
  const model = scriptedModel([{ steps: [{ think: "hm" }, { say: "hello there" }] }]);
  const task = harness({ model });
  expect(await task.run("hi")).toEqual({ status: "completed" });
  expect(kinds(task.stream)).toEqual(["request_begin", "thinking", "text", "token_usage", "request_end completed"]);
  expect(texts(model.requests[0]?.messages ?? [])).toEqual(["hi"]);
});

test("outputs are shown in completion order and given to the model in call order", async () => {
  const slow = gate();
  const model = scriptedModel([
    {
      steps: [
        { call: "slow", id: "a" },
        { call: "fast", id: "b" },
      ],
    },
    { steps: [{ say: "done" }] },
  ]);
  const environment = scriptedTools({
    slow: async function* () {
      await slow.promise;
      yield "late";
    },
    fast: async function* () {
      yield "early";
      slow.open();
    },
  });
  const task = harness({ model, environment });
  await task.run("go");
  expect(outputsOf(task.stream).map((output) => output.tool_call_id)).toEqual(["b", "a"]);
  expect(outputsOf(model.requests[1]?.messages ?? []).map((output) => output.tool_call_id)).toEqual(["a", "b"]);
});

test("the first tool runs while the model still speaks, and request_end does not wait for tools", async () => {
  const started = gate();
  const ended = gate();
  const model = scriptedModel([
    { steps: [{ call: "one", id: "a" }, { wait: started.promise }, { say: "meanwhile" }] },
    { steps: [{ say: "done" }] },
  ]);
  const environment = scriptedTools({
    one: async function* () {
      started.open();
      await ended.promise;
      yield "out";
    },
  });
  const task = harness({ model, environment });
  const run = task.run("go");
  await task.shown((message) => isPayload(message, "request_end"));
  ended.open();
  await run;
  expect(kinds(task.stream).slice(0, 7)).toEqual([
    "request_begin",
    "tool_call a",
    "approval_decision a",
    "text",
    "token_usage",
    "request_end completed",
    "tool_call_output a",
  ]);
});

test("E13: calls are asked about one at a time, in call order, and the model stream does not wait for the person", async () => {
  const asked: string[] = [];
  const answers = new Map<string, ReturnType<typeof gate<"allow" | "deny">>>();
  for (const id of ["a", "b"]) answers.set(id, gate<"allow" | "deny">());
  const model = scriptedModel([
    {
      steps: [
        { call: "t", id: "a" },
        { call: "t", id: "b" },
      ],
    },
    { steps: [{ say: "done" }] },
  ]);
  const environment = scriptedTools({
    t: async function* () {
      yield "ran";
    },
  });
  const task = harness({
    model,
    environment,
    approver: async (call) => {
      const id = call.payload.tool_call_id;
      asked.push(id);
      return { decision: await (answers.get(id)?.promise ?? "deny"), decidedBy: "user", reason: "not now" };
    },
  });
  const run = task.run("go");
  await task.shown((message) => isPayload(message, "request_end"));
  expect(asked).toEqual(["a"]);
  answers.get("a")?.open("deny");
  await task.shown((message) => isPayload(message, "tool_call_output"));
  answers.get("b")?.open("allow");
  await run;
  expect(asked).toEqual(["a", "b"]);
  expect(outputsOf(task.stream)).toMatchObject([
    { tool_call_id: "a", stop_reason: "aborted", output: "Tool call denied by user.\nnot now" },
    { tool_call_id: "b", output: "ran" },
  ]);
  expect(environment.started).toEqual(["b"]);
});

test("a call that cannot run is not asked about and is answered by a failed output", async () => {
  const model = scriptedModel([
    {
      steps: [
        { call: "nope", id: "a" },
        { call: "t", id: "b", args: "[1]" },
      ],
    },
    { steps: [{ say: "sorry" }] },
  ]);
  const task = harness({
    model,
    environment: scriptedTools({
      t: async function* () {
        yield "ran";
      },
    }),
    approver: () => {
      throw new Error("nobody should be asked");
    },
  });
  await task.run("go");
  expect(outputsOf(task.stream).map((output) => output.stop_reason)).toEqual(["failed", "failed"]);
  expect(task.stream.filter((message) => isPayload(message, "approval_decision")).map((m) => m.payload)).toMatchObject([
    { decision: "allow", decided_by: "policy", tool_call_id: "a" },
    { decision: "allow", decided_by: "policy", tool_call_id: "b" },
  ]);
});

test("an approver that throws denies; a tool that throws is a failed output that keeps what was streamed", async () => {
  const model = scriptedModel([
    {
      steps: [
        { call: "t", id: "a" },
        { call: "t", id: "b" },
      ],
    },
    { steps: [{ say: "ok" }] },
  ]);
  const task = harness({
    model,
    environment: scriptedTools({
      t: async function* () {
        yield "half ";
        throw new Error("broken pipe");
      },
    }),
    approver: (call) => {
      if (call.payload.tool_call_id === "a") throw new Error("no approver here");
      return { decision: "allow", decidedBy: "policy" };
    },
  });
  await task.run("go");
  const [a, b] = outputsOf(task.stream);
  expect(a).toMatchObject({ tool_call_id: "a", stop_reason: "aborted" });
  expect(b).toMatchObject({ tool_call_id: "b", stop_reason: "failed" });
  expect(b?.output).toMatch(/^half .*broken pipe/);
});

test("max_turns stops before the next Request with a notice, and the outputs are carried to the next Task", async () => {
  const model = scriptedModel([{ steps: [{ call: "t", id: "a" }] }, { steps: [{ say: "done" }] }]);
  const task = harness({
    model,
    maxTurns: 1,
    environment: scriptedTools({
      t: async function* () {
        yield "ran";
      },
    }),
  });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(texts(task.stream.slice(-1))).toEqual(["[reached max turns (1); stopping]"]);
  expect(model.requests.length).toBe(1);
  await task.run("more");
  const sent = model.requests[1]?.messages ?? [];
  expect(sent.map((message) => message.payload.type)).toEqual(["text", "tool_call", "tool_call_output", "text"]);
  expect(texts(sent.slice(-1))).toEqual(["more"]);
});

test("a failed Request ends the Task with its status; what was said goes to the next one in a block", async () => {
  const model = scriptedModel([
    { steps: [{ say: "I was saying" }], outcome: { status: "timeout", error: { kind: "network", message: "reset" } } },
    { steps: [{ say: "again" }] },
  ]);
  const task = harness({ model });
  expect(await task.run("one")).toEqual({ status: "timeout", error: { kind: "network", message: "reset" } });
  await task.run("two");
  const sent = texts(model.requests[1]?.messages ?? []);
  expect(sent[0]).toBe("one");
  expect(sent[1]).toMatch(/^\[turn_retried\]\n.*I was saying.*\n\[\/turn_retried\]$/s);
  expect(sent[2]).toBe("two");
});

test("calls of a failed try that nobody decided are denied, and none of its tools starts afterwards", async () => {
  const model = scriptedModel([
    { steps: [{ call: "t", id: "a" }], outcome: { status: "malformed", error: { kind: "malformed", message: "cut" } } },
  ]);
  const environment = scriptedTools({
    t: async function* () {
      yield "ran";
    },
  });
  const task = harness({ model, environment, approver: () => new Promise(() => {}) });
  expect((await task.run("go")).status).toBe("malformed");
  expect(environment.started).toEqual([]);
  expect(task.stream.find((message) => isPayload(message, "approval_decision"))?.payload).toMatchObject({
    decision: "deny",
    decided_by: "abort",
  });
});

test("a call cut off by the output limit is neither asked about nor run, and is answered", async () => {
  const model = scriptedModel([
    { steps: [{ call: "t", id: "a", args: '{"x":', cut: true }], outcome: { truncated: true } },
    { steps: [{ say: "shorter" }] },
  ]);
  const task = harness({ model, approver: () => Promise.reject(new Error("asked")) });
  await task.run("go");
  expect(outputsOf(task.stream)).toMatchObject([{ tool_call_id: "a", stop_reason: "failed" }]);
  expect(task.stream.some((message) => isPayload(message, "approval_decision"))).toBe(false);
  expect(model.requests.length).toBe(2);
});

test("a record that cannot be written is not shown, and ends the Task with everything it started stopped", async () => {
  const model = scriptedModel([{ steps: [{ call: "t", id: "a" }, { wait: new Promise(() => {}) }] }]);
  const stopped = gate();
  const task = harness({
    model,
    refuses: (message) => isPayload(message, "tool_call_output"),
    environment: scriptedTools({
      t: async function* (_args, { signal }) {
        yield "x";
        signal.addEventListener("abort", () => stopped.open());
      },
    }),
  });
  const run = task.run("go");
  await task.shown((message) => isPayload(message, "partial_tool_call_output"));
  task.abort();
  expect((await run).error?.kind).toBe("storage");
  expect(task.stream.some((message) => isPayload(message, "tool_call_output"))).toBe(false);
});

test("an answer that only paused is sent back as it is, in a new Request of the same Task", async () => {
  const model = scriptedModel([
    { steps: [{ say: "let me look" }], outcome: { pause: true } },
    { steps: [{ say: "done" }] },
  ]);
  const task = harness({ model });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(texts(model.requests[1]?.messages ?? [])).toEqual(["go", "let me look"]);
});

test("a provider that does nothing but pause is asked a bounded number of times, then the Task ends", async () => {
  const paused: Script = { steps: [{ say: "x" }], outcome: { pause: true } };
  const model = scriptedModel(Array.from({ length: 30 }, () => paused));
  const task = harness({ model });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(model.requests).toHaveLength(11);
  expect(kinds(task.stream).filter((kind) => kind === "request_end completed")).toHaveLength(11);
});

test("pauses are counted in a row: an answer that made a call in between begins a new count", async () => {
  const paused: Script = { steps: [{ say: "x" }], outcome: { pause: true } };
  const eight = Array.from({ length: 8 }, () => paused);
  const model = scriptedModel([
    ...eight,
    { steps: [{ call: "one", id: "a" }] },
    ...eight,
    { steps: [{ say: "done" }] },
  ]);
  const environment = scriptedTools({
    one: async function* () {
      yield "out";
    },
  });
  const task = harness({ model, environment });
  expect(await task.run("go")).toEqual({ status: "completed" });
  expect(model.requests).toHaveLength(18);
});

test("any number of tools beside each other is no leak, and Node does not warn of one", async () => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error) => void warnings.push(warning);
  process.on("warning", onWarning);
  onTestFinished(() => void process.off("warning", onWarning));
  const calls = Array.from({ length: 30 }, (_, index) => ({ call: "wait", id: `call_${index}` }));
  const model = scriptedModel([{ steps: calls }, { steps: [{ say: "done" }] }]);
  const all = gate();
  let running = 0;
  const environment = scriptedTools({
    wait: async function* (_args, { signal }) {
      const aborted = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      running += 1;
      if (running === calls.length) all.open();
      await Promise.race([all.promise, aborted]);
      yield "out";
    },
  });
  const task = harness({ model, environment });
  expect(await task.run("go")).toEqual({ status: "completed" });
  // Node tells of it a tick later.
  await new Promise((resolve) => setImmediate(resolve));
  expect(warnings).toEqual([]);
});
