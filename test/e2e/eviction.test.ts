// A ring that has evicted, readers that do not read, and a flood: memory stays bounded and nobody else notices.

import { describe, expect, test, vi } from "vitest";
import { type Server, startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { answer, finish, type Gate, gate, packed, type Step, say, startUpstream, think } from "../support/upstream.js";
import { at, expectLawful, follow, history, makeSession, payloads, prompt, untilIdle } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const words = (count: number, text = "") => Array.from({ length: count }, (_, index) => `${index} ${text}`);

describe("a ring of 100", () => {
  async function small() {
    const upstream = await startUpstream();
    const server = await startOmnid({
      config: upstream.config(),
      env: { OMNID_REPLAY_EVENTS: "100", OMNID_RETRY_LIMIT: "0" },
    });
    return { upstream, server };
  }

  test("A5: after 1000 events a fresh client has the full history by HTTP and the live tail, and an old id is told", async () => {
    const { upstream, server } = await small();
    const id = await makeSession(server);
    const { cursor: start } = await history(server, id);
    const hold = gate();
    upstream.script({ steps: [...say(...words(1000)), hold, ...say("the end"), ...finish("stop")] });
    const first = await follow(server, id);
    const taskId = await prompt(server, id, "A thousand.");
    await first.untilPayload("partial_text", ({ text }) => text === "999 ");

    const page = await history(server, id);
    expect(page.fragments).toHaveLength(1);
    expect(page.fragments[0]).toMatchObject({ payload: { text: words(1000).join("") } });
    const fresh = await follow(server, id, { lastEventId: page.cursor });
    const evicted = await follow(server, id, { lastEventId: start });
    await evicted.until(({ data }) => data.type === "task_state");
    expect(evicted.events[0]).toMatchObject({ id: page.cursor, data: { type: "resync_required", reason: "evicted" } });
    // The oldest that is kept, and the one before it.
    const head = Number(page.cursor.split("-")[1]);
    const place = (back: number) => page.cursor.replace(/-\d+$/, `-${head - back}`);
    const kept = await follow(server, id, { lastEventId: place(100) });
    await kept.until(({ data }) => data.type === "task_state");
    expect(kept.ids).toHaveLength(100);
    const gone = await follow(server, id, { lastEventId: place(101) });
    expect((await gone.until(() => true)).data.reason).toBe("evicted");
    hold.open();
    await Promise.all([first, fresh, evicted, kept, gone].map((reader) => reader.untilEnded(taskId)));
    expect(payloads(fresh.messages, "text")).toMatchObject([{ text: `${words(1000).join("")}the end` }]);
    expect(evicted.messages).toEqual(fresh.messages);
    await expectLawful(server, id, first.messages);
    await expectLawful(server, id, fresh.messages, { joined: true });
  });

  test("A23: a replay much larger than any queue reaches a slow reader whole", async () => {
    const upstream = await startUpstream();
    const server = await startOmnid({ config: upstream.config() });
    const id = await makeSession(server);
    const { cursor } = await history(server, id);
    const pieces = words(30, "x".repeat(100_000));
    upstream.script(answer(...pieces));
    await prompt(server, id, "Three megabytes.");
    await untilIdle(server, id);
    const slow = await follow(server, id, { lastEventId: cursor });
    for (let index = 0; index < 20; index++) {
      slow.stall();
      setImmediate(() => slow.resume());
      await new Promise((resolve) => slow.response.once("data", resolve));
    }
    await slow.until(({ name }) => name !== undefined);
    expect(
      payloads(slow.messages, "partial_text")
        .map(({ text }) => text)
        .join(""),
    ).toBe(pieces.join(""));
  });
});

/** Ends when the process does not need more than that, or says by how much it does. */
function expectBounded(server: Server, before: number, mebibytes: number): void {
  expect((server.rss() - before) / 2 ** 20, "MiB above what it was").toBeLessThan(mebibytes);
}

test("C3 C5 C6 C7: twenty readers stall while 60,000 events pass; memory is bounded, the fast one gets everything once, the stalled are told", {
  timeout: 90_000,
}, async () => {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config() });
  const id = await makeSession(server);
  const stalled = await Promise.all(Array.from({ length: 20 }, () => follow(server, id)));
  for (const reader of stalled) reader.stall();
  const piece = "y".repeat(400);
  // Segments of 200 KB, so that it is the number of events that counts.
  const batches = [say, think].map((kind) => packed(kind(...Array.from({ length: 500 }, () => piece))));
  const gates: Gate[] = [];
  const round = (count: number) => {
    const steps = Array.from({ length: count }, (_, index): Step[] => {
      const each = gate();
      gates.push(each);
      return [each, batches[index % 2] as string];
    });
    return { steps: [...steps.flat(), ...finish("stop")] };
  };
  // The first round brings the process to the size that it has under load.
  upstream.script(round(12), round(108));
  let received = 0;
  /** The fast one is fast because what is said is not far ahead of it, whatever else the machine does. */
  const letThrough = () => {
    for (const each of gates.slice(0, received / 500 + 4)) each.open();
  };
  letThrough();
  let last = "";
  const fast = await follow(server, id, {
    forgets: true,
    onEvent: ({ id: eventId, name, data }) => {
      if (name !== undefined) return;
      last = eventId as string;
      if (data.payload.event_type !== "delta") return;
      received += 1;
      if (received % 500 === 0) letThrough();
    },
  });
  await prompt(server, id, "First.");
  await untilIdle(server, id);
  const before = server.rss();
  await prompt(server, id, "Then the flood.");
  await untilIdle(server, id);
  // 20 readers that were each owed 30 MB. Of the rest, what the collector has not taken yet, newer Nodes leave more.
  expectBounded(server, before, 200);
  const { cursor } = await history(server, id);
  while (last !== cursor) await new Promise((resolve) => fast.response.once("data", resolve));
  expect(received).toBe(60_000);
  fast.check();
  for (const reader of stalled) {
    reader.resume();
    const told = await reader.until(({ data }) => data.type === "resync_required");
    expect(told).toMatchObject({ id: cursor, data: { reason: "slow_reader" } });
    await reader.until(({ data }) => data.type === "task_state", reader.events.indexOf(told));
    reader.check();
  }
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
});

