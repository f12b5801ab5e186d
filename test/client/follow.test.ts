// How following fares when single things go wrong. The clock stands still, so nothing waits.

import { expect, onTestFinished, test } from "vitest";
import { createClient, type Following, type FollowOptions } from "../../src/client/index.js";
import { userText } from "../../src/protocol/builders.js";
import { AT, begin, Meter, said } from "../support/messages.js";
import { startRealServer } from "../support/real-server.js";
import { FakeHost, isLive, isWaiting, refusal } from "./fake-host.js";
import type { Step } from "./model-server.js";
import { until } from "./until.js";

function start(host: FakeHost, options: FollowOptions = {}): Following {
  const following = host.client.session("session-1").follow(options);
  onTestFinished(() => following.close());
  return following;
}

const say = (text: string): Step[] => said([text]).map((message) => ({ kind: "say", message }));
const run: Step[] = [
  { kind: "record", message: userText(AT, "Hello") },
  { kind: "state", state: "running" },
  { kind: "say", message: begin() },
  ...say("Good day"),
  ...new Meter().tail("completed").map((message): Step => ({ kind: "say", message })),
  { kind: "state", state: "idle" },
];

test.each([
  ["401", refusal(401, "unauthorized"), "unauthorized"],
  ["502 of a proxy", () => new Response("<h1>Bad gateway</h1>", { status: 502 }), "http"],
  ["503", refusal(503, "shutting_down"), "shutting_down"],
  ["no answer", () => Promise.reject(new TypeError("fetch failed")), "network"],
])("a stream that is answered with %s is asked for again, from the same place", async (_, answer, code) => {
  const host = new FakeHost();
  const following = start(host);
  const { cursor } = await until(following, isLive);
  host.instead.push(answer, answer);
  host.drop();
  const first = await until(following, isWaiting);
  expect(first.connection).toMatchObject({ code: "closed", attempt: 1, retryAt: host.time.now() + 500 });
  host.time.advance(500);
  const second = await until(
    following,
    ({ connection }) => connection.status === "waiting" && connection.attempt === 2,
  );
  expect(second.connection).toMatchObject({ code, retryAt: host.time.now() + 1000 });
  following.retryNow();
  await until(following, ({ connection }) => connection.status === "waiting" && connection.attempt === 3);
  host.time.advance(2000);
  await until(following, isLive);
  expect(host.streamsFrom()).toEqual([cursor, cursor, cursor, cursor]);
  expect(host.calls.filter((call) => call === "messages")).toHaveLength(1);
});

test("the first history is asked for until it comes", async () => {
  const host = new FakeHost();
  host.instead.push(refusal(429, "too_many_streams", { "retry-after": "7" }));
  const following = start(host);
  const { connection } = await until(following, isWaiting);
  expect(connection).toMatchObject({ code: "too_many_streams", retryAt: host.time.now() + 7000 });
  host.time.advance(7000);
  await until(following, isLive);
});

test("a server that goes down says when to come back", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, isLive);
  host.write('event: server_event\ndata: {"type":"shutdown","retryMs":4000}\n\n');
  host.drop();
  const { connection } = await until(following, isWaiting);
  expect(connection).toMatchObject({ code: "shutdown", retryAt: host.time.now() + 4000 });
});

test("silence ends a connection, a heartbeat does not let it begin, and the next one goes on from the last id", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, isLive);
  host.do(...run.slice(0, 4));
  const { cursor } = await until(following, ({ fragments }) => fragments.length === 1);
  host.time.advance(40_000);
  host.write(": ping\n\n");
  await new Promise((resolve) => setImmediate(resolve));
  host.time.advance(40_000);
  expect(following.view.connection.status).toBe("live");
  host.time.advance(20_000);
  const { connection } = await until(following, isWaiting);
  expect(connection).toMatchObject({ code: "network", reason: "nothing was heard for 60 s" });
  following.retryNow();
  await until(following, isLive);
  expect(host.streamsFrom().at(-1)).toBe(cursor);
});

test("a Session that is gone ends it, and whoever iterates", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, isLive);
  host.instead.push(refusal(404, "session_not_found"));
  host.drop();
  await until(following, isWaiting);
  following.retryNow();
  for await (const _ of following);
  await following.closed;
  expect(following.view.connection).toEqual({ status: "gone" });
});

test("a place that is gone is read again at once, and what was there keeps its identity", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, isLive);
  host.do(...run);
  const before = await until(following, ({ confirmed }) => confirmed === host.model.records.length);
  host.drop();
  await until(following, isWaiting);
  for (const step of run) host.model.take(step);
  host.model.evict(0);
  following.retryNow();
  const after = await until(following, ({ connection }) => connection.status === "live" && connection.resynced);
  expect(after.messages).toHaveLength(2 * before.messages.length - 1);
  for (const [index, message] of before.messages.entries()) expect(after.messages[index]).toBe(message);
});

test("half a frame is dropped with its connection", async () => {
  const host = new FakeHost();
  const following = start(host);
  const { cursor } = await until(following, isLive);
  host.write('id: 1785000000000-1\ndata: {"timestamp":"20');
  host.drop(new TypeError("terminated"));
  const view = await until(following, isWaiting);
  expect(view).toMatchObject({ cursor, stale: null, messages: { length: 1 } });
});

