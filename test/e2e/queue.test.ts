// What a client gives a busy Session, over HTTP: Tasks that wait, steering, an interrupt, the end of a wait.

import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { answer, finish, gate, say, startUpstream, type Upstream, usage } from "../support/upstream.js";
import { api, at, expectLawful, expectPaired, follow, makeSession, payloads, prompt } from "./api.js";

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({
    atEnd: atFileEnd,
    config: upstream.config(),
    env: { OMNID_RETRY_BASE_MS: "60000", OMNID_RETRY_MAX_MS: "60000" },
  });
});

const submit = (id: string, body: object) => api(server, "POST", at(id, "/tasks"), body);

/** A Session whose Task waits for the gate. */
async function busy(more: object = {}) {
  const id = await makeSession(server, { approvalMode: "allow-all", ...more });
  const reader = await follow(server, id);
  const rest = gate();
  upstream.script({ steps: [...say("wait "), rest, ...say("over"), ...finish("stop", usage(1, 1))] });
  const taskId = await prompt(server, id, "first");
  await reader.untilPayload("partial_text", ({ text }) => text === "wait ");
  return { id, reader, rest, taskId };
}

const userTexts = (body: { messages: { role: string; content: unknown }[] }) =>
  body.messages.filter(({ role }) => role === "user").map(({ content }) => JSON.stringify(content));

describe("whenBusy", () => {
  test("queue: the Tasks wait in their order, each is answered 202 with its place, and task_state tells every change", async () => {
    const { id, reader, rest, taskId } = await busy();
    upstream.script(answer("second"), answer("third"));
    const places = [
      await submit(id, { input: "b", whenBusy: "queue" }),
      await submit(id, { input: "c", whenBusy: "queue" }),
    ];
    expect(places.map(({ status, body }) => [status, body.queued])).toEqual([
      [202, 1],
      [202, 2],
    ]);
    const [second, third] = places.map(({ body }) => body.taskId);
    expect((await api(server, "GET", at(id))).body).toMatchObject({ state: "running", queued: 2 });
    expect((await api(server, "GET", at(id, `/tasks/${third}`))).body).toEqual({ taskId: third, state: "queued" });
    const { items } = (await api(server, "GET", at(id, "/queue"))).body;
    expect(items).toEqual([
      { itemId: second, kind: "task", input: "b", createdAt: expect.any(String) },
      { itemId: third, kind: "task", input: "c", createdAt: expect.any(String) },
    ]);
    rest.open();
    await reader.untilEnded(third);
    const states = reader.events.filter(({ data }) => data.type === "task_state").map(({ data }) => data);
    expect(states.flatMap(({ ended }) => ended?.taskId ?? [])).toEqual([taskId, second, third]);
    expect(states.map(({ queued }) => queued).filter((n, i, all) => n !== all[i - 1])).toEqual([0, 1, 2, 1, 0]);
    expect((await api(server, "GET", at(id, "/queue"))).body).toEqual({ items: [] });
    await expectLawful(server, id, reader.messages);
  });

  test("queue with Accept: text/event-stream: the stream opens at once, and has that Task and no other", async () => {
    const { id, rest } = await busy();
    upstream.script(answer("second"));
    const own = await openSse(server.url + at(id, "/tasks"), {
      method: "POST",
      headers: { accept: "text/event-stream" },
      body: { input: "b", whenBusy: "queue" },
      waits: true,
    });
    expect((await own.until(() => true)).data).toMatchObject({ type: "task_state", state: "running", queued: 1 });
    rest.open();
    await own.ended;
    expect(own.events.at(-1)?.data).toMatchObject({ state: "idle", ended: { status: "completed" } });
    expect(payloads(own.messages, "text").map(({ text }) => text)).toEqual(["second"]);
    expect(own.serverEvents("task_state").flatMap(({ ended }) => ended ?? [])).toHaveLength(1);
  });

  test("taken back while it waits: 200 with the item, then 404; its own stream ends, and it has ended as aborted", async () => {
    const { id, rest, reader, taskId } = await busy();
    const own = await openSse(server.url + at(id, "/tasks"), {
      method: "POST",
      headers: { accept: "text/event-stream" },
      body: { input: "b", whenBusy: "queue" },
    });
    await own.until(() => true);
    const [item] = (await api(server, "GET", at(id, "/queue"))).body.items;
    const path = at(id, `/queue/${item.itemId}`);
    expect(await api(server, "DELETE", path)).toMatchObject({ status: 200, body: item });
    expect(await api(server, "DELETE", path)).toMatchObject({ status: 404, body: { error: { code: "not_pending" } } });
    await own.ended;
    expect(own.events.at(-1)?.data).toMatchObject({ ended: { taskId: item.itemId, status: "aborted" } });
    expect((await api(server, "GET", at(id, `/tasks/${item.itemId}`))).body).toMatchObject({ status: "aborted" });
    rest.open();
    await reader.untilEnded(taskId);
  });

  test("interrupt: what runs is aborted, this one is next, and the model is told what was interrupted", async () => {
    const { id, reader, taskId } = await busy();
    upstream.script(answer("at once"));
    const accepted = await submit(id, { input: "now this", whenBusy: "interrupt" });
    expect([accepted.status, accepted.body.queued]).toEqual([202, 1]);
    await reader.untilEnded(accepted.body.taskId);
    expect((await api(server, "GET", at(id, `/tasks/${taskId}`))).body.status).toBe("aborted");
    const sent = upstream.requests.at(-1)!.body;
    expectPaired(sent.messages);
    expect(userTexts(sent).join()).toMatch(/first.*\[turn_aborted\].*wait .*\[\/turn_aborted\].*now this/);
    await expectLawful(server, id, reader.messages);
  });

  test("steer: the running Task's model gets it next; idle it starts a Task", async () => {
    const { id, reader, rest, taskId } = await busy();
    upstream.script(answer("as you say"));
    const said = await submit(id, { input: "to the left", whenBusy: "steer" });
    expect(said).toMatchObject({ status: 202, body: { taskId, queued: 0, steerId: expect.any(String) } });
    rest.open();
    await reader.untilEnded(taskId);
    expect(userTexts(upstream.requests.at(-1)!.body)).toEqual(['"first"', '"to the left"']);
    upstream.script(answer("yes"));
    const idle = await submit(id, { input: "more", whenBusy: "steer" });
    expect(idle.body).toEqual({ taskId: expect.any(String), queued: 0 });
    await reader.untilEnded(idle.body.taskId);
    const records = await expectLawful(server, id, reader.messages);
    expect(payloads(records, "text").filter(({ steer_id }) => steer_id === said.body.steerId)).toHaveLength(1);
  });

  test("reject, the default: 409, and nothing of it is stored", async () => {
    const { id, reader, rest, taskId } = await busy();
    expect(await submit(id, { input: "b" })).toMatchObject({
      status: 409,
      body: { error: { code: "task_in_progress" } },
    });
    rest.open();
    await reader.untilEnded(taskId);
    expect(JSON.stringify(await expectLawful(server, id, reader.messages))).not.toContain('"b"');
  });
});

