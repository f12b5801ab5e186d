// Readers that come, go and come back: nobody misses a message and nobody gets one twice.

import { beforeAll, describe, expect, test, vi } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { openSse, type SseReader } from "../support/sse-client.js";
import { answer, calls, finish, gate, say, startUpstream, think, type Upstream } from "../support/upstream.js";
import { asked, at, decide, expectLawful, follow, history, makeSession, payloads, prompt, untilIdle } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({
    atEnd: atFileEnd,
    config: upstream.config(),
    env: { OMNID_RETRY_LIMIT: "0", OMNID_REPLAY_BYTES: String(64 * 2 ** 20) },
  });
});

const words = (count: number, prefix = "w") => Array.from({ length: count }, (_, index) => `${prefix}${index} `);

/** A generator of numbers below one that is the same in every run. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Follows to the end of the Task with a connection that is lost after a random number of bytes, again and again. */
async function followCut(id: string, from: string, next: () => number, taskEnds: Promise<unknown>): Promise<string[]> {
  const seen: string[] = [];
  let last = from;
  let isOver = false;
  void taskEnds.then(() => {
    isOver = true;
  });
  for (;;) {
    const wasOver = isOver;
    const reader = await follow(server, id, { lastEventId: last, cutAfterBytes: 1 + Math.floor(next() * 20_000) });
    // The snapshot of a stream that was opened after the Task's end says that nothing more comes.
    if (wasOver) await reader.until(({ name }) => name !== undefined).catch(() => {});
    else await reader.ended;
    reader.close();
    await reader.ended;
    reader.check();
    seen.push(...reader.messages.map((message, index) => `${reader.ids[index]} ${JSON.stringify(message)}`));
    if (reader.ids.length > 0) last = reader.lastEventId as string;
    if (wasOver && reader.events.some(({ name }) => name !== undefined)) return seen;
  }
}

test("A1 A9 A21: eight readers, each cut at random bytes, end with the list of the one that was never cut", async () => {
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const { cursor } = await history(server, id);
  const whole = await follow(server, id, { lastEventId: cursor });
  upstream.script(
    {
      steps: [
        ...say(...words(400)),
        ...calls({
          id: "c1",
          name: "exec_command",
          args: { cmd: "for i in $(seq 40); do echo line $i; sleep 0.01; done" },
        }).steps,
      ],
    },
    answer(...words(400, "z")),
  );
  const taskId = await prompt(server, id, "Talk a lot.");
  const over = whole.untilEnded(taskId);
  const cut = await Promise.all(Array.from({ length: 8 }, (_, seed) => followCut(id, cursor, random(seed + 1), over)));
  await over;
  const expected = whole.messages.map((message, index) => `${whole.ids[index]} ${JSON.stringify(message)}`);
  expect(expected.length).toBeGreaterThan(800);
  for (const seen of cut) expect(seen).toEqual(expected);
  await expectLawful(server, id, whole.messages);
});

