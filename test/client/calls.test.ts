import { expect, test } from "vitest";
import { createClient, OmnidError } from "../../src/client/index.js";
import { startRealServer } from "../support/real-server.js";

const start = async (env: Record<string, string> = {}) => {
  const { url } = await startRealServer(env);
  return { url, client: createClient({ baseUrl: url }) };
};

test("every call of a Session's life is answered with what its type says", async () => {
  const { client } = await start();
  const made = await client.sessions.create({ title: "First", approvalMode: "allow-all" });
  const session = client.session(made.sessionId);
  expect(await session.get()).toEqual(made);
  expect((await session.update({ title: "Second" })).title).toBe("Second");
  expect((await client.sessions.list()).sessions.map(({ title }) => title)).toEqual(["Second"]);
  expect((await client.models()).defaultModel).toEqual({ provider: "demo", modelId: "demo" });

  const events = [];
  for await (const event of session.run("Which files are here?")) events.push(event);
  expect(events[0]).toMatchObject({ kind: "server_event", event: { type: "task_state" } });
  expect(events.at(-1)).toMatchObject({ kind: "server_event", event: { type: "task_state", state: "idle" } });
  const { messages, cursor } = await session.messages();
  expect(events.filter(({ kind }) => kind === "message").at(-1)?.id).toBe(cursor);

  const forked = await session.fork({ ordinal: messages.at(-1)?.ordinal ?? 0 });
  expect((await client.session(forked.sessionId).messages()).messages).toHaveLength(messages.length);
  const trace = await new Response(await session.trace()).text();
  const imported = await client.sessions.import(trace);
  expect(await new Response(await client.session(imported.sessionId).trace()).text()).toContain("session_meta");
  const streamed = await client.sessions.import(await session.trace());
  expect(streamed.sessionId).not.toBe(imported.sessionId);

  const ids = [];
  for await (const each of client.sessions.all({ limit: 1 })) ids.push(each.sessionId);
  expect(new Set(ids).size).toBe(4);
  await expect(session.steer("too early")).rejects.toMatchObject({ status: 409, code: "not_running" });
  expect(await session.abort()).toBe(false);
  await session.submit("/run sleep 60");
  expect(await session.abort({ clearQueue: true })).toBe(true);
  await session.delete();
  await expect(session.get()).rejects.toMatchObject({ status: 404, code: "session_not_found" });
});

test("what the server refuses is one error, with status, code, details and when to come back", async () => {
  const { client } = await start({ OMNID_MAX_SESSIONS: "1" });
  const refused = await client.sessions.create({ title: 1 as never }).catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(OmnidError);
  expect(refused).toMatchObject({ status: 400, code: "invalid_request", details: [{ path: "title" }] });
  const { sessionId } = await client.sessions.create();
  await client.session(sessionId).submit("/run sleep 60");
  await expect(client.sessions.create()).rejects.toMatchObject({ status: 429, retryAfter: 5 });
  await client.session(sessionId).abort();
});

