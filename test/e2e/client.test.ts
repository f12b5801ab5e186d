// The typed client against a server that dies and comes back: what a view shows is what the server has.

import { expect, onTestFinished, test } from "vitest";
import { createClient, type View } from "../../src/client/index.js";
import { startFlakyProxy } from "../client/flaky-proxy.js";
import { until } from "../client/until.js";
import { startOmnid } from "../support/server.js";

const messagesOf = ({ messages }: View) => messages.map(({ message }) => message);
const isWhole = ({ gap, stale, connection }: View) => gap === null && stale === null && connection.status === "live";

/** A Session that is followed through a proxy, which leads to whatever life of the server there is. */
async function startFollowed(demoDelayMs: string) {
  let server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: demoDelayMs } });
  const proxy = await startFlakyProxy(() => server.port);
  onTestFinished(() => proxy.close());
  const client = createClient({ baseUrl: proxy.url });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const following = session.follow({ backoff: { baseMs: 5, maxMs: 50 } });
  onTestFinished(() => following.close());
  const stop = (signal: NodeJS.Signals) => server.stop(signal);
  const restart = async () => {
    server = await server.restart();
  };
  return { client, session, following, stop, restart };
}

test.each([
  ["is killed", "SIGKILL"],
  ["ends in order", "SIGTERM"],
] as const)(
  "a view of a run whose server %s goes on after the restart with the same approval, and ends as the history",
  async (_, signal) => {
    const { session, client, following, restart, stop } = await startFollowed("1");
    await session.submit("/run echo hello");
    await session.submit({ input: "and then?", whenBusy: "queue" });
    const before = await until(following, (view) => view.approvals.length === 1 && isWhole(view));
    await stop(signal);
    await until(following, ({ connection }) => connection.status === "waiting");
    await restart();
    const after = await until(following, (view) => view.connection.status === "live" && isWhole(view));
    // The approval never left the view, and no message of it is another.
    expect(after.approvals).toEqual(before.approvals);
    expect(after.messages.slice(0, before.messages.length)).toEqual(before.messages);
    for (const [index, entry] of before.messages.entries()) expect(after.messages[index]).toBe(entry);
    const [open] = after.approvals;
    await client.decide(open!, "allow");
    const isOver = (view: View) =>
      view.task?.state === "idle" && view.queue.length === 0 && view.task.queued === 0 && isWhole(view);
    const count = (view: View) =>
      view.messages.filter(
        ({ message: { payload } }) => "role" in payload && payload.type === "text" && payload.role === "user",
      ).length;
    const end = await until(following, (view) => isOver(view) && count(view) === 2);
    const { messages } = await session.messages();
    expect(messagesOf(end)).toEqual(messages.map(({ ordinal: _ordinal, ...message }) => message));
  },
);

test("a view of a run that a killed server broke off in the middle of a word ends as the history that the restart closed", async () => {
  const { session, following, restart, stop } = await startFollowed("5");
  await session.submit("What can you do?");
  await until(following, ({ fragments }) => fragments.some(({ content }) => content.length > 20));
  await stop("SIGKILL");
  await until(following, ({ connection }) => connection.status === "waiting");
  await restart();
  const end = await until(
    following,
    (view) => isWhole(view) && view.task?.state === "idle" && view.fragments.length === 0,
  );
  const { messages } = await session.messages();
  expect(messagesOf(end)).toEqual(messages.map(({ ordinal: _ordinal, ...message }) => message));
  expect(end.messages.at(-1)?.message.payload).toMatchObject({ type: "abort", reason: "server_restarted" });
});
