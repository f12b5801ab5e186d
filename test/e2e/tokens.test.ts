// Tokens: who sees what, and where a secret is never found.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test, vi } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { api, at, makeSession } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const ANNA = "anna-secret-1111111111";
const BERT = "bert-secret-2222222222";
const anna = { authorization: `Bearer ${ANNA}` };
const bert = { authorization: `Bearer ${BERT}` };

let server: Server;
let id: string;
beforeAll(async () => {
  server = await startOmnid({
    atEnd: atFileEnd,
    env: {
      OMNID_TOKENS: `anna:${ANNA},${BERT}`,
      LOG_LEVEL: "trace",
      OPENAI_API_KEY: "sk-of-the-environment-333",
      OMNID_MODEL: "demo/demo",
    },
  });
  id = await makeSession(server, { title: "anna's", approvalMode: "allow-all" }, anna);
});

const run = async (input: string) => {
  const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input }, headers: anna });
  await reader.ended;
  return reader;
};

test("everything under /api, and /metrics, needs a token; what a stranger may see needs none", async () => {
  for (const path of ["/api/sessions", "/api/models", at(id), at(id, "/stream"), "/api/events", "/metrics"]) {
    for (const headers of [
      {},
      { authorization: "Bearer wrong" },
      { authorization: `Basic ${ANNA}` },
      { authorization: `Bearer ${ANNA}x` },
    ]) {
      const refused = await api(server, "GET", path, undefined, headers as Record<string, string>);
      expect(refused).toMatchObject({ status: 401, body: { error: { code: "unauthorized" } } });
      expect(refused.headers.get("www-authenticate")).toMatch(/^Bearer/);
    }
  }
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/openapi.yaml"]) {
    expect([path, (await fetch(server.url + path)).status]).toEqual([path, 200]);
  }
});

test("A11: another token's Session does not exist, whatever is asked of it and with whatever event id", async () => {
  const reader = await run("/run echo private");
  const lastEventId = reader.ids[0] as string;
  const calls: [string, string, unknown?][] = [
    ["GET", ""],
    ["PATCH", "", { title: "mine" }],
    ["GET", "/messages"],
    ["GET", "/trace"],
    ["GET", "/approvals"],
    ["GET", "/stream"],
    ["POST", "/tasks", { input: "x" }],
    ["POST", "/abort"],
    ["POST", "/approvals/call_1", { decision: "allow" }],
    ["DELETE", ""],
  ];
  for (const [method, rest, body] of calls) {
    const refused = await api(server, method, at(id, rest), body, { ...bert, "last-event-id": lastEventId });
    expect(refused).toMatchObject({ status: 404, body: { error: { code: "session_not_found" } } });
    expect(refused.text).not.toContain("private");
    const missing = await api(server, method, at("session-2026-01-01-00-00-00-00000000", rest), body, bert);
    expect(missing.body.error.message.replace(/session-[\w-]+/, "")).toBe(
      refused.body.error.message.replace(/session-[\w-]+/, ""),
    );
  }
  expect((await api(server, "GET", "/api/sessions", undefined, bert)).body.sessions).toEqual([]);
  expect((await api(server, "GET", "/api/sessions", undefined, anna)).body.sessions).toMatchObject([{ sessionId: id }]);
});

test("one key of two owners is two keys", async () => {
  const key = { "idempotency-key": "shared" };
  const [a, b] = await Promise.all([
    makeSession(server, {}, { ...anna, ...key }),
    makeSession(server, {}, { ...bert, ...key }),
  ]);
  expect(a).not.toBe(b);
});

test("the events of all Sessions are those of one's own", async () => {
  const response = await fetch(`${server.url}/api/events?access_token=${BERT}`);
  const pieces = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const other = await makeSession(server, { title: "anna's too" }, anna);
  const own = await makeSession(server, { title: "bert's" }, bert);
  let text = "";
  while (!text.includes(own)) text += (await pieces?.read())?.value;
  await pieces?.cancel();
  expect(text).not.toContain(other);
  expect(text).toMatch(/"type":"session_created"/);
  expect(text).not.toMatch(/^id:/m);
});

test("B13: access_token opens streams and nothing else, and is in no log", async () => {
  const reader = await openSse(`${server.url}${at(id, "/stream")}?access_token=${ANNA}`);
  await reader.until(({ data }) => data.type === "task_state");
  for (const path of ["/api/sessions", at(id), at(id, "/messages"), at(id, "/trace"), "/metrics"]) {
    expect([path, (await api(server, "GET", `${path}?access_token=${ANNA}`)).status]).toEqual([path, 401]);
  }
  expect((await api(server, "POST", `${at(id, "/abort")}?access_token=${ANNA}`)).status).toBe(401);
  const wrong = await api(server, "GET", `${at(id, "/stream")}?access_token=wrong-secret-4444`);
  expect(wrong.status).toBe(401);
  // Twice, escaped, and where a broken path makes an error of it.
  await api(server, "GET", `${at(id, "/stream")}?access_token=${BERT}&access_token=${ANNA}`);
  await api(server, "GET", `/nothing?%61ccess_token=${ANNA}`);
  await fetch(`${server.url}/%?access_token=${ANNA}`);
  expect(server.printed()).toContain("/stream");
  for (const secret of [ANNA, BERT, "wrong-secret-4444"]) expect(server.printed()).not.toContain(secret);
});

test("no secret is in a command's environment, in an answer, or in any file of the data directory", async () => {
  const reader = await run("/run env; cat /proc/self/environ | tr '\\0' '\\n'");
  const everything = [JSON.stringify(reader.events), server.printed()];
  for (const path of ["/api/models", "/metrics", at(id), at(id, "/messages")]) {
    everything.push(await fetch(server.url + path, { headers: anna }).then((response) => response.text()));
  }
  for (const name of readdirSync(server.dataDir, { recursive: true, encoding: "utf8" })) {
    const path = join(server.dataDir, name);
    if (statSync(path).isFile()) everything.push(readFileSync(path, "utf8"));
  }
  const text = everything.join("\n");
  const found = ["PATH=", ANNA, BERT, "sk-of-the-environment-333"].filter((each) => text.includes(each));
  expect(found).toEqual(["PATH="]);
});

test("ownership survives a restart, and Sessions made without a token are not for those with one", async () => {
  await server.stop("SIGTERM");
  const again = await server.restart();
  expect((await api(again, "GET", at(id), undefined, anna)).status).toBe(200);
  expect((await api(again, "GET", at(id), undefined, bert)).status).toBe(404);
  await again.stop("SIGTERM");
  const open = await startOmnid({ dataDir: server.dataDir });
  expect((await api(open, "GET", "/api/sessions")).body.sessions).toEqual([]);
  expect((await api(open, "GET", at(id))).status).toBe(404);
});
