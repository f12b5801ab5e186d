// An interrupt at every stage: what is said on the stream, what is left of processes, and what the model is told next.

import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import type { SseReader } from "../support/sse-client.js";
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
  untilIdle,
} from "./api.js";

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0" } });
});

async function abort(id: string): Promise<number> {
  return (await api(server, "POST", at(id, "/abort"))).status;
}

/** Interrupts, waits for the end, checks the record, prompts again, and gives what the provider was sent then. */
async function aborted(id: string, reader: SseReader, taskId: string) {
  expect(await abort(id)).toBe(202);
  const end = await reader.untilEnded(taskId);
  expect(end.data).toMatchObject({ state: "idle", pendingApprovals: 0, ended: { status: "aborted" } });
  expect(reader.messages.at(-1)?.payload).toMatchObject({ type: "abort", reason: "user" });
  await expectLawful(server, id, reader.messages);
  expect(await abort(id), "there is nothing left to interrupt").toBe(204);
  upstream.script(answer("As you say."));
  await reader.untilEnded(await prompt(server, id, "Next."));
  await expectLawful(server, id, reader.messages);
  const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
  expectPaired(messages);
  expect(messages.at(-1)).toEqual({ role: "user", content: "Next." });
  return messages;
}

const start = async (session: Record<string, unknown> = {}) => {
  const id = await makeSession(server, session);
  return {
    id,
    reader: await follow(server, id),
    workspace: (await api(server, "GET", at(id))).body.workspace as string,
  };
};

const texts = (messages: readonly { role: string; content: unknown }[]) =>
  messages.filter(({ role }) => role === "user").map(({ content }) => String(content));

