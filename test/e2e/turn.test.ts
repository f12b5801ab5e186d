// A turn against a scripted provider: what the client sees, what is recorded, and what the provider is sent next.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import {
  answer,
  call,
  calls,
  finish,
  gate,
  say,
  startUpstream,
  think,
  type Upstream,
  usage,
} from "../support/upstream.js";
import {
  api,
  asked,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  makeSession,
  outputsIn,
  payloads,
  prompt,
} from "./api.js";

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0" } });
});

/** The last request's messages, already held to the pairing rule. */
function sent() {
  const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
  expectPaired(messages);
  return messages;
}

describe("one turn with everything in it", () => {
  test("text, thinking, two parallel tools, one slow, one denied with a reason: outputs come as they finish and go back in call order", async () => {
    const id = await makeSession(server);
    const { workspace } = (await api(server, "GET", at(id))).body;
    const reader = await follow(server, id);
    const rest = gate();
    upstream.script(
      {
        steps: [
          ...think("I ", "think."),
          ...say("Let ", "me."),
          ...call(0, "call_slow", "exec_command", { cmd: "until [ -e go ]; do sleep 0.02; done; echo slow" }),
          ...call(1, "call_quick", "exec_command", { cmd: "echo quick" }),
          ...call(2, "call_denied", "exec_command", { cmd: "touch never" }),
          rest,
          ...finish("tool_calls", usage(100, 20)),
        ],
      },
      answer("All ", "done."),
    );
    const taskId = await prompt(server, id, "Do three things.");
    // The first is asked about while the model still speaks, and the stream is not held up.
    expect(await asked(reader)).toBe("call_slow");
    await reader.untilPayload("tool_call", ({ tool_call_id }) => tool_call_id === "call_quick");
    expect(await decide(server, id, "call_quick", "allow"), "its turn has not come").toBe(404);
    expect(await decide(server, id, "call_slow", "allow")).toBe(204);
    rest.open();
    const isAsked = (callId: string) => reader.until(({ data }) => data.toolCall?.payload.tool_call_id === callId);
    await isAsked("call_quick");
    expect(await decide(server, id, "call_quick", "allow")).toBe(204);
    await isAsked("call_denied");
    expect(await decide(server, id, "call_denied", "deny", "not today")).toBe(204);
    await reader.untilPayload("tool_call_output", ({ tool_call_id }) => tool_call_id === "call_quick");
    writeFileSync(join(workspace, "go"), "");
    await reader.untilEnded(taskId);

    const outputs = payloads(reader.messages, "tool_call_output");
    const order = outputs.map(({ tool_call_id }) => tool_call_id);
    expect(order.indexOf("call_quick")).toBeLessThan(order.indexOf("call_slow"));
    expect(outputs.find(({ tool_call_id }) => tool_call_id === "call_denied")).toMatchObject({
      output: "Tool call denied by user.\nnot today",
      stop_reason: "aborted",
    });
    expect(payloads(reader.messages, "approval_decision")).toMatchObject([
      { tool_call_id: "call_slow", decision: "allow", decided_by: "user" },
      { tool_call_id: "call_quick", decision: "allow", decided_by: "user" },
      { tool_call_id: "call_denied", decision: "deny", decided_by: "user", reason: "not today" },
    ]);
    // E15: what goes back is paired, contiguous and in call order, whatever the order on the stream.
    expect(outputsIn(sent())).toEqual(["slow\n", "quick\n", "Tool call denied by user.\nnot today"]);
    expect(sent().find(({ role }) => role === "assistant")).toMatchObject({
      content: "Let me.",
      reasoning_content: "I think.",
    });
    expect(
      payloads(reader.messages, "token_usage").map(({ request, session }) => [request.total, session.total]),
    ).toEqual([
      [120, 120],
      [15, 135],
    ]);
    await expectLawful(server, id, reader.messages);
  });
});

describe("calls that cannot run", () => {
  const bad: [string, { name: string; args: unknown }, RegExp][] = [
    ["an unknown tool", { name: "no_such_tool", args: {} }, /no_such_tool.*exec_command/s],
    ["arguments that are not JSON", { name: "exec_command", args: '{"cmd": echo' }, /JSON/],
    ["arguments that are no object", { name: "exec_command", args: "[1,2]" }, /object/],
    ["arguments that fail the schema", { name: "exec_command", args: { cmd: 5, extra: true } }, /cmd/],
    ["empty arguments where fields are required", { name: "exec_command", args: "" }, /cmd/],
  ];
  test.each(bad)(
    "%s: nobody is asked, the output says what to fix, and the model may try again",
    async (_kind, made, told) => {
      const id = await makeSession(server);
      const reader = await follow(server, id);
      upstream.script(calls({ id: "call_bad", ...made }), answer("I see."));
      await reader.untilEnded(await prompt(server, id, "Try."));
      expect(reader.serverEvents("approval_request")).toEqual([]);
      expect(payloads(reader.messages, "approval_decision")).toMatchObject([
        { decision: "allow", decided_by: "policy" },
      ]);
      const [output] = payloads(reader.messages, "tool_call_output");
      expect(output).toMatchObject({ tool_call_id: "call_bad", stop_reason: "failed" });
      expect(output?.output).toMatch(told);
      expect(outputsIn(sent())).toEqual([output?.output]);
      // Past arguments must parse wherever the provider reads them again.
      for (const each of sent().flatMap(({ tool_calls = [] }) => tool_calls)) JSON.parse(each.function.arguments);
      await expectLawful(server, id, reader.messages);
    },
  );

  test("all of them in one answer, beside a good one: each has one output, in call order", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    const good = { id: "call_good", name: "exec_command", args: { cmd: "echo fine" } };
    upstream.script(calls(...bad.map(([, made], index) => ({ id: `call_${index}`, ...made })), good), answer("Hm."));
    await reader.untilEnded(await prompt(server, id, "Try all."));
    expect(outputsIn(sent())).toHaveLength(bad.length + 1);
    expect(outputsIn(sent()).at(-1)).toBe("fine\n");
    await expectLawful(server, id, reader.messages);
  });

  test("F12: a call cut off by the output limit is closed malformed, not asked about, and answered once", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const cut = call(0, "call_cut", "exec_command", '{"cmd": "echo half of it');
    upstream.script({ steps: [...say("Now "), ...cut, ...finish("length", usage(9, 9))] }, answer("Shorter, then."));
    await reader.untilEnded(await prompt(server, id, "Go on and on."));
    expect(reader.serverEvents("approval_request")).toEqual([]);
    expect(payloads(reader.messages, "tool_call")).toMatchObject([{ stop_reason: "malformed" }]);
    expect(payloads(reader.messages, "tool_call_output")).toMatchObject([{ stop_reason: "failed" }]);
    expect(payloads(reader.messages, "request_end")).toMatchObject([{ status: "completed", truncated: true }, {}]);
    expect(outputsIn(sent())).toHaveLength(1);
    await expectLawful(server, id, reader.messages);
  });
});

