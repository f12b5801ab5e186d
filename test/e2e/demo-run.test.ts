// A stranger with nothing but the contract: the demo model, real tools, one person who answers.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { isPartial } from "../../src/protocol/guards.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { api, asked, at, decide, expectLawful, follow, makeSession, payloads, prompt } from "./api.js";

let server: Server;
beforeAll(async () => {
  server = await startOmnid({ atEnd: atFileEnd, env: { OMNID_HEARTBEAT_MS: "500" } });
});

describe("the demo run", () => {
  test("an approved command runs, its output is streamed, and the model reports on it", async () => {
    const made = await api(server, "POST", "/api/sessions", { title: "first" });
    expect(made.body).toMatchObject({ provider: "demo", modelId: "demo", approvalMode: "always-ask", state: "idle" });
    expect(made.body.sessionId).toMatch(/^session-\d{4}(-\d\d){5}-[0-9a-f]{8}$/);
    const id = made.body.sessionId;
    const reader = await follow(server, id);
    const first = await reader.until(() => true);
    expect(first).toMatchObject({ name: "server_event", data: { type: "task_state", state: "idle", records: 1 } });

    const taskId = await prompt(server, id, "/run echo hello; touch ran; exit 3");
    const callId = await asked(reader);
    const open = await api(server, "GET", at(id, "/approvals"));
    expect(open.body.approvals).toMatchObject([{ sessionId: id, toolCall: { payload: { tool_call_id: callId } } }]);
    expect((await api(server, "GET", at(id))).body).toMatchObject({ state: "running", pendingApprovals: 1, queued: 0 });
    expect(existsSync(join(made.body.workspace, "ran"))).toBe(false);
    expect(await decide(server, id, callId, "allow")).toBe(204);
    expect(await decide(server, id, callId, "allow")).toBe(409);
    const end = await reader.untilEnded(taskId);
    expect(end.data).toMatchObject({ state: "idle", pendingApprovals: 0, ended: { taskId, status: "completed" } });

    expect(existsSync(join(made.body.workspace, "ran"))).toBe(true);
    expect(payloads(reader.messages, "tool_call_output")).toMatchObject([
      { tool_call_id: callId, output: "hello\n[exit code 3]", exit_code: 3 },
    ]);
    expect(payloads(reader.messages, "approval_decision")).toMatchObject([{ decision: "allow", decided_by: "user" }]);
    expect(payloads(reader.messages, "text").at(-1)?.text).toContain("exit code 3");
    const records = await expectLawful(server, id, reader.messages);
    expect(end.data.records).toBe(records.length);
    expect((await api(server, "GET", at(id, `/tasks/${taskId}`))).body).toMatchObject({
      state: "ended",
      status: "completed",
    });
    // The Trace on the disk is the one that the API gives.
    const trace = await fetch(server.url + at(id, "/trace"));
    expect(trace.headers.get("content-type")).toContain("application/x-ndjson");
    const [meta] = payloadsOfMeta(records);
    expect(meta).toMatchObject({ session_id: id, workspace: made.body.workspace });
    expect(existsSync(meta.agent_state)).toBe(true);
  });

  test("A2 A3: ids are <epoch>-<seq> without holes over many Tasks, and every message of a stream is numbered", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    for (const input of [
      "hello",
      "/think one\u2028two\u2029three\u0085four",
      "/parallel echo a && echo b",
      "/run seq 50",
    ]) {
      await reader.untilEnded(await prompt(server, id, input));
    }
    const [epoch] = (reader.ids[0] as string).split("-");
    expect(reader.ids).toEqual(reader.ids.map((_, index) => `${epoch}-${index + 1}`));
    expect(reader.messages.some(isPartial)).toBe(true);
    // B1: what would split a record for some readers comes back as it was.
    expect(payloads(reader.messages, "thinking").map(({ thinking }) => thinking)).toContain(
      "one\u2028two\u2029three\u0085four",
    );
    await expectLawful(server, id, reader.messages);
  });

  test("A29: a failed Task ends idle with its error, and the next prompt works", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const failed = await reader.untilEnded(await prompt(server, id, "/fail"));
    expect(failed.data).toMatchObject({
      state: "idle",
      ended: { status: "failed", error: { kind: "invalid_request" } },
    });
    const next = await reader.untilEnded(await prompt(server, id, "hello"));
    expect(next.data.ended.status).toBe("completed");
    await expectLawful(server, id, reader.messages);
  });

  test("B9: an idle stream carries a comment at each heartbeat, and is never compressed", async () => {
    const id = await makeSession(server);
    const reader = await follow(server, id, { headers: { "accept-encoding": "gzip, br" } });
    await reader.until(() => true);
    const { headers } = reader.response;
    expect(headers["content-encoding"]).toBeUndefined();
    expect(headers["content-type"]).toBe("text/event-stream; charset=utf-8");
    expect(headers["cache-control"]).toBe("no-cache, no-transform");
    expect(headers["x-accel-buffering"]).toBe("no");
    expect(headers["x-request-id"]).toBeTruthy();
    const before = reader.bytes;
    await new Promise((resolve) => reader.response.once("data", resolve));
    expect(reader.bytes - before).toBe(": ping\n".length);
  });

  test("the files that the model writes are in the Workspace that the client named", async () => {
    const made = await api(server, "POST", "/api/sessions", { approvalMode: "allow-all" });
    const shared = await makeSession(server, { approvalMode: "allow-all", workspace: made.body.workspace });
    const reader = await follow(server, shared);
    await reader.untilEnded(await prompt(server, shared, "/write notes/a.txt some text"));
    expect(readFileSync(join(made.body.workspace, "notes/a.txt"), "utf8")).toBe("some text");
    // Deleting one Session leaves the Workspace that another one uses.
    expect((await api(server, "DELETE", at(made.body.sessionId))).status).toBe(204);
    expect(existsSync(join(made.body.workspace, "notes/a.txt"))).toBe(true);
    await reader.untilEnded(await prompt(server, shared, "/read notes/a.txt"));
    expect(payloads(reader.messages, "tool_call_output").at(-1)?.output).toContain("some text");
  });
});

