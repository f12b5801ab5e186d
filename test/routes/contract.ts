// What every implementation of the session layer must let the routes do. Run over Sessions in memory here, and by
// whoever implements them over the real ones.

import { describe, expect, test } from "vitest";
import type { Loose } from "../support/http-server.js";

export interface ServedHost {
  url: string;
  /** Prompts that make the model answer at once, run until aborted, and call one tool that needs a decision. */
  says: { quick: string; holds: string; asks: string };
}

interface Answer {
  status: number;
  headers: Headers;
  body: Loose;
}

/** Declares the suite for one implementation. `start` serves it until the test ends. */
export function describeRoutes(name: string, start: () => Promise<ServedHost>): void {
  describe(`routes over ${name}`, () => {
    sessionSuite(start);
    taskSuite(start);
    approvalSuite(start);
  });
}

async function call(served: ServedHost, method: string, path: string, body?: unknown, more = {}): Promise<Answer> {
  const hasBody = body !== undefined;
  const response = await fetch(`${served.url}/api${path}`, {
    method,
    headers: { ...(hasBody ? { "content-type": "application/json" } : {}), ...more },
    ...(hasBody ? { body: JSON.stringify(body) } : {}),
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") && text !== "";
  return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : undefined };
}

const make = async (served: ServedHost, body: object = {}): Promise<string> =>
  (await call(served, "POST", "/sessions", body)).body.sessionId;

/** Says something and reads the Task's own stream to its end. */
async function runTask(served: ServedHost, id: string, input: string): Promise<string> {
  const response = await fetch(`${served.url}/api/sessions/${id}/tasks`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
    body: JSON.stringify({ input }),
  });
  expect(response.status).toBe(200);
  return response.text();
}

/** Reads the Session's stream until `enough` of it came. */
async function readUntil(served: ServedHost, id: string, enough: (text: string) => boolean): Promise<string> {
  const abort = new AbortController();
  const response = await fetch(`${served.url}/api/sessions/${id}/stream`, { signal: abort.signal });
  let text = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    if (enough(text)) break;
  }
  abort.abort();
  return text;
}

function sessionSuite(start: () => Promise<ServedHost>): void {
  test("a Session is made, read, changed, listed and removed", async () => {
    const served = await start();
    const made = await call(served, "POST", "/sessions", { title: "one", approvalMode: "read-only" });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      title: "one",
      approvalMode: "read-only",
      state: "idle",
      archived: false,
      queued: 0,
    });
    expect(made.body.sessionId).toMatch(/^session-\d{4}(-\d\d){5}-[0-9a-f]{8}$/);
    const path = `/sessions/${made.body.sessionId}`;
    expect(made.headers.get("location")).toBe(`/api${path}`);
    expect((await call(served, "GET", path)).body).toEqual(made.body);
    const change = { title: null, archived: true, thinkingLevel: "high", approvalMode: "allow-all" };
    expect((await call(served, "PATCH", path, change)).body).toMatchObject(change);
    expect((await call(served, "GET", "/sessions")).body.sessions).toEqual([]);
    expect((await call(served, "GET", "/sessions?archived=true")).body.sessions).toMatchObject([change]);
    expect((await call(served, "DELETE", path)).status).toBe(204);
    for (const method of ["GET", "DELETE"]) {
      const gone = await call(served, method, path);
      expect([gone.status, gone.body.error.code]).toEqual([404, "session_not_found"]);
    }
  });

  test("a list comes in pages that hold each Session once", async () => {
    const served = await start();
    const ids = new Set<string>();
    for (let n = 0; n < 5; n += 1) ids.add(await make(served));
    const seen: string[] = [];
    let cursor = "";
    for (let page = 0; page < 3; page += 1) {
      const { body } = await call(
        served,
        "GET",
        `/sessions?limit=2${cursor && `&cursor=${encodeURIComponent(cursor)}`}`,
      );
      seen.push(...body.sessions.map((session: Loose) => session.sessionId));
      cursor = body.nextCursor ?? "";
    }
    expect(cursor).toBe("");
    expect(seen).toHaveLength(5);
    expect(new Set(seen)).toEqual(ids);
  });

  test("what cannot be made is refused by name", async () => {
    const served = await start();
    for (const [body, status, code] of [
      [{ provider: "nobody", modelId: "nothing" }, 400, "unknown_model"],
      [{ workspace: "/no/such/directory" }, 400, "workspace_not_found"],
      [{ allowOutsideWorkspace: true }, 403, "not_allowed"],
    ] as const) {
      const answer = await call(served, "POST", "/sessions", body);
      expect([answer.status, answer.body.error.code]).toEqual([status, code]);
    }
    expect((await call(served, "GET", "/sessions")).body.sessions).toEqual([]);
  });

  test("its history has one record at once, the session_meta, and the Trace is that record", async () => {
    const served = await start();
    const id = await make(served);
    const { body } = await call(served, "GET", `/sessions/${id}/messages`);
    expect(body.messages).toMatchObject([{ ordinal: 0, type: "session_meta", payload: { session_id: id } }]);
    const trace = await fetch(`${served.url}/api/sessions/${id}/trace`);
    expect(trace.headers.get("content-type")).toBe("application/x-ndjson");
    const { ordinal: _, ...record } = body.messages[0];
    expect(JSON.parse(await trace.text())).toEqual(record);
  });

  test("D10: the same create with one key makes one Session, and another body is a mismatch", async () => {
    const served = await start();
    const key = { "idempotency-key": "create-1" };
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => call(served, "POST", "/sessions", { title: "t", maxTurns: 3 }, key)),
    );
    expect(new Set(answers.map((answer) => answer.body.sessionId)).size).toBe(1);
    expect(answers.map((answer) => answer.status)).toEqual([201, 201, 201, 201, 201]);
    const swapped = await call(served, "POST", "/sessions", { maxTurns: 3, title: "t" }, key);
    expect(swapped.body).toEqual(answers[0]?.body);
    const other = await call(served, "POST", "/sessions", { title: "other" }, key);
    expect([other.status, other.body.error.code]).toEqual([409, "idempotency_mismatch"]);
    expect((await call(served, "GET", "/sessions")).body.sessions).toHaveLength(1);
  });
}