test("steer: Trace-only, announced by the number of records, refused when nothing runs", async () => {
  const { id, reader, rest, taskId } = await busy();
  upstream.script(answer("done"));
  const steered = await api(server, "POST", at(id, "/steer"), { input: "mind the tests" });
  expect(steered.status).toBe(202);
  rest.open();
  await reader.untilEnded(taskId);
  const { messages } = (await api(server, "GET", at(id, "/messages"))).body;
  const delivered = messages.find(({ payload }: { payload: { steer_id?: string } }) => payload.steer_id !== undefined);
  expect(delivered.payload).toMatchObject({ role: "user", text: "mind the tests", steer_id: steered.body.steerId });
  const told = reader.events.filter(({ data }) => data.type === "task_state").map(({ data }) => data.records);
  expect(told).toContain(delivered.ordinal + 1);
  expect(await api(server, "POST", at(id, "/steer"), { input: "late" })).toMatchObject({
    status: 409,
    body: { error: { code: "not_running" } },
  });
  expect((await api(server, "POST", at(id, "/steer"), { input: " " })).status).toBe(400);
});

test("abort with clearQueue takes back all that waits, and answers 202; idle it is 204", async () => {
  const { id, reader, taskId } = await busy();
  const { taskId: second } = (await submit(id, { input: "b", whenBusy: "queue" })).body;
  await api(server, "POST", at(id, "/steer"), { input: "aside" });
  expect((await api(server, "POST", at(id, "/abort"), { clearQueue: true })).status).toBe(202);
  await reader.untilEnded(taskId);
  await reader.untilEnded(second);
  expect((await api(server, "GET", at(id, "/queue"))).body).toEqual({ items: [] });
  expect((await api(server, "POST", at(id, "/abort"), { clearQueue: true })).status).toBe(204);
  await expectLawful(server, id, reader.messages);
});

test("retry-now ends the wait at once and uses up no try; without a wait it skips nothing", async () => {
  const id = await makeSession(server);
  const reader = await follow(server, id);
  upstream.script({ status: 503, steps: ["{}"] }, answer("there"));
  const taskId = await prompt(server, id, "go");
  const { data } = await reader.until(({ data }) => data.retry !== undefined);
  expect(data.retry).toMatchObject({ attempt: 1, status: "timeout", retryAt: expect.any(String) });
  expect((await api(server, "POST", at(id, "/retry-now"))).body).toEqual({ skipped: true });
  await reader.untilEnded(taskId);
  expect(payloads(reader.messages, "request_end").map(({ status, attempt }) => [status, attempt])).toEqual([
    ["timeout", 1],
    ["completed", 2],
  ]);
  expect((await api(server, "POST", at(id, "/retry-now"))).body).toEqual({ skipped: false });
});
