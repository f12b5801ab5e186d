// Forks and imports over HTTP: what they answer, and what a client that is slow, wrong or gone gets.

import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { verify } from "../../src/cli/verify.js";
import { userText } from "../../src/protocol/builders.js";
import { api, at, history, makeSession, prompt, untilIdle } from "../e2e/api.js";
import { AT } from "../support/messages.js";
import { startRealServer } from "../support/real-server.js";
import { linesOf, richTrace, scriptedMeta } from "../support/rich-trace.js";
import { answer, call, finish, startUpstream, think } from "../support/upstream.js";

const NDJSON = { "content-type": "application/x-ndjson" };

/** Uploads text as it is. */
const post = (server: { url: string }, body: unknown, headers: Record<string, string> = NDJSON, query = "") =>
  api(server, "POST", `/api/sessions/import${query}`, body, headers);

const traceOf = async (server: { url: string }, id: string): Promise<string> =>
  (await fetch(server.url + at(id, "/trace"))).text();

test("a Trace that is downloaded and imported is the same but for its Session, and `omnid verify` accepts both and a fork", async () => {
  const server = await startRealServer();
  const id = await makeSession(server, { approvalMode: "allow-all", title: "mine" });
  await prompt(server, id, "/write a.txt hello");
  await untilIdle(server, id);
  const text = await traceOf(server, id);
  const made = await post(server, text);
  expect(made.status, made.text).toBe(201);
  const { sessionId } = made.body;
  expect(made.headers.get("location")).toBe(`/api/sessions/${sessionId}`);
  const source = (await api(server, "GET", at(id))).body;
  expect(made.body).toMatchObject({ provider: "demo", modelId: "demo", usage: source.usage, title: null });
  const [one, two] = [text, await traceOf(server, sessionId)].map((each) => each.split("\n"));
  expect(two?.slice(1)).toEqual(one?.slice(1));
  const [was, is] = [JSON.parse(one?.[0] ?? ""), JSON.parse(two?.[0] ?? "")];
  const { workspace } = made.body;
  const agentState = join(server.dataDir, "sessions", sessionId);
  expect(is).toEqual({
    ...was,
    payload: { ...was.payload, session_id: sessionId, agent_state: agentState, workspace },
  });
  const { records } = await history(server, id);
  const forked = await api(server, "POST", at(id, "/fork"), { ordinal: records.length - 1 });
  expect(forked.status, forked.text).toBe(201);
  expect(forked.headers.get("location")).toBe(`/api/sessions/${forked.body.sessionId}`);
  expect(forked.body).toMatchObject({ title: "mine", approvalMode: "allow-all", workspace: source.workspace });
  await api(server, "PATCH", at(sessionId), { approvalMode: "allow-all" });
  for (const each of [id, sessionId, forked.body.sessionId]) {
    await prompt(server, each, "/read a.txt");
    await untilIdle(server, each);
    expect(await verify(server.url + at(each), { out: () => {}, err: () => {} })).toBe(0);
  }
});

test("a fork is refused by name: what is open, what is not there, what is not the caller's, what runs", async () => {
  const server = await startRealServer({ OMNID_TOKENS: "alice:a-long-secret,bob:another-secret" });
  const alice = { authorization: "Bearer a-long-secret" };
  const id = await makeSession(server, {}, alice);
  const fork = (body: unknown, headers: Record<string, string> = alice) =>
    api(server, "POST", at(id, "/fork"), body, headers).then(({ status, body }) => [status, body.error?.code]);
  expect(await fork({ ordinal: 1 })).toEqual([400, "invalid_request"]);
  for (const body of [{}, { ordinal: -1 }, { ordinal: 0.5 }, { ordinal: "0" }, { ordinal: 0, title: "x" }]) {
    expect(await fork(body), JSON.stringify(body)).toEqual([400, "invalid_request"]);
  }
  expect(await fork({ ordinal: 0, provider: "demo" })).toEqual([400, "invalid_request"]);
  expect(await fork({ ordinal: 0, provider: "demo", modelId: "none" })).toEqual([400, "unknown_model"]);
  expect(await fork({ ordinal: 0 }, { authorization: "Bearer another-secret" })).toEqual([404, "session_not_found"]);
  const started = await api(server, "POST", at(id, "/tasks"), { input: "/run echo hi" }, alice);
  expect(started.status).toBe(202);
  expect(await fork({ ordinal: 0 })).toEqual([409, "task_in_progress"]);
  await api(server, "POST", at(id, "/abort"), undefined, alice);
  await vi.waitFor(async () => expect((await fork({ ordinal: 2 }))[1]).toBe("ordinal_not_committed"));
  expect(await fork({ ordinal: 1 })).toEqual([201, undefined]);
});

test("only application/x-ndjson is imported, and nothing else takes it", async () => {
  const server = await startRealServer();
  const id = await makeSession(server);
  const text = linesOf([scriptedMeta()]);
  for (const headers of [
    { "content-type": "application/json" },
    { "content-type": "text/plain" },
    { "content-type": "multipart/form-data; boundary=x" },
    { ...NDJSON, "content-encoding": "gzip" },
  ]) {
    const refused = await post(server, text, headers);
    expect([refused.status, refused.body.error.code], JSON.stringify(headers)).toEqual([415, "unsupported_media_type"]);
  }
  expect((await fetch(`${server.url}/api/sessions/import`, { method: "POST" })).status).toBe(415);
  expect((await post(server, text, { "content-type": "application/x-ndjson; charset=utf-8" })).status).toBe(201);
  for (const path of ["/api/sessions", at(id), at(id, "/tasks"), at(id, "/fork")]) {
    const method = path === at(id) ? "PATCH" : "POST";
    expect((await api(server, method, path, text, NDJSON)).status, path).toBe(415);
  }
});