function taskSuite(start: () => Promise<ServedHost>): void {
  test("a prompt is accepted with its Task, which ends completed", async () => {
    const served = await start();
    const id = await make(served);
    const accepted = await call(served, "POST", `/sessions/${id}/tasks`, { input: served.says.quick });
    expect([accepted.status, accepted.body]).toEqual([202, { taskId: expect.any(String), queued: 0 }]);
    const path = `/sessions/${id}/tasks/${accepted.body.taskId}`;
    expect(accepted.headers.get("location")).toBe(`/api${path}`);
    await readUntil(served, id, (text) => text.includes('"state":"idle"'));
    expect((await call(served, "GET", path)).body).toMatchObject({ state: "ended", status: "completed" });
  });

  test("with Accept: text/event-stream one call shows the whole run, from task_state to the end of the Task", async () => {
    const served = await start();
    const text = await runTask(served, await make(served), served.says.quick);
    const states = [...text.matchAll(/event: server_event\ndata: (\{"type":"task_state".*)\n\n/g)].map((m) =>
      JSON.parse(m[1] ?? ""),
    );
    expect(text.startsWith("retry: ")).toBe(true);
    expect(states[0]).toMatchObject({ state: "running" });
    expect(states.at(-1)).toMatchObject({ state: "idle", ended: { taskId: states[0].taskId, status: "completed" } });
    expect(text.endsWith("\n\n")).toBe(true);
    expect(text.trimEnd().split("\n").at(-1)).toContain('"ended"');
  });

  test("D1: of many prompts at once exactly one starts, and the others are 409 task_in_progress", async () => {
    const served = await start();
    const id = await make(served);
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => call(served, "POST", `/sessions/${id}/tasks`, { input: served.says.holds })),
    );
    const refused = answers.filter((answer) => answer.status !== 202);
    expect(refused).toHaveLength(19);
    for (const { status, body } of refused) expect([status, body.error.code]).toEqual([409, "task_in_progress"]);
    const asStream = await call(
      served,
      "POST",
      `/sessions/${id}/tasks`,
      { input: "x" },
      { accept: "text/event-stream" },
    );
    expect([asStream.status, asStream.body.error.code]).toEqual([409, "task_in_progress"]);
  });

  test("A26: one key starts one Task, whatever form its repetitions ask for", async () => {
    const served = await start();
    const id = await make(served);
    const key = { "idempotency-key": "say-1" };
    const say = (more = {}) =>
      call(served, "POST", `/sessions/${id}/tasks`, { input: served.says.quick }, { ...key, ...more });
    const [one, two] = await Promise.all([say(), say()]);
    expect(two.body).toEqual(one.body);
    await readUntil(served, id, (text) => text.includes('"state":"idle"'));
    const streamed = await fetch(`${served.url}/api/sessions/${id}/tasks`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream", ...key },
      body: JSON.stringify({ input: served.says.quick }),
    });
    const text = await streamed.text();
    expect(text.match(/^data: /gm)).toHaveLength(1);
    expect(text).toContain(`"ended":{"taskId":"${one.body.taskId}"`);
    expect((await say()).body).toEqual(one.body);
    const prompts = (await call(served, "GET", `/sessions/${id}/messages`)).body.messages.filter(
      (message: Loose) => message.payload.role === "user" && message.payload.text === served.says.quick,
    );
    expect(prompts).toHaveLength(1);
  });

  test("abort is 202 while something runs and 204 when idle, and the Session is free again", async () => {
    const served = await start();
    const id = await make(served);
    expect((await call(served, "POST", `/sessions/${id}/abort`)).status).toBe(204);
    const { body } = await call(served, "POST", `/sessions/${id}/tasks`, { input: served.says.holds });
    expect((await call(served, "POST", `/sessions/${id}/abort`, { clearQueue: true })).status).toBe(202);
    await readUntil(served, id, (text) => text.includes('"state":"idle"'));
    expect((await call(served, "GET", `/sessions/${id}/tasks/${body.taskId}`)).body).toMatchObject({
      status: "aborted",
    });
    expect(await runTask(served, id, served.says.quick)).toContain('"status":"completed"');
  });

  test("C17: a client that leaves its Task's stream does not stop the Task", async () => {
    const served = await start();
    const id = await make(served);
    const abort = new AbortController();
    const response = await fetch(`${served.url}/api/sessions/${id}/tasks`, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "text/event-stream" },
      body: JSON.stringify({ input: served.says.holds }),
      signal: abort.signal,
    });
    await response.body?.getReader().read();
    abort.abort();
    expect((await call(served, "GET", `/sessions/${id}`)).body.state).toBe("running");
  });

  test("history, then the stream from its cursor, repeats nothing", async () => {
    const served = await start();
    const id = await make(served);
    await runTask(served, id, served.says.quick);
    const { body } = await call(served, "GET", `/sessions/${id}/messages`);
    expect(body.messages.map((message: Loose) => message.ordinal)).toEqual(
      body.messages.map((_: Loose, n: number) => n),
    );
    const abort = new AbortController();
    const stream = await fetch(`${served.url}/api/sessions/${id}/stream?lastEventId=${body.cursor}`, {
      signal: abort.signal,
    });
    const first = Buffer.from((await stream.body!.getReader().read()).value!).toString();
    abort.abort();
    expect(first).toContain(`id: ${body.cursor}\n`);
    expect(first.match(/^data: /gm)).toHaveLength(1);
    const [last] = (await call(served, "GET", `/sessions/${id}/messages?limit=1`)).body.messages;
    expect(last).toEqual(body.messages.at(-1));
    const before = await call(served, "GET", `/sessions/${id}/messages?before=${last.ordinal}&limit=1`);
    expect(before.body).toMatchObject({ messages: [{ ordinal: last.ordinal - 1 }], nextBefore: last.ordinal - 1 });
    expect((await call(served, "GET", `/sessions/${id}/messages?after=${last.ordinal}`)).body.messages).toEqual([]);
  });
}