test("C12: a command that prints 200 MB, and one giant line, costs bounded memory and gives a capped output", async () => {
  const server = await startOmnid();
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const run = async (cmd: string) => {
    const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: `/run ${cmd}` } });
    await reader.ended;
    return reader;
  };
  // How large the heap may grow before it is collected is for V8 to say, in each version otherwise: it has done so then.
  await run("yes | head -c 200M");
  const before = server.rss();
  const lines = await run("yes | head -c 200M");
  const line = await run("head -c 100M /dev/zero | tr '\\\\0' z");
  expectBounded(server, before, 100);
  for (const reader of [lines, line]) {
    const [output] = payloads(reader.messages, "tool_call_output");
    expect(output?.exit_code).toBe(0);
    expect(output?.output.length).toBeLessThanOrEqual(16_000);
    // Life is shown while the output is held back.
    for (const progress of reader.serverEvents("tool_progress")) expect(progress.bytes).toBeGreaterThan(8_000);
    await expectLawful(server, id, reader.messages, { joined: true, running: reader === lines });
  }
  expect(lines.bytes).toBeLessThan(200_000);
});

test("B10: the bytes of a stream grow with the number of tokens and not with its square", async () => {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config() });
  const perToken = async (tokens: number) => {
    const id = await makeSession(server);
    upstream.script(answer(...Array.from({ length: tokens }, () => "word ")));
    const reader = await openSse(server.url + at(id, "/tasks"), { method: "POST", body: { input: "Go." } });
    await reader.ended;
    return reader.bytes / tokens;
  };
  const [one, two, four] = [await perToken(500), await perToken(1_000), await perToken(2_000)];
  expect(two).toBeLessThan(one * 1.1);
  expect(four).toBeLessThan(one * 1.1);
});
