// A provider that misbehaves: whatever it does, the Task ends by name, the Session goes on, and no half of anything runs.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import {
  answer,
  call,
  finish,
  type Script,
  say,
  startUpstream,
  think,
  type Upstream,
  usage,
} from "../support/upstream.js";
import { api, at, expectLawful, expectPaired, makeSession, payloads } from "./api.js";

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({
    atEnd: atFileEnd,
    config: upstream.config(),
    // Long enough for a good answer on a machine that stands still in between.
    env: { OMNID_RETRY_LIMIT: "0", OMNID_REQUEST_TIMEOUT_MS: "3000" },
  });
});

/** Runs one Task against the script, then a second one against a good answer. */
async function suffer(script: Script) {
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const { workspace } = (await api(server, "GET", at(id))).body;
  const run = async (input: string) => {
    const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input } });
    await reader.ended;
    return reader;
  };
  const number = upstream.requests.length;
  upstream.script(script);
  const first = await run("One.");
  expect(first.events.at(-1)?.data).toMatchObject({ type: "task_state", state: "idle", pendingApprovals: 0 });
  await expectLawful(server, id, first.messages);
  const request = upstream.requests[number];
  upstream.script(answer("Fine."));
  const second = await run("Two.");
  expect(second.events.at(-1)?.data.ended.status).toBe("completed");
  await expectLawful(server, id, second.messages, { joined: true });
  const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
  expectPaired(messages);
  expect(messages.at(-1)).toEqual({ role: "user", content: "Two." });
  return { workspace, request, messages, end: payloads(first.messages, "request_end")[0], reader: first };
}

const touch = call(0, "call_1", "exec_command", { cmd: "touch ran" });
const whole = [...think("Let me see."), ...say("I ", "will."), ...touch, ...finish("tool_calls", usage(3, 4))];

describe("F15", () => {
  // The end mark and what follows it are left out: a stream that has its finish_reason is whole.
  const cuts = Array.from({ length: whole.length - 2 }, (_, count) => count);
  test.each(cuts)(
    "a stream that closes cleanly after %i chunks is never completed, and half a call never runs",
    async (count) => {
      const { end, workspace, messages, reader } = await suffer({ steps: whole.slice(0, count) });
      expect(end?.status).toBe("malformed");
      expect(payloads(reader.messages, "tool_call").every(({ stop_reason }) => stop_reason !== undefined)).toBe(true);
      expect(existsSync(join(workspace, "ran"))).toBe(false);
      const said = count > 2;
      expect(JSON.stringify(messages).includes("I will.")).toBe(said);
    },
  );

  test("a connection that is reset in mid-answer is a network failure", async () => {
    const { end } = await suffer({ steps: say("So far"), end: "reset" });
    expect(end).toMatchObject({ status: "timeout", error: { kind: "network" } });
  });
});

describe("F19", () => {
  const silent: [string, Script][] = [
    ["after its headers", { steps: [], end: "never" }],
    ["in mid-answer", { steps: say("One moment"), end: "never" }],
    ["in mid-event", { steps: ['data: {"choices":[{"in'], end: "never" }],
  ];
  test.each(silent)(
    "C8: a provider that falls silent %s is given up, and its connection closed",
    async (_when, script) => {
      const { end, request } = await suffer(script);
      expect(end).toMatchObject({ status: "timeout", error: { kind: "timeout" } });
      await request?.closed;
    },
  );
});

describe("F16", () => {
  const frame = 'data: {"error":{"message":"the engine is on fire","type":"server_error"}}\n\n';
  const frames: [string, Script][] = [
    ["first", { steps: [frame] }],
    ["in mid-answer", { steps: [...say("Well, "), frame] }],
    ["and an end mark behind it", { steps: [frame, ...finish("stop")] }],
  ];
  test.each(frames)("an error inside a 200, %s, is not an answer", async (_where, script) => {
    const { end } = await suffer(script);
    expect(end?.status).not.toBe("completed");
    expect(end?.error?.message).toContain("the engine is on fire");
  });

  const answers: [number, string, string, string][] = [
    [401, '{"error":{"message":"bad key sk-upstream-secret-0123456789"}}', "auth", "failed"],
    [404, "<html><body>not here</body></html>", "invalid_request", "failed"],
    [429, '{"error":{"message":"slow down"}}', "rate_limit", "timeout"],
    [500, "oops", "timeout", "timeout"],
    [503, '{"error":{"message":"busy"}}', "overloaded", "timeout"],
  ];
  test.each(answers)(
    "status %i is told by its kind, without markup and without the key",
    async (status, body, kind, stop) => {
      const { end, reader } = await suffer({ status, steps: [body] });
      expect(end).toMatchObject({ status: stop, error: { kind, http_status: status } });
      expect(JSON.stringify(reader.events)).not.toMatch(/<html|sk-upstream-secret/);
    },
  );
});

test("F22: comments, CRLF, a BOM and a missing [DONE] change nothing", async () => {
  const text = `\ufeff: hello\r\n\r\nevent: x\r\ndata: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "北🙂é" }, finish_reason: null }] })}\r\n\r\n: still here\r\ndata: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\r\n\r\n`;
  const bytes = Buffer.from(text);
  const { end, reader } = await suffer({ steps: Array.from(bytes, (_, index) => bytes.subarray(index, index + 1)) });
  expect(end?.status).toBe("completed");
  expect(payloads(reader.messages, "text")).toMatchObject([{ text: "北🙂é" }]);
});
