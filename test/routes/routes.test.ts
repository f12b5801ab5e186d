import { expect, test } from "vitest";
import { call, eventsIn, makeSession, openStream, startServer } from "../support/http-server.js";
import { describeRoutes } from "./contract.js";

const says = { quick: "hello", holds: "hold", asks: "ask" };
describeRoutes("Sessions in memory", async () => ({ url: (await startServer()).url, says }));

test("D10: an input that says nothing or cannot be read is 400 with its path, and nothing starts", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const png = "data:image/png;base64,iVBORw0KGgo=";
  const file = (fileName: string, dataUrl = "data:text/plain;base64,aGk=") => [{ type: "file", fileName, dataUrl }];
  const image = (imageUrl: string) => [{ type: "image_url", imageUrl }];
  const bad: [unknown, string][] = [
    [undefined, "input"],
    ["", "input"],
    [" \n\t\u3000", "input"],
    [[], "input"],
    [{}, "input"],
    [[{ type: "text", text: " " }], "input.0.text"],
    [[{ type: "text", text: "a" }, { type: "video" }], "input.1.type"],
    [[{ type: "text", text: "a", lang: "en" }], "input.0.lang"],
    [image("ftp://x/y.png"), "input.0.imageUrl"],
    [image("javascript:alert(1)"), "input.0.imageUrl"],
    [image("data:text/html;base64,aGk="), "input.0.imageUrl"],
    [image("data:image/png;base64,"), "input.0.imageUrl"],
    [image("data:image/png;base64,a"), "input.0.imageUrl"],
    [image("data:image/png;base64,a?=="), "input.0.imageUrl"],
    [image("data:image/png,raw"), "input.0.imageUrl"],
    [image("https://"), "input.0.imageUrl"],
    [file("../etc/passwd"), "input.0.fileName"],
    [file("a\\b"), "input.0.fileName"],
    [file(".."), "input.0.fileName"],
    [file(""), "input.0.fileName"],
    [file("a\u0000b"), "input.0.fileName"],
    [file("ok.txt", "https://x/y"), "input.0.dataUrl"],
    [[{ type: "image_url", imageUrl: png, text: "x" }], "input.0.text"],
  ];
  for (const [input, path] of bad) {
    const answer = await call(server, "POST", `/api/sessions/${id}/tasks`, { input });
    expect([input, answer.status, answer.body.error.code]).toEqual([input, 400, "invalid_request"]);
    expect([input, answer.body.error.details.map((each: { path: string }) => each.path)]).toEqual([input, [path]]);
  }
  expect((await call(server, "GET", `/api/sessions/${id}`)).body.state).toBe("idle");
  const good = [{ type: "text", text: "look" }, { type: "image_url", imageUrl: png }, ...file("naïve name.txt")];
  expect((await call(server, "POST", `/api/sessions/${id}/tasks`, { input: good })).status).toBe(202);
});

test("a data URL of many megabytes is checked in linear time", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const dataUrl = `data:application/pdf;base64,${"QUJD".repeat(2_000_000)}`;
  const answer = await call(server, "POST", `/api/sessions/${id}/tasks`, {
    input: [{ type: "file", fileName: "a.pdf", dataUrl }],
  });
  expect(answer.status).toBe(202);
});

test("whenBusy takes the four words of the contract and no other", async () => {
  const server = await startServer();
  const submit = async (whenBusy: string) => {
    const id = await makeSession(server);
    return call(server, "POST", `/api/sessions/${id}/tasks`, { input: "hi", whenBusy });
  };
  for (const word of ["reject", "queue", "steer", "interrupt"]) {
    expect([word, (await submit(word)).status]).toEqual([word, 202]);
    expect((await submit(`${word}!`)).body.error.code).toBe("invalid_request");
  }
});

test("queries are held to their bounds, and a parameter that nobody knows passes", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  for (const query of [
    "limit=0",
    "limit=1001",
    "limit=",
    "limit=1e2",
    "limit=1&limit=2",
    "before=-1",
    "after=x",
    "context=old",
  ]) {
    const answer = await call(server, "GET", `/api/sessions/${id}/messages?${query}`);
    expect([query, answer.status, answer.body.error.details[0].path]).toEqual([query, 400, query.split("=")[0]]);
  }
  expect((await call(server, "GET", "/api/sessions?limit=201")).status).toBe(400);
  expect((await call(server, "GET", "/api/sessions?limit=200&utm=x")).status).toBe(200);
});

test("an answer that cannot be recorded is 507, also for a key, which then may be tried again", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const key = { "idempotency-key": "k" };
  server.host.diskIsFull = true;
  const failed = await call(server, "POST", `/api/sessions/${id}/tasks`, { input: "hi" }, key);
  expect([failed.status, failed.body.error.code]).toEqual([507, "storage_failed"]);
  server.host.diskIsFull = false;
  expect((await call(server, "POST", `/api/sessions/${id}/tasks`, { input: "hi" }, key)).status).toBe(202);
});

test("H10: past the caps Sessions are 429 with retry-after, and the body says which cap", async () => {
  const server = await startServer({ OMNID_MAX_SESSIONS: "1" });
  await makeSession(server);
  const answer = await call(server, "POST", "/api/sessions", {});
  expect([answer.status, answer.body.error.code]).toEqual([429, "too_many_sessions"]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a second stream with the key of a Task that is being started follows it before it is recorded", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  let open = () => {};
  server.host.gate = new Promise((resolve) => {
    open = resolve;
  });
  const options = {
    method: "POST",
    body: { input: "hello" },
    headers: { accept: "text/event-stream", "idempotency-key": "k" },
  };
  const one = await openStream(server, `/api/sessions/${id}/tasks`, options);
  const two = await openStream(server, `/api/sessions/${id}/tasks`, options);
  const begun = await Promise.all([one, two].map((stream) => stream.until((text) => text.includes("task_state"))));
  const taskIds = begun.map((text) => eventsIn(text)[0]?.data.taskId);
  expect(taskIds[0]).toBe(taskIds[1]);
  open();
  for (const stream of [one, two]) expect(eventsIn(await stream.rest()).at(-1)?.data.ended.taskId).toBe(taskIds[0]);
});

test("every answer is held against its schema: one with a field too many or too few fails the test", async () => {
  const server = await startServer();
  const { models } = server.host;
  server.host.models = () => ({ ...models.call(server.host), extra: true }) as ReturnType<typeof models>;
  await call(server, "GET", "/api/models");
  server.host.models = () => ({ models: [] }) as unknown as ReturnType<typeof models>;
  await call(server, "GET", "/api/models");
  expect(server.misfits).toHaveLength(2);
  server.misfits.length = 0;
});
