import { expect, onTestFinished, test } from "vitest";
import { createClient, type HostEvent, type SessionsView } from "../../src/client/index.js";
import { startRealServer } from "../support/real-server.js";
import { startFlakyProxy } from "./flaky-proxy.js";
import { until } from "./until.js";

const titles = ({ sessions }: SessionsView) => sessions.map(({ title }) => title);

test("the list has what is made, changed, archived and deleted elsewhere, and no children", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const { sessionId: old } = await client.sessions.create({ title: "old" });
  const events: HostEvent[] = [];
  const following = client.sessions.follow({ onEvent: (event) => events.push(event) });
  onTestFinished(() => following.close());
  await until(following, ({ isRead }) => isRead);
  expect(titles(following.view)).toEqual(["old"]);
  const { sessionId } = await client.sessions.create({ title: "new", approvalMode: "allow-all" });
  await until(following, ({ sessions }) => sessions.length === 2);
  for await (const _ of client.session(sessionId).run("/subagent Say something"));
  await until(following, ({ sessions }) => sessions[0]?.state === "idle" && sessions[0].usage.total > 0);
  expect(titles(following.view)).toEqual(["new", "old"]);
  expect(events.some(({ type }) => type === "session_created")).toBe(true);
  const [kept] = following.view.sessions;
  await client.session(old).update({ archived: true });
  await until(following, ({ sessions }) => sessions.length === 1);
  expect(following.view.sessions[0]).toBe(kept);
  await client.session(sessionId).delete();
  await until(following, ({ sessions }) => sessions.length === 0);
});

test("after a connection that broke the list is read again, since nothing is replayed", async () => {
  const server = await startRealServer();
  const direct = createClient({ baseUrl: server.url });
  await direct.sessions.create({ title: "before" });
  const proxy = await startFlakyProxy(Number(new URL(server.url).port), [
    { do: "answer", status: 502 },
    { do: "cut", after: 2_000 },
  ]);
  onTestFinished(() => proxy.close());
  const following = createClient({ baseUrl: proxy.url }).sessions.follow({ backoff: { baseMs: 1, maxMs: 4 } });
  onTestFinished(() => following.close());
  let connections = 0;
  following.subscribe(() => {
    if (following.view.connection.status === "live") connections += 1;
  });
  await until(following, ({ isRead }) => isRead);
  const session = direct.session((await direct.sessions.list()).sessions[0]!.sessionId);
  // Each change is an event on the stream, until one is cut.
  for (let count = 0; connections < 2; count += 1) await session.update({ title: `change ${count}` });
  await session.update({ title: "after" });
  await until(following, (view) => titles(view)[0] === "after");
});

test("the events of one connection end with it", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const life = new AbortController();
  const events = client.sessions.events({ signal: life.signal });
  const first = events.next();
  // Nothing is replayed: it is made again until the stream is open.
  const { sessionId } = await client.sessions.create();
  const more = setImmediate(() => void client.session(sessionId).update({ title: "now" }));
  onTestFinished(() => clearImmediate(more));
  expect((await first).value).toMatchObject({ type: expect.stringMatching(/^session_(created|updated)$/) });
  life.abort(new Error("enough"));
  await expect(events.next()).rejects.toThrow("enough");
});