describe("one reader", () => {
  test("A1 A15: reconnections give exactly what was missed, and five of them cost about one pass", async () => {
    const id = await makeSession(server);
    const { cursor } = await history(server, id);
    const gates = Array.from({ length: 5 }, () => gate());
    upstream.script({
      steps: [...gates.flatMap((each, index) => [...say(...words(50, `g${index}-`)), each]), ...finish("stop")],
    });
    const whole = await follow(server, id, { lastEventId: cursor });
    const taskId = await prompt(server, id, "In parts.");
    let last = cursor;
    let bytes = 0;
    const seen: unknown[] = [];
    for (const [index, each] of gates.entries()) {
      await whole.untilPayload("partial_text", ({ text }) => text === `g${index}-49 `);
      const reader = await follow(server, id, { lastEventId: last });
      await reader.until(({ name }) => name !== undefined);
      expect(reader.lastEventId).toBe(whole.lastEventId);
      last = reader.lastEventId as string;
      seen.push(...reader.messages);
      bytes += reader.bytes;
      reader.close();
      each.open();
    }
    await whole.untilEnded(taskId);
    const rest = await follow(server, id, { lastEventId: last });
    // A12: the end of a run that nobody watched is there for whoever comes back.
    const snapshot = await rest.until(({ name }) => name !== undefined);
    expect(snapshot.data).toMatchObject({ type: "task_state", state: "idle" });
    expect([...seen, ...rest.messages]).toEqual(whole.messages);
    expect(bytes + rest.bytes).toBeLessThan(whole.bytes * 1.2);
  });

  test("A12 A20: the only reader leaves, the run goes on, and its end is there on return", async () => {
    const id = await makeSession(server);
    const hold = gate();
    upstream.script({ steps: [...say("before "), hold, ...say("after"), ...finish("stop")] });
    const reader = await follow(server, id);
    await prompt(server, id, "Go on alone.");
    await reader.untilPayload("partial_text", ({ text }) => text === "before ");
    reader.close();
    await reader.ended;
    // It comes back while the run goes on, and leaves again.
    const during = await follow(server, id, { lastEventId: reader.lastEventId as string });
    await during.until(({ data }) => data.type === "task_state" && data.state === "running");
    during.close();
    hold.open();
    await untilIdle(server, id);
    const late = await follow(server, id, { lastEventId: reader.lastEventId as string });
    await late.until(({ name }) => name !== undefined);
    const messages = [...reader.messages, ...late.messages];
    expect(payloads(messages, "request_end")).toMatchObject([{ status: "completed" }]);
    expect(payloads(messages, "text")).toMatchObject([{ text: "before after" }]);
    await expectLawful(server, id, messages);
  });

  test("A10: two Sessions at once, and the one that is resumed shows nothing of the other", async () => {
    const ids = await Promise.all([makeSession(server), makeSession(server)]);
    const readers = await Promise.all(ids.map((id) => follow(server, id)));
    for (const round of [1, 2, 3]) {
      for (const [index, id] of ids.entries()) {
        upstream.script(answer(`session ${index} round ${round}`));
        await readers[index]?.untilEnded(await prompt(server, id, "Say which."));
      }
    }
    for (const [index, id] of ids.entries()) {
      const resumed = await follow(server, id, { lastEventId: readers[index]?.ids[2] as string });
      await resumed.until(({ name }) => name !== undefined);
      expect(resumed.messages).toEqual(readers[index]?.messages.slice(3));
      expect(JSON.stringify(resumed.messages)).not.toContain(`session ${1 - index}`);
    }
  });

  test("A6 A7: what is published, and asked, while a slow reader still takes its replay comes to it once", async () => {
    const id = await makeSession(server);
    const { cursor } = await history(server, id);
    const hold = gate();
    // More than the kernel's buffers take, so that the server itself is held up in mid-replay.
    const big = "x".repeat(500_000);
    const segments = Array.from({ length: 24 }, (_, index) => (index % 2 ? say : think)(`${index} ${big}`));
    upstream.script(
      {
        steps: [...segments.flat(), hold, ...calls({ id: "asked", name: "exec_command", args: { cmd: "true" } }).steps],
      },
      answer("bye"),
    );
    const whole = await follow(server, id, { lastEventId: cursor });
    const taskId = await prompt(server, id, "A lot, then a question.");
    await whole.untilPayload("partial_text", ({ text }) => text.startsWith("23 "));
    const slow = await follow(server, id, { lastEventId: cursor });
    slow.stall();
    hold.open();
    await asked(whole);
    slow.resume();
    expect(await asked(slow)).toBe("asked");
    expect(await decide(server, id, "asked", "allow")).toBe(204);
    await Promise.all([whole.untilEnded(taskId), slow.untilEnded(taskId)]);
    expect(slow.ids).toEqual(whole.ids);
    expect(slow.serverEvents("resync_required")).toEqual([]);
    // It may be told in passing as well, but the snapshot at the end of the replay names it, once, and as the same.
    const places = slow.events.flatMap(({ data }, place) => (data.type === "approval_request" ? [place] : []));
    expect(slow.events[(places.at(-1) as number) - 1]?.data).toMatchObject({ type: "task_state", pendingApprovals: 1 });
    for (const request of slow.serverEvents("approval_request")) {
      expect(request).toEqual(whole.serverEvents("approval_request")[0]);
    }
    await expectLawful(server, id, slow.messages);
  });
});

describe("ids that are no place in this Channel", () => {
  let id: string;
  let epoch: string;
  let seq: number;
  beforeAll(async () => {
    id = await makeSession(server);
    upstream.script(answer("something"));
    await prompt(server, id, "Begin.");
    await untilIdle(server, id);
    const [first, second] = (await history(server, id)).cursor.split("-");
    epoch = first as string;
    seq = Number(second);
  });

  const cases: [string, () => string, string][] = [
    ["not yet reached", () => `${epoch}-${seq + 1}`, "not_reached"],
    ["far ahead", () => `${epoch}-9007199254740991`, "not_reached"],
    ["of another epoch", () => `${BigInt(epoch) - 1n}-1`, "other_epoch"],
    ["of a later epoch", () => `${BigInt(epoch) + 1n}-1`, "other_epoch"],
    ["a bare number", () => "41", "not_an_id"],
    ["a word", () => "latest", "not_an_id"],
    ["negative", () => `${epoch}--1`, "not_an_id"],
    ["an injection", () => `${epoch}-1 OR 1=1`, "not_an_id"],
    ["very long", () => "9".repeat(4_000), "not_an_id"],
  ];
  test.each(cases)("%s: resync_required first, then the snapshot, then live events", async (_kind, make, reason) => {
    const reader = await follow(server, id, { headers: { "last-event-id": make() } });
    const snapshot = await reader.until(({ data }) => data.type === "task_state");
    expect(reader.events[0]?.data).toEqual({ type: "resync_required", reason });
    expect(reader.events[0]?.id).toBe(`${epoch}-${seq}`);
    expect(snapshot.data.state).toBe("idle");
    expect(reader.messages).toEqual([]);
  });

  test("the header wins over the query, and an empty one is none", async () => {
    const both = await sse(`/stream?lastEventId=${epoch}-0`, { "last-event-id": `${epoch}-${seq - 1}` });
    expect(both.ids).toEqual([`${epoch}-${seq}`]);
    const query = await sse(`/stream?lastEventId=${epoch}-0`, {});
    expect(query.ids).toHaveLength(seq);
    const empty = await sse("/stream", { "last-event-id": "" });
    expect(empty.ids).toEqual([]);
  });

  async function sse(path: string, headers: Record<string, string>): Promise<SseReader> {
    const reader = await openSse(server.url + at(id, path), { headers });
    await reader.until(({ name }) => name !== undefined);
    return reader;
  }
});
