// Caps, and connections that are not what they seem.

import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { figuresOf } from "../support/prometheus.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { api, asked, at, decide, follow, history, makeSession, payloads, prompt, untilIdle } from "./api.js";

/** A stream whose first bytes are a comment, which the strict reader of Sessions' streams does not take. */
async function openEvents(server: Server): Promise<{ close(): void; response: Response }> {
  const abort = new AbortController();
  const response = await fetch(`${server.url}/api/events`, { signal: abort.signal });
  if (response.status !== 200) throw new Error(`answered ${response.status}`);
  // Kept: the stream of one that is collected is closed.
  return { close: () => abort.abort(), response };
}

describe("H10", () => {
  test("Tasks, Sessions and streams beyond their caps are 429 with retry-after, and a stream that resumes is let in", async () => {
    const server = await startOmnid({
      env: { OMNID_MAX_TASKS: "1", OMNID_MAX_SESSIONS: "2", OMNID_MAX_STREAMS: "1" },
    });
    const [first, second] = [await makeSession(server), await makeSession(server)];
    const full = (answer: Awaited<ReturnType<typeof api>>, code: string) => {
      expect(answer).toMatchObject({ status: 429, body: { error: { code } } });
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    };
    const reader = await follow(server, first);
    const other = await follow(server, second, { lastEventId: (await history(server, second)).cursor });
    full(await api(server, "POST", "/api/sessions", {}), "too_many_sessions");
    await prompt(server, first, "/run true");
    await asked(reader);
    full(await api(server, "POST", at(second, "/tasks"), { input: "hello" }), "too_many_tasks");
    full(await api(server, "GET", at(second, "/stream")), "too_many_streams");
    full(
      await api(server, "POST", at(first, "/tasks"), { input: "x" }, { accept: "text/event-stream" }),
      "too_many_streams",
    );
    const resumed = await follow(server, first, { lastEventId: reader.lastEventId as string });
    await asked(resumed);
    for (const open of [reader, other, resumed]) open.close();
    // The refused prompt left nothing behind.
    expect((await history(server, second)).records).toHaveLength(1);
  });

  test("a Session that would have to be loaded beyond the cap is 429 for every call but a stream that resumes and DELETE", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_SESSIONS: "1" } });
    const [unloaded, deleted] = [await makeSession(server), await makeSession(server)];
    const { cursor } = await history(server, deleted);
    const busy = await makeSession(server);
    const reader = await follow(server, busy);
    await prompt(server, busy, "/run true");
    const callId = await asked(reader);
    for (const [method, rest, body] of [
      ["GET", ""],
      ["PATCH", "", { title: "x" }],
      ["GET", "/messages"],
      ["GET", "/stream"],
      ["POST", "/tasks", { input: "hello" }],
      ["POST", "/fork", { ordinal: 0 }],
    ] as const) {
      const refused = await api(server, method, at(unloaded, rest), body);
      expect([rest, refused.status, refused.body.error.code]).toEqual([rest, 429, "too_many_sessions"]);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect((await api(server, "GET", at("session-of-nobody"))).status).toBe(404);
    expect((await api(server, "GET", "/api/sessions")).body.sessions).toHaveLength(3);
    const resumed = await follow(server, deleted, { lastEventId: cursor });
    await resumed.until(({ data }) => data.type === "task_state");
    expect((await api(server, "GET", at(deleted))).status).toBe(200);
    resumed.close();
    expect((await api(server, "DELETE", at(unloaded))).status).toBe(204);
    expect(await decide(server, busy, callId, "allow")).toBe(204);
  });

  test("idle Sessions are looked at one after the other, whatever the cap, and while others are polled", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_SESSIONS: "2" } });
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push(await makeSession(server));
    const [third = "", ...polled] = ids;
    const looked = [...ids, ...polled.slice(0, 2), third, ...polled.slice(0, 2), third];
    for (const id of looked) expect((await api(server, "GET", at(id))).status).toBe(200);
  });

  test("of many prompts at once as many run as may, and one that is refused or fails gives its place back", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_TASKS: "3" } });
    const ids = await Promise.all(Array.from({ length: 10 }, () => makeSession(server)));
    const input = [{ type: "file", fileName: "a.zip", dataUrl: "data:application/zip;base64,AAAA" }];
    const failed = await Promise.all(ids.map((id) => api(server, "POST", at(id, "/tasks"), { input })));
    for (const { body } of failed) expect(["file_not_supported", "too_many_tasks"]).toContain(body.error.code);
    const answers = await Promise.all(ids.map((id) => api(server, "POST", at(id, "/tasks"), { input: "/run true" })));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(7);
    expect((await figuresOf(server)).of("omnid_tasks_running")).toBe(3);
    const [running] = ids.filter((_, index) => answers[index]?.status === 202);
    await api(server, "POST", at(running as string, "/abort"), {});
    await untilIdle(server, running as string);
    await prompt(server, running as string, "/run true");
    // A Session that waits for the place of another is told so, also where it would queue.
    const [waiting] = ids.filter((_, index) => answers[index]?.status === 429);
    const queued = await api(server, "POST", at(waiting as string, "/tasks"), { input: "x", whenBusy: "queue" });
    expect(queued.body.error.code).toBe("too_many_tasks");
  });

  test("a subagent for which there is no room is told so to the model, and leaves nothing behind", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_SESSIONS: "1", OMNID_MAX_TASKS: "1" } });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    await reader.untilEnded(await prompt(server, id, "/subagent hello"));
    const [output] = payloads(reader.messages, "tool_call_output");
    expect(output).toMatchObject({ stop_reason: "failed", output: expect.stringContaining("in memory") });
    expect((await api(server, "GET", `/api/sessions?parent=${id}`)).body.sessions).toEqual([]);
    const roomy = await startOmnid({ env: { OMNID_MAX_SESSIONS: "2", OMNID_MAX_TASKS: "1" } });
    const parent = await makeSession(roomy, { approvalMode: "allow-all" });
    const other = await follow(roomy, parent);
    // A child works in the place of its parent's Task.
    await other.untilEnded(await prompt(roomy, parent, "/subagent hello"));
    expect(payloads(other.messages, "tool_call_output").at(-1)?.stop_reason).toBeUndefined();
  });

  test("of many streams at once exactly as many open as may, whatever they are, and every slot comes back", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_STREAMS: "5" } });
    const ids = await Promise.all(Array.from({ length: 4 }, () => makeSession(server)));
    const open = async (n: number) => {
      const id = ids[n % 4] as string;
      if (n % 3 === 0) return openEvents(server);
      if (n % 3 === 1) return follow(server, id);
      return openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: "/run true" } });
    };
    for (let round = 0; round < 3; round++) {
      const settled = await Promise.allSettled(Array.from({ length: 24 }, (_, n) => open(n)));
      const readers = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      expect(readers).toHaveLength(5);
      expect((await figuresOf(server)).of("omnid_streams")).toBe(5);
      // Neither takes a slot.
      expect((await fetch(`${server.url}/api/events`, { method: "HEAD" })).status).toBe(200);
      expect((await fetch(server.url + at(ids[0] as string, "/stream"), { method: "OPTIONS" })).status).toBe(204);
      for (const reader of readers) reader.close();
      await expect.poll(async () => (await figuresOf(server)).of("omnid_streams")).toBe(0);
      for (const id of ids) {
        await api(server, "POST", at(id, "/abort"), { clearQueue: true });
        await untilIdle(server, id);
      }
      await expect.poll(async () => (await figuresOf(server)).of("omnid_streams")).toBe(0);
    }
  });

  test("clients that hang up before they are answered hold no slot", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_STREAMS: "3" } });
    const id = await makeSession(server);
    const body = JSON.stringify({ input: "hello" });
    const requests = [
      `GET ${at(id, "/stream")} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
      "GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n",
      `POST ${at(id, "/tasks")} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    ];
    for (let n = 0; n < 60; n++) {
      const socket = connect(server.port, "127.0.0.1");
      await once(socket, "connect");
      socket.write(requests[n % 3] as string);
      // At once, or when the server has had a moment to begin.
      if (n % 2 === 0) socket.resetAndDestroy();
      else setImmediate(() => socket.destroy());
    }
    // Some of them may still wait to be accepted, and have a slot for a moment.
    const followers = async () => {
      const tried = await Promise.allSettled([1, 2, 3].map(() => follow(server, id)));
      const open = tried.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
      if (open.length < 3) for (const reader of open) reader.close();
      return open.length;
    };
    await expect.poll(followers, { timeout: 20_000 }).toBe(3);
  });
});