describe("what the model is told after an abort", () => {
  test("before a byte came: the input again, word for word, and nothing that was never said", async () => {
    const { id, reader } = await start();
    upstream.script({ steps: [], end: "never" });
    const taskId = await prompt(server, id, "First.");
    const request = await upstream.request(upstream.requests.length);
    const messages = await aborted(id, reader, taskId);
    expect(texts(messages)[0]).toBe("First.");
    // The provider's connection is not left to run on.
    await request.closed;
  });

  test("in mid-text: the segment is closed aborted, and a block tells what had been said", async () => {
    const { id, reader } = await start();
    upstream.script({ steps: [...think("hm"), ...say("The answer", " is")], end: "never" });
    const taskId = await prompt(server, id, "Tell me.");
    await reader.untilPayload("partial_text", ({ text }) => text === " is");
    const messages = await aborted(id, reader, taskId);
    expect(payloads(reader.messages, "text")[0]).toMatchObject({ text: "The answer is", stop_reason: "aborted" });
    expect(texts(messages)).toEqual([
      "Tell me.",
      expect.stringMatching(/^\[turn_aborted\][\s\S]*The answer is[\s\S]*\[\/turn_aborted\]$/),
      "Next.",
    ]);
  });

  test("in mid-call: it is neither asked about, run nor paired", async () => {
    const { id, reader } = await start();
    upstream.script({ steps: call(0, "half", "exec_command", { cmd: "touch never" }).slice(0, 1), end: "never" });
    const taskId = await prompt(server, id, "Call.");
    await reader.untilPayload("partial_tool_call", ({ arguments: text }) => text !== "");
    const messages = await aborted(id, reader, taskId);
    expect(payloads(reader.messages, "approval_decision")).toEqual([]);
    expect(payloads(reader.messages, "tool_call_output")).toEqual([]);
    expect(outputsIn(messages)).toEqual([]);
  });

  test("E3 E8: with an approval pending: every client sees it resolved, the answer is refused, and the next prompt works", async () => {
    const { id, reader, workspace } = await start();
    upstream.script(
      calls(
        { id: "pending", name: "exec_command", args: { cmd: "touch never" } },
        { id: "behind", name: "exec_command", args: { cmd: "touch never" } },
      ),
    );
    const taskId = await prompt(server, id, "Ask.");
    await reader.untilPayload("request_end");
    const callId = await asked(reader);
    const messages = await aborted(id, reader, taskId);
    expect(payloads(reader.messages, "approval_decision")).toMatchObject([
      { tool_call_id: "pending", decision: "deny", decided_by: "abort" },
      { tool_call_id: "behind", decision: "deny", decided_by: "abort" },
    ]);
    expect([404, 409]).toContain(await decide(server, id, callId, "allow"));
    expect((await api(server, "GET", at(id, "/approvals"))).body.approvals).toEqual([]);
    expect(existsSync(join(workspace, "never"))).toBe(false);
    expect(outputsIn(messages)).toHaveLength(2);
  });

  test("in mid-tool after the Request committed: its outputs, what was streamed so far among them, in call order", async () => {
    const { id, reader } = await start({ approvalMode: "allow-all" });
    upstream.script(
      calls(
        { id: "long", name: "exec_command", args: { cmd: "echo so far; sleep 600" } },
        { id: "short", name: "exec_command", args: { cmd: "echo short" } },
      ),
    );
    const taskId = await prompt(server, id, "Run.");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("so far"));
    await reader.untilPayload("tool_call_output", ({ tool_call_id }) => tool_call_id === "short");
    await reader.untilPayload("request_end");
    const messages = await aborted(id, reader, taskId);
    expect(outputsIn(messages)).toEqual(["so far\n[interrupted: tool aborted by user]", "short\n"]);
    expect(JSON.stringify(messages)).not.toContain("turn_aborted");
  });

  test("in mid-tool while the model still speaks: the input goes again and a block tells the rest", async () => {
    const { id, reader } = await start({ approvalMode: "allow-all" });
    const hold = gate();
    upstream.script({
      steps: [
        ...call(0, "early", "exec_command", { cmd: "echo early" }),
        ...say("And"),
        hold,
        ...finish("tool_calls", usage(1, 1)),
      ],
    });
    const taskId = await prompt(server, id, "Run.");
    await reader.untilPayload("tool_call_output");
    const messages = await aborted(id, reader, taskId);
    hold.open();
    expect(outputsIn(messages)).toEqual([]);
    expect(texts(messages)[1]).toMatch(/^\[turn_aborted\][\s\S]*echo early[\s\S]*early[\s\S]*\[\/turn_aborted\]$/);
  });

  test("again and again: blocks do not nest and the context stays in order", async () => {
    const { id, reader } = await start();
    for (const round of [1, 2, 3]) {
      upstream.script({ steps: say(`part ${round}`), end: "never" });
      const taskId = await prompt(server, id, `Round ${round}.`);
      await reader.untilPayload("partial_text", ({ text }) => text === `part ${round}`);
      await aborted(id, reader, taskId);
    }
    const blocks = texts(upstream.requests.at(-1)?.body.messages ?? []).filter((text) =>
      text.includes("[turn_aborted]"),
    );
    expect(blocks).toHaveLength(3);
    for (const block of blocks) expect(block.match(/\[turn_aborted\]/g)).toHaveLength(1);
  });
});

describe("who leaves does not interrupt", () => {
  test("C16 C17: closing every stream during a tool lets the run complete, and history is whole", async () => {
    const { id, reader, workspace } = await start({ approvalMode: "allow-all" });
    upstream.script(
      calls({ id: "c", name: "exec_command", args: { cmd: "until [ -e go ]; do sleep 0.02; done; echo done" } }),
      answer("Finished."),
    );
    const mine = fetch(server.url + at(id, "/tasks"), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: "Run." }),
    });
    await reader.untilPayload("approval_decision");
    await (await mine).body?.cancel();
    reader.close();
    await reader.ended;
    await api(server, "GET", at(id));
    writeFileSync(join(workspace, "go"), "");
    await untilIdle(server, id);
    const records = await expectLawful(server, id, reader.messages, { running: true });
    expect(payloads(records, "tool_call_output")).toMatchObject([{ output: "done\n" }]);
    expect(payloads(records, "text").at(-1)?.text).toBe("Finished.");
    expect(payloads(records, "abort")).toEqual([]);
  });
});
