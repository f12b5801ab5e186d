// Caps, and connections that are not what they seem.

import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { startOmnid } from "../support/server.js";
import { api, asked, at, follow, history, makeSession, prompt } from "./api.js";

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
    full(await api(server, "POST", "/api/sessions", {}), "too_many_sessions");
    const reader = await follow(server, first);
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
    reader.close();
    resumed.close();
    // The refused prompt left nothing behind.
    expect((await history(server, second)).records).toHaveLength(1);
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
