// Idempotency keys of a server that is ended in either way, and at any instant.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { type Server, startOmnid } from "../support/server.js";
import { api, at, history, makeSession, untilIdle } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 180_000 });

const create = (server: Server, key: string, body: object = {}) =>
  api(server, "POST", "/api/sessions", body, { "idempotency-key": key });
const say = (server: Server, id: string, key: string, body: object, headers: Record<string, string> = {}) =>
  api(server, "POST", at(id, "/tasks"), body, { "idempotency-key": key, ...headers });

async function promptsIn(server: Server, id: string): Promise<string[]> {
  const { records } = await history(server, id);
  return records.flatMap(({ payload }) => ("text" in payload && payload.role === "user" ? [String(payload.text)] : []));
}

test.each(["SIGTERM", "SIGKILL"] as const)(
  "A26, D10: after %s a key still gives its first answer and starts nothing",
  async (signal) => {
    let server = await startOmnid();
    const made = await create(server, "create", { title: "one" });
    const { sessionId } = made.body;
    const accepted = await say(server, sessionId, "say", { input: "hello" });
    expect(accepted.status).toBe(202);
    await untilIdle(server, sessionId);
    await api(server, "PATCH", at(sessionId), { title: "two" });
    await server.stop(signal);
    server = await server.restart();
    const again = await create(server, "create", { title: "one" });
    expect([again.status, again.body]).toEqual([201, made.body]);
    expect(again.headers.get("location")).toBe(made.headers.get("location"));
    const repeated = await say(server, sessionId, "say", { input: "hello" });
    expect([repeated.status, repeated.body]).toEqual([202, accepted.body]);
    const stream = await fetch(server.url + at(sessionId, "/tasks"), {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", "idempotency-key": "say" },
      body: JSON.stringify({ input: "hello" }),
    });
    expect(await stream.text()).toContain(`"ended":{"taskId":"${accepted.body.taskId}"`);
    expect(await promptsIn(server, sessionId)).toEqual(["hello"]);
    expect((await create(server, "create", { title: "other" })).body.error.code).toBe("idempotency_mismatch");
    expect((await say(server, sessionId, "say", { input: "other" })).body.error.code).toBe("idempotency_mismatch");

    await api(server, "DELETE", at(sessionId));
    expect((await create(server, "create", { title: "one" })).body).toEqual(made.body);
    expect((await say(server, sessionId, "say", { input: "hello" })).status).toBe(404);
    expect((await api(server, "GET", "/api/sessions")).body.sessions).toEqual([]);
  },
);

test("A26: killed at any instant, a client that tries again with its key has made one Session and said everything once", async () => {
  let server = await startOmnid();
  const id = await makeSession(server);
  const keys = Array.from({ length: 10 }, (_, n) => `key-${n}`);
  for (const [n, key] of keys.entries()) {
    // Each is sent into a server that dies a little later than for the one before.
    const dying = server;
    const sent = [create(dying, key, { title: key }), say(dying, id, key, { input: key, whenBusy: "queue" })].map(
      (answer) => answer.catch(() => undefined),
    );
    await sleep(2 * n);
    await dying.stop("SIGKILL");
    const [made, accepted] = await Promise.all(sent);
    server = await dying.restart();
    const again = await create(server, key, { title: key });
    expect(again.status, again.text).toBe(201);
    if (made !== undefined) expect(again.body).toEqual(made.body);
    const repeated = await say(server, id, key, { input: key, whenBusy: "queue" });
    expect(repeated.status, repeated.text).toBe(202);
    if (accepted !== undefined) expect(repeated.body).toEqual(accepted.body);
    const task = await api(server, "GET", at(id, `/tasks/${repeated.body.taskId}`));
    expect(task.status, task.text).toBe(200);
  }
  await vi.waitFor(async () => expect((await api(server, "GET", at(id))).body).toMatchObject({ queued: 0 }), 60_000);
  await untilIdle(server, id);
  expect((await promptsIn(server, id)).sort()).toEqual(keys);
  const { sessions } = (await api(server, "GET", "/api/sessions?limit=200")).body;
  expect(sessions.map(({ title }: { title: string | null }) => title).sort()).toEqual([...keys, null].sort());
});

test("A26: a key gives its Task and how it went for as long as it is kept, whatever has run since then", async () => {
  let server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: "0" } });
  const id = await makeSession(server);
  const first = await say(server, id, "say", { input: "hello" });
  await untilIdle(server, id);
  const more = Array.from({ length: 130 }, (_, n) =>
    api(server, "POST", at(id, "/tasks"), { input: `more ${n}`, whenBusy: "queue" }),
  );
  for (const { status } of await Promise.all(more)) expect(status).toBe(202);
  await vi.waitFor(async () => expect((await api(server, "GET", at(id))).body).toMatchObject({ queued: 0 }), 60_000);
  await untilIdle(server, id);
  const task = await api(server, "GET", at(id, `/tasks/${first.body.taskId}`));
  expect(task.body).toMatchObject({ state: "ended", status: "completed" });

  await server.stop("SIGTERM");
  server = await server.restart();
  const stream = await fetch(server.url + at(id, "/tasks"), {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream", "idempotency-key": "say" },
    body: JSON.stringify({ input: "hello" }),
    signal: AbortSignal.timeout(30_000),
  });
  expect(await stream.text()).toContain(`"ended":{"taskId":"${first.body.taskId}","status":"completed"}`);
  expect((await api(server, "GET", at(id, `/tasks/${first.body.taskId}`))).body).toEqual(task.body);
});