describe("a prompt whose answer is the stream", () => {
  const run = (id: string, input: string, headers: Record<string, string> = {}) =>
    openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input }, headers });

  test("one request shows a whole run, from task_state to the task_state that ends it", async () => {
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await run(id, "/run echo one");
    await reader.ended;
    expect(reader.events[0]).toMatchObject({ name: "server_event", data: { type: "task_state", state: "running" } });
    expect(reader.events.at(-1)?.data).toMatchObject({
      type: "task_state",
      state: "idle",
      ended: { status: "completed" },
    });
    await expectLawful(server, id, reader.messages);
    // A second run on the same Session tells of that Task alone.
    const second = await run(id, "/run echo two");
    await second.ended;
    expect(second.messages.length).toBeGreaterThan(0);
    expect(second.serverEvents("task_state").filter(({ ended }) => ended)).toHaveLength(1);
    expect(Number(second.ids[0]?.split("-")[1])).toBe(reader.ids.length + 1);
    await expectLawful(server, id, second.messages, { joined: true });
  });

  test("A26: a repeated key follows the same Task, resumes it, and tells that it is over", async () => {
    const id = await makeSession(server);
    const key = { "idempotency-key": "stream-1" };
    const first = await run(id, "/run echo once >> count; cat count", key);
    const callId = await asked(first);
    const again = await run(id, "/run echo once >> count; cat count", key);
    expect(await asked(again)).toBe(callId);
    // The connection is lost; the Task goes on and the same request picks it up where it was.
    first.close();
    const resumed = await openSse(server.url + at(id, "/tasks"), {
      method: "POST",
      body: { input: "/run echo once >> count; cat count" },
      headers: key,
      lastEventId: first.lastEventId as string,
    });
    expect(await asked(resumed)).toBe(callId);
    expect(await decide(server, id, callId, "allow")).toBe(204);
    await Promise.all([again.ended, resumed.ended]);
    expect(resumed.events.at(-1)?.data.ended).toMatchObject({ status: "completed" });
    expect([...first.ids, ...resumed.ids]).toEqual((await seen(id)).ids);
    expect(payloads(resumed.messages, "tool_call_output").map(({ output }) => output)).toEqual(["once\n"]);

    const late = await run(id, "/run echo once >> count; cat count", key);
    await late.ended;
    expect(late.events.map(({ data }) => data.ended?.status)).toEqual(["completed"]);
    // The form does not matter to the key: as JSON it is the same Task.
    const json = await api(server, "POST", at(id, "/tasks"), { input: "/run echo once >> count; cat count" }, key);
    expect(json).toMatchObject({ status: 202, body: { taskId: late.events[0]?.data.ended.taskId, queued: 0 } });
  });

  test("what cannot start is an answer and no stream", async () => {
    const id = await makeSession(server);
    const busy = await run(id, "/run true");
    await asked(busy);
    const refused = await api(server, "POST", at(id, "/tasks"), { input: "x" }, { accept: "text/event-stream" });
    expect(refused).toMatchObject({ status: 409, body: { error: { code: "task_in_progress" } } });
  });

  async function seen(id: string) {
    const epoch = (await api(server, "GET", at(id, "/messages"))).body.cursor.split("-")[0];
    const reader = await follow(server, id, { lastEventId: `${epoch}-0` });
    await reader.until(({ name }) => name !== undefined);
    return reader;
  }
});

// biome-ignore lint/suspicious/noExplicitAny: the payload of a session_meta, read loosely
const payloadsOfMeta = (records: readonly { type: string; payload: unknown }[]): any[] =>
  records.filter(({ type }) => type === "session_meta").map(({ payload }) => payload);