test("a file that cannot be imported is refused with its lines, also one that nobody finished reading", async () => {
  const server = await startRealServer();
  const good = linesOf([userText(AT, "x".repeat(1000))]);
  const empty = await post(server, "");
  expect([empty.status, empty.body.error.details[0].path]).toEqual([400, "line 1"]);
  const refused = await post(server, `${good.repeat(3)}\n`);
  expect(refused.status).toBe(400);
  expect(refused.body.error.details.map((each: { path: string }) => each.path)).toEqual(["line 1", "line 2", "line 3"]);
  // Thirty bad lines end the reading long before the upload ends, and the answer still comes.
  const long = await post(server, "x\n".repeat(30) + good.repeat(20_000));
  expect([long.status, long.body.error.details.length]).toEqual([400, 20]);
  expect((await post(server, "x\n", NDJSON, "?damaged=perhaps")).status).toBe(400);
  const skipped = await post(server, `x\n${linesOf([scriptedMeta()])}y\n`, NDJSON, "?damaged=skip");
  expect(skipped.status, skipped.text).toBe(201);
  expect(readdirSync(join(server.dataDir, "sessions"))).toEqual([skipped.body.sessionId]);
});

test("an upload that says it is over a gigabyte is refused before it is read", async () => {
  const server = await startRealServer();
  const head = `POST /api/sessions/import HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-ndjson\r\n`;
  const said = await rawAnswer(server, `${head}content-length: ${1024 ** 3 + 1}\r\n\r\n{`);
  expect(said).toMatch(/^HTTP\/1.1 413 .*"code":"body_too_large"/s);
});

test("C16: a client that goes away in the middle of its upload leaves nothing", async () => {
  const server = await startRealServer();
  const text = linesOf(await richTrace());
  const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write(
    `POST /api/sessions/import HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/x-ndjson\r\ncontent-length: 100000\r\n\r\n${text}`,
  );
  const folder = join(server.dataDir, "sessions");
  await vi.waitFor(() => expect(readdirSync(folder).some((name) => name.startsWith(".new-"))).toBe(true));
  socket.destroy();
  await vi.waitFor(() => expect(readdirSync(folder)).toEqual([]));
  expect(readdirSync(join(server.dataDir, "workspaces"))).toEqual([]);
});

function rawAnswer(server: { url: string }, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1", () => socket.write(bytes));
    let text = "";
    socket.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      if (text.includes("}}")) socket.destroy();
    });
    socket.on("close", () => resolve(text)).on("error", reject);
  });
}

test("F9: a fork sends its provider the bytes that its source would have, and another provider nothing of the first one's own", async () => {
  const upstream = await startUpstream();
  const folder = mkdtempSync(join(tmpdir(), "omnid-fork-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const model = { provider: "scripted", baseUrl: upstream.url, apiKey: "sk-1", thinking: true };
  const models = [
    { ...model, modelId: "m", protocol: "openai-chat" },
    { ...model, modelId: "claude-sonnet-4-5", protocol: "anthropic-messages" },
  ];
  const config = JSON.stringify({ models, defaultModel: { provider: "scripted", modelId: "m" } });
  const server = await startRealServer(
    { OMNID_CONFIG: "/omnid.json", OMNID_RETRY_LIMIT: "0" },
    { "/omnid.json": config },
  );
  upstream.script(
    {
      steps: [
        ...think("secret reasoning"),
        ...call(0, "c1", "read_file", { file_path: "none" }),
        ...finish("tool_calls"),
      ],
    },
    answer("one"),
    answer("two"),
  );
  const id = await makeSession(server, { approvalMode: "allow-all", workspace: folder });
  for (const input of ["first", "second"]) {
    await prompt(server, id, input);
    await untilIdle(server, id);
  }
  const live = upstream.requests.map(({ raw }) => raw);
  const { records } = await history(server, id);
  upstream.otherwise(answer("again"));
  for (const [input, which] of [
    ["first", 0],
    ["second", 2],
  ] as const) {
    const ordinal = records.findIndex(({ payload }) => "text" in payload && payload.text === input) - 1;
    const fork = await api(server, "POST", at(id, "/fork"), { ordinal });
    await prompt(server, fork.body.sessionId, input);
    await untilIdle(server, fork.body.sessionId);
    expect(upstream.requests.at(-1)?.raw).toBe(live[which]);
  }
  const ordinal = records.length - 1;
  const elsewhere = await api(server, "POST", at(id, "/fork"), {
    ordinal,
    provider: "scripted",
    modelId: "claude-sonnet-4-5",
  });
  expect(elsewhere.status, elsewhere.text).toBe(201);
  await prompt(server, elsewhere.body.sessionId, "third");
  await untilIdle(server, elsewhere.body.sessionId);
  const raw = upstream.requests.at(-1)?.raw ?? "";
  for (const text of ["first", "one", "second", "two", "third", "c1"]) expect(raw).toContain(text);
  expect(raw).not.toMatch(/reasoning|scripted\/m/);
});