test("what is no event of this server makes the history be read again", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, isLive);
  host.write("data: <h1>Proxy error</h1>\n\n");
  await until(following, ({ connection }) => connection.status === "live" && connection.resynced);
  expect(host.calls.filter((call) => call === "messages")).toHaveLength(2);
});

test("subscribers hear once of what came together", async () => {
  const host = new FakeHost();
  const following = start(host);
  await until(following, ({ task }) => task !== null);
  let heard = 0;
  following.subscribe(() => {
    heard += 1;
  });
  host.do(...say("Good day"));
  await until(following, ({ messages }) => messages.length === 2);
  expect(heard).toBe(1);
});

test("who iterates gets every step, and nothing more is read until it goes on", async () => {
  const host = new FakeHost();
  const following = start(host);
  const steps = following[Symbol.asyncIterator]();
  const next = async (type: string) => {
    for (;;) {
      const { value } = await steps.next();
      if (value === undefined || value.type === type) return value;
    }
  };
  await next("server_event");
  host.do(...run.slice(2));
  expect(await next("message")).toMatchObject({ id: "1785000000000-1" });
  const held = following.view;
  await new Promise((resolve) => setImmediate(resolve));
  expect(following.view).toBe(held);
  expect(await next("message")).toMatchObject({ id: "1785000000000-2" });
  await steps.return?.();
  await until(following, ({ task }) => task?.state === "idle" && following.view.messages.length > 2);
});

test("without a place for a stream the Session is looked at from time to time, until there is one", async () => {
  const host = new FakeHost();
  let slots = 0;
  let released = 0;
  const takeStreamSlot = async () => (slots > 0 ? () => void released++ : undefined);
  const following = start(host, { takeStreamSlot });
  await until(following, ({ connection }) => connection.status === "polling");
  for (const step of run) host.model.take(step);
  await host.pass(2000);
  const polled = await until(following, ({ messages }) => messages.length > 1);
  expect(polled.connection).toEqual({ status: "polling" });
  slots = 1;
  await host.pass(2000);
  await until(following, isLive);
  host.drop();
  await until(following, isWaiting);
  expect(released).toBe(1);
});

test("older records are read a page at a time", async () => {
  const host = new FakeHost();
  for (const step of [...run, ...run]) host.model.take(step);
  const following = start(host, { pageSize: 5 });
  await until(following, isLive);
  expect(following.view.messages).toHaveLength(5);
  while (following.view.nextBefore !== null) await following.loadEarlier();
  expect(following.view.messages.map(({ message }) => message)).toEqual(host.model.records);
});

test("a signal that aborts closes it, and nothing is heard of it afterwards", async () => {
  const host = new FakeHost();
  const life = new AbortController();
  const following = start(host, { signal: life.signal });
  await until(following, isLive);
  life.abort();
  await following.closed;
  expect(following.view.connection).toEqual({ status: "closed" });
  host.do(...run);
  expect(following.view.messages).toHaveLength(1);
});

test("a second tab shows the prompts of the first, what waits included", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const second = session.follow();
  onTestFinished(() => second.close());
  await until(second, isLive);
  await session.submit("/run echo one");
  await session.submit({ input: "and two", whenBusy: "queue" });
  const { queue } = await until(second, (view) => view.queue.length === 1 && view.approvals.length === 1);
  expect(queue).toMatchObject([{ kind: "task", input: "and two" }]);
  await client.decide(second.view.approvals[0]!, "allow");
  const view = await until(second, ({ messages, queue, task, gap }) => {
    const prompts = messages.filter(
      ({ message: { payload } }) => "role" in payload && payload.type === "text" && payload.role === "user",
    );
    return prompts.length === 2 && queue.length === 0 && task?.state === "idle" && gap === null;
  });
  expect(view.session).toMatchObject({ state: "idle", queued: 0, pendingApprovals: 0 });
});

test("steering that an abort left undelivered is shown to whoever comes later", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const first = session.follow();
  onTestFinished(() => first.close());
  await session.submit("/run echo one");
  await until(first, ({ approvals }) => approvals.length === 1);
  const { steerId } = await session.steer("rather two");
  await session.abort();
  await until(first, ({ task }) => task?.state === "idle");
  const second = session.follow();
  onTestFinished(() => second.close());
  const { queue } = await until(second, (view) => view.queue.length > 0);
  expect(queue).toMatchObject([{ itemId: steerId, kind: "steer", input: "rather two" }]);
  await session.recall(steerId);
  await second.refreshQueue();
  expect(second.view.queue).toEqual([]);
});

test("what a Task used, and when it ended, is in the view without anybody asking", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const following = session.follow();
  onTestFinished(() => following.close());
  await until(following, isLive);
  for (const least of [1, 2]) {
    await session.submit("hello");
    await until(following, ({ messages, task }) => {
      const ends = messages.filter(({ message }) => message.payload.type === "request_end");
      return ends.length === least && task?.ended !== undefined;
    });
    const known = await session.get();
    expect(known.usage.total).toBeGreaterThan(0);
    await until(following, (view) => view.session?.lastActiveAt === known.lastActiveAt);
    expect(following.view.session).toEqual(known);
  }
});
