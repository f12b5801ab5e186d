// Waits and further tries, when what the other side or the caller says is no help. The clock stands still.

import { expect, onTestFinished, test, vi } from "vitest";
import { platformClock } from "../../src/client/client-clock.js";
import { createClient, type Following } from "../../src/client/index.js";
import { manualClock } from "../support/manual-clock.js";
import { FakeHost, isLive, isWaiting, refusal } from "./fake-host.js";
import { until } from "./until.js";

function start(host: FakeHost): Following {
  const following = host.client.session("session-1").follow();
  onTestFinished(() => following.close());
  return following;
}

test.each([
  ["seconds beyond a timer's reach", "2147484", 300_000],
  ["more digits than a number holds", "9".repeat(400), 500],
  ["a date after the last of all years", "Fri, 31 Dec 9999 23:59:59 GMT", 300_000],
  ["a date in the past", "Thu, 01 Jan 1970 00:00:00 GMT", 500],
  ["nothing that is a time", "soon", 500],
])("a Retry-After of %s is a wait of at most five minutes, and never none", async (_, header, ms) => {
  const host = new FakeHost();
  host.instead.push(refusal(503, "shutting_down", { "retry-after": header }));
  const following = start(host);
  const { connection } = await until(following, isWaiting);
  expect(connection).toMatchObject({ attempt: 1, retryAt: host.time.now() + ms });
});

test.each([3e9, "4000", null, -1])(
  "a shutdown that says %j is waited out for five minutes at most",
  async (retryMs) => {
    const host = new FakeHost();
    const following = start(host);
    await until(following, isLive);
    host.write(`event: server_event\ndata: ${JSON.stringify({ type: "shutdown", retryMs })}\n\n`);
    host.drop();
    const { connection } = await until(following, isWaiting);
    expect(connection).toMatchObject({ retryAt: host.time.now() + (retryMs === 3e9 ? 300_000 : 500) });
  },
);

test("a reader whose token is another one each time waits after each refusal like any other", async () => {
  const time = manualClock();
  const clock = { now: time.now, after: time.after, random: () => 1 };
  let sent = 0;
  const fetch = async () => {
    sent += 1;
    return new Response("", { status: 401 });
  };
  const client = createClient({ baseUrl: "http://host", clock, fetch, token: () => `token-${sent}` });
  const following = client.session("session-1").follow();
  onTestFinished(() => following.close());
  const { connection } = await until(following, isWaiting);
  expect(connection).toMatchObject({ attempt: 1, code: "http", retryAt: time.now() + 500 });
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toBeLessThanOrEqual(4);
});

test.each([2 ** 31, 2 ** 40, Number.POSITIVE_INFINITY])(
  "the platform's clock does not end a wait of %d ms at once",
  (ms) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    let isOver = false;
    platformClock.after(ms, () => {
      isOver = true;
    });
    vi.advanceTimersByTime(86_400_000);
    expect(isOver).toBe(false);
  },
);