describe("ids, usage and limits", () => {
  test("E14: repeated and empty call ids are made unique, each call runs once and is paired once", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    const echo = (callId: string, text: string) => ({
      id: callId,
      name: "exec_command",
      args: { cmd: `echo ${text}` },
    });
    upstream.script(
      calls(echo("same", "a"), echo("same", "b"), echo("", "c"), echo("no good/id!", "d")),
      calls(echo("same", "e"), echo("", "f")),
      answer("Done."),
    );
    await reader.untilEnded(await prompt(server, id, "Repeat yourself."));
    const ids = payloads(reader.messages, "tool_call").map(({ tool_call_id }) => tool_call_id);
    expect(new Set(ids).size).toBe(6);
    expect(ids[0]).toBe("same");
    for (const callId of ids) expect(callId).toMatch(/^[A-Za-z0-9_.:-]{1,64}$/);
    const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
    expect(outputsIn(messages)).toEqual(["a\n", "b\n", "c\n", "d\n", "e\n", "f\n"]);
    // Each output stands behind its own call under the id that the call is sent with, and once in its batch.
    let waiting: string[] = [];
    for (const message of messages) {
      if (message.role === "tool") expect(message.tool_call_id).toBe(waiting.shift());
      else expect(waiting).toEqual([]);
      if (message.tool_calls) waiting = message.tool_calls.map((each) => each.id);
      expect(new Set(waiting).size).toBe(waiting.length);
    }
    await expectLawful(server, id, reader.messages);
  });

  test("F14: a provider that gives no usage counts zero, and the Session's numbers stand", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    upstream.script({ steps: [...say("Free of charge."), ...finish("stop")] }, answer("Counted."));
    await reader.untilEnded(await prompt(server, id, "one"));
    await reader.untilEnded(await prompt(server, id, "two"));
    const counts = payloads(reader.messages, "token_usage").map(({ request, session }) => [
      request.total,
      session.total,
    ]);
    expect(counts).toEqual([
      [0, 0],
      [15, 15],
    ]);
    await expectLawful(server, id, reader.messages);
  });

  test("max_turns stops a model that never stops, says so outside of its context, and carries the outputs on", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all", maxTurns: 2 });
    const reader = await follow(server, id);
    const again = (n: number) => calls({ id: `call_${n}`, name: "exec_command", args: { cmd: `echo ${n}` } });
    upstream.script(again(1), again(2), answer("Enough."));
    const ended = await reader.untilEnded(await prompt(server, id, "Loop."));
    expect(ended.data.ended.status).toBe("completed");
    const notice = "[reached max turns (2); stopping]";
    expect(payloads(reader.messages, "text").at(-1)?.text).toBe(notice);
    await reader.untilEnded(await prompt(server, id, "And now?"));
    expect(outputsIn(sent())).toEqual(["1\n", "2\n"]);
    expect(JSON.stringify(sent())).not.toContain(notice);
    expect(sent().at(-1)).toEqual({ role: "user", content: "And now?" });
    await expectLawful(server, id, reader.messages);
  });

  test("a session that is not the first says what it was told: system prompt, tools, and the key in the header alone", async () => {
    const id = await makeSession(server, { systemPrompt: "You are terse.", tools: ["read_file"] });
    const reader = await follow(server, id);
    upstream.script(answer("ok"));
    await reader.untilEnded(await prompt(server, id, "hi"));
    const last = upstream.requests.at(-1);
    expect(last?.headers.authorization).toMatch(/^Bearer sk-upstream/);
    expect(last?.raw).not.toContain("sk-upstream");
    expect(last?.body.tools).toMatchObject([{ type: "function", function: { name: "read_file" } }]);
    expect(String(last?.body.messages[0]?.content)).toContain("You are terse.");
    expect(server.printed()).not.toContain("sk-upstream");
    const records = await expectLawful(server, id, reader.messages);
    expect(JSON.stringify(records)).not.toContain("sk-upstream");
  });
});