test("no answer at all is the same error, and an abort is the caller's own", async () => {
  const client = createClient({ baseUrl: "http://127.0.0.1:9" });
  await expect(client.models()).rejects.toMatchObject({ name: "OmnidError", status: 0, code: "network" });
  const reason = new Error("never mind");
  await expect(client.models({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
});

test("a proxy's own page is an error of its status", async () => {
  const page = async () => new Response("<h1>Bad gateway</h1>", { status: 502, statusText: "Bad Gateway" });
  const client = createClient({ baseUrl: "http://proxy", fetch: page });
  await expect(client.models()).rejects.toMatchObject({ status: 502, code: "http" });
  const cut = async () => new Response('{"models":[', { headers: { "content-type": "application/json" } });
  const other = createClient({ baseUrl: "http://proxy", fetch: cut });
  await expect(other.models()).rejects.toMatchObject({ status: 200, code: "unreadable" });
});

test("a refused token is asked for once, however many calls wait for it", async () => {
  const { url } = await start({ OMNID_TOKENS: "ada:right" });
  const asked: (string | undefined)[] = [];
  const renewToken = async (refused: string | undefined) => {
    asked.push(refused);
    return "right";
  };
  const client = createClient({ baseUrl: url, token: "wrong", renewToken });
  await Promise.all([client.models(), client.sessions.list(), client.sessions.create()]);
  expect(asked).toEqual(["wrong"]);
  const stubborn = createClient({ baseUrl: url, token: "wrong", renewToken: async () => "wrong" });
  await expect(stubborn.models()).rejects.toMatchObject({ status: 401, code: "unauthorized" });
});

test("a renewed token holds until the caller has another, also none", async () => {
  const { url } = await start({ OMNID_TOKENS: "ada:right" });
  let stored = "wrong";
  const client = createClient({ baseUrl: url, token: () => stored, renewToken: async () => "right" });
  await client.models();
  await client.models();
  stored = "";
  const signedOut = createClient({ baseUrl: url, token: () => stored });
  await expect(signedOut.models()).rejects.toMatchObject({ status: 401 });
  let asked = 0;
  const again = createClient({
    baseUrl: url,
    token: () => stored,
    renewToken: async () => {
      asked += 1;
      return "right";
    },
  });
  await again.models();
  stored = "right";
  await again.models();
  stored = "wrong once more";
  await again.models();
  expect(asked).toBe(2);
});

test("a call whose tokens are all refused ends, whatever gives another one each time", async () => {
  let sent = 0;
  let minted = 0;
  const fetch = async () => {
    sent += 1;
    return new Response("", { status: 401 });
  };
  const mint = () => {
    minted += 1;
    return `token-${minted}`;
  };
  const minting = createClient({ baseUrl: "http://host", fetch, token: mint });
  await expect(minting.models()).rejects.toMatchObject({ status: 401 });
  expect(sent).toBe(2);
  sent = 0;
  const renewing = createClient({ baseUrl: "http://host", fetch, token: "stale", renewToken: async () => mint() });
  await expect(renewing.models()).rejects.toMatchObject({ status: 401 });
  expect(sent).toBe(6);
  sent = 0;
  const both = createClient({ baseUrl: "http://host", fetch, token: mint, renewToken: async () => mint() });
  await expect(both.models()).rejects.toMatchObject({ status: 401 });
  expect(sent).toBe(7);
});

test("a token that was changed while the old one was refused is tried without a question", async () => {
  let stored = "old";
  const asked: unknown[] = [];
  const fetch = async (_: unknown, init?: RequestInit) => {
    const isRight = new Headers(init?.headers).get("authorization") === "Bearer new";
    stored = "new";
    return isRight ? Response.json({ models: [] }) : new Response("", { status: 401 });
  };
  const renewToken = async (refused: string | undefined) => {
    asked.push(refused);
    return undefined;
  };
  const client = createClient({ baseUrl: "http://host", fetch, token: () => stored, renewToken });
  expect(await client.models()).toEqual({ models: [] });
  expect(asked).toEqual([]);
});

test("a token that no header can carry is refused like one that the server refuses", async () => {
  const { url } = await start({ OMNID_TOKENS: "ada:right" });
  const client = createClient({ baseUrl: url, token: "日本", renewToken: async () => "right" });
  expect((await client.models()).models).not.toEqual([]);
  const alone = createClient({ baseUrl: url, token: "a\nb" });
  await expect(alone.models()).rejects.toMatchObject({ status: 401, code: "unauthorized" });
});

test("an approval is answered at its Session, and the follower sees it come and go", async () => {
  const { client } = await start();
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const seen: number[] = [];
  const following = session.follow();
  await session.submit("/run echo hi");
  for await (const { view } of following) {
    if (seen.at(-1) !== view.approvals.length) seen.push(view.approvals.length);
    const [open] = view.approvals;
    if (open !== undefined && seen.length === 2) void client.decide(open, { decision: "deny", reason: "no" });
    if (view.task?.state === "idle" && view.messages.length > 4 && view.gap === null) break;
  }
  expect(seen).toEqual([0, 1, 0]);
  const { messages } = await session.messages();
  expect(following.view.messages.map(({ message }) => message)).toEqual(
    messages.map(({ ordinal: _, ...rest }) => rest),
  );
  following.close();
  await following.closed;
  expect(following.view.connection).toEqual({ status: "closed" });
});