function approvalSuite(start: () => Promise<ServedHost>): void {
  const asking = async (served: ServedHost): Promise<{ id: string; callId: string; stream: string }> => {
    const id = await make(served);
    await call(served, "POST", `/sessions/${id}/tasks`, { input: served.says.asks });
    const stream = await readUntil(served, id, (text) => text.includes('"approval_request"'));
    const { approvals } = (await call(served, "GET", `/sessions/${id}/approvals`)).body;
    expect(approvals).toHaveLength(1);
    return { id, callId: approvals[0].toolCall.payload.tool_call_id, stream };
  };

  test("E2, E17: an approval is listed and comes to whoever connects later, with the same times", async () => {
    const served = await start();
    const { id, callId } = await asking(served);
    const again = await readUntil(served, id, (text) => text.includes('"approval_request"'));
    const { approvals } = (await call(served, "GET", `/sessions/${id}/approvals`)).body;
    const shown = JSON.parse(/data: (\{"type":"approval_request".*)\n/.exec(again)?.[1] ?? "");
    expect(shown).toEqual({ type: "approval_request", ...approvals[0] });
    expect(shown.toolCall.payload.tool_call_id).toBe(callId);
    expect((await call(served, "GET", `/sessions/${id}`)).body).toMatchObject({
      pendingApprovals: 1,
      state: "running",
    });
  });

  test("E5: of many racing answers exactly one wins, and the others are told so", async () => {
    const served = await start();
    const { id, callId } = await asking(served);
    const path = `/sessions/${id}/approvals/${encodeURIComponent(callId)}`;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => call(served, "POST", path, { decision: n % 2 ? "deny" : "allow" })),
    );
    expect(answers.filter((answer) => answer.status === 204)).toHaveLength(1);
    for (const { status, body } of answers.filter((answer) => answer.status !== 204)) {
      expect([status, body.error.code]).toEqual([409, "approval_already_decided"]);
    }
  });

  test("E6: while it waits for a person a prompt is 409 task_in_progress, and the approval tells which", async () => {
    const served = await start();
    const { id } = await asking(served);
    const answer = await call(served, "POST", `/sessions/${id}/tasks`, { input: "and?" });
    expect([answer.status, answer.body.error.code]).toEqual([409, "task_in_progress"]);
  });

  test("E7: only the tool_call_id of an open approval is accepted", async () => {
    const served = await start();
    const { id, callId } = await asking(served);
    const { taskId } = JSON.parse(
      /data: (\{"type":"task_state".*)\n/.exec(
        await readUntil(served, id, (text) => text.includes("task_state")),
      )?.[1] ?? "",
    );
    for (const wrong of ["nothing", taskId, id, `${callId}x`, callId.slice(1)]) {
      const answer = await call(served, "POST", `/sessions/${id}/approvals/${wrong}`, { decision: "allow" });
      expect([wrong, answer.status, answer.body.error.code]).toEqual([wrong, 404, "approval_not_found"]);
    }
    const bad = await call(served, "POST", `/sessions/${id}/approvals/${callId}`, { decision: "maybe" });
    expect([bad.status, bad.body.error.code]).toEqual([400, "invalid_request"]);
  });
}