test("C2: a reader that half-closes without reading is let go, and the Session goes on", async () => {
  const server = await startOmnid();
  const id = await makeSession(server);
  const socket = connect(server.port, "127.0.0.1");
  const closed = new Promise((resolve) => socket.once("close", resolve));
  socket.write(`GET ${at(id, "/stream")} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  await new Promise((resolve) => socket.once("data", resolve));
  socket.end();
  socket.resume();
  await closed;
  const reader = await follow(server, id);
  await reader.untilEnded(await prompt(server, id, "hello"));
});

test("B12: six open streams leave room for a call, and none of them holds up another", async () => {
  const server = await startOmnid();
  const id = await makeSession(server);
  const readers = await Promise.all(Array.from({ length: 6 }, () => follow(server, id)));
  const taskId = await prompt(server, id, "hello");
  await Promise.all(readers.map((reader) => reader.untilEnded(taskId)));
  for (const reader of readers) expect(reader.messages).toEqual(readers[0]?.messages);
});

test("the discovery surface answers what the contract names", async () => {
  const server = await startOmnid();
  const document = await (await fetch(`${server.url}/openapi.json`)).json();
  const paths = Object.keys((document as { paths: object }).paths);
  for (const path of [
    "/api/sessions",
    "/api/sessions/{id}/stream",
    "/api/sessions/{id}/tasks",
    "/api/sessions/{id}/messages",
  ]) {
    expect(paths).toContain(path);
  }
  const models = await api(server, "GET", "/api/models");
  expect(models.body.defaultModel).toEqual({ provider: "demo", modelId: "demo" });
  expect(models.body.models).toContainEqual(
    expect.objectContaining({ provider: "demo", modelId: "demo", available: true }),
  );
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toMatch(/^# TYPE omnid_sessions gauge$/m);
});
