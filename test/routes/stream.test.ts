import { describe, expect, test } from "vitest";
import { call, eventsIn, makeSession, openStream, raw, startServer } from "../support/http-server.js";
import { manualClock } from "../support/manual-clock.js";

const states = (text: string) => eventsIn(text).filter((event) => event.data.type === "task_state");

describe("bytes", () => {
  test("A2: raw bytes: each unnamed event has one id line, only the first server event has one, a heartbeat has none", async () => {
    const clock = manualClock();
    const server = await startServer({ OMNID_HEARTBEAT_MS: "1000" }, clock);
    const id = await makeSession(server);
    const session = server.host.sessions.get(id)!;
    const stream = await openStream(server, `/api/sessions/${id}/stream`);
    await stream.until((text) => text.includes("task_state"));
    session.say("one");
    session.say("line\u2028break\u0085and\nnewline");
    await stream.until((text) => text.includes("newline"));
    clock.advance(3000);
    const text = await stream.until((each) => each.includes(": ping\n"));
    expect(text).not.toMatch(/\r|\ufeff|\u2028|\u0085/);
    expect(text.startsWith("retry: 1000\nid: 7-0\nevent: server_event\ndata: {")).toBe(true);
    const blocks = text.replaceAll(": ping\n", "").trimEnd().split("\n\n");
    const messages = blocks.filter((block) => !block.includes("event: "));
    expect(messages).toHaveLength(2);
    for (const [n, block] of messages.entries()) expect(block).toMatch(new RegExp(`^id: 7-${n + 1}\\ndata: [^\\n]+$`));
    for (const block of blocks) expect(block.match(/^data: /gm)).toHaveLength(1);
    expect(JSON.parse(messages[1]!.split("\ndata: ")[1]!).payload.text).toBe("line\u2028break\u0085and\nnewline");
  });

  test("B8, B9: a stream is never compressed, tells proxies to pass it on, and is open at once with its first event", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    for (const path of [`/api/sessions/${id}/stream`, "/api/events"]) {
      const stream = await openStream(server, path, { headers: { "accept-encoding": "gzip, br" } });
      expect(stream.headers.get("content-encoding")).toBeNull();
      expect(stream.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
      expect(stream.headers.get("cache-control")).toBe("no-cache, no-transform");
      expect(stream.headers.get("x-accel-buffering")).toBe("no");
      expect(stream.headers.get("content-length")).toBeNull();
      stream.close();
    }
  });

  test("HTTP/1.0 gets the bare events, without chunks", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    const answer = raw(server, `GET /api/sessions/${id}/stream HTTP/1.0\r\nhost: localhost\r\n\r\n`);
    await expect.poll(() => server.host.sessions.get(id)?.channel.subscribers).toBe(1);
    server.host.endStreams();
    const [head, body] = (await answer).split("\r\n\r\n");
    expect(head).not.toMatch(/transfer-encoding/i);
    expect(body?.startsWith("retry: 1000\n")).toBe(true);
    expect(body?.endsWith("\n\n")).toBe(true);
  });
});

describe("resuming", () => {
  test("the header wins over the query, an empty one counts for nothing, and both spellings of the query are read", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    for (let n = 1; n <= 4; n += 1) server.host.sessions.get(id)!.say(`say ${n}`);
    const replayed = async (query: string, header?: string) => {
      const options = header === undefined ? {} : { headers: { "last-event-id": header } };
      const stream = await openStream(server, `/api/sessions/${id}/stream${query}`, options);
      const text = await stream.until((each) => each.includes("task_state"));
      stream.close();
      return eventsIn(text)
        .filter((event) => event.event === undefined)
        .map((event) => event.id);
    };
    expect(await replayed("")).toEqual([]);
    expect(await replayed("", "")).toEqual([]);
    expect(await replayed("?lastEventId=")).toEqual([]);
    expect(await replayed("?lastEventId=7-2")).toEqual(["7-3", "7-4"]);
    expect(await replayed("?last_event_id=7-3")).toEqual(["7-4"]);
    expect(await replayed("?lastEventId=7-0", "7-3")).toEqual(["7-4"]);
    expect(await replayed("?lastEventId=7-3", "")).toEqual(["7-4"]);
  });

  test("A19: an id that is none of ours is answered in the stream, not with an error", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    for (const [lastEventId, reason] of [
      ["9-9", "other_epoch"],
      ["7-50", "not_reached"],
      ["hello", "not_an_id"],
    ] as const) {
      const stream = await openStream(server, `/api/sessions/${id}/stream?lastEventId=${lastEventId}`);
      expect(stream.status).toBe(200);
      const [first, second] = eventsIn(await stream.until((text) => text.includes("task_state")));
      expect(first?.data).toEqual({ type: "resync_required", reason });
      expect(second?.data.type).toBe("task_state");
      stream.close();
    }
  });

  test("A20, A21: two readers see the same, and closing one neither stops the other nor the Session", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    const session = server.host.sessions.get(id)!;
    const [one, two] = await Promise.all([1, 2].map(() => openStream(server, `/api/sessions/${id}/stream`)));
    session.say("first");
    const seen = await Promise.all([one, two].map((stream) => stream!.until((text) => text.includes("first"))));
    expect(seen[0]).toBe(seen[1]);
    one!.close();
    await expect.poll(() => session.channel.subscribers).toBe(1);
    session.say("second");
    expect(await two!.until((text) => text.includes("second"))).toContain("id: 7-2\n");
  });
});

describe("ends and caps", () => {
  test("H10: past OMNID_MAX_STREAMS a stream is 429 with retry-after, but one that resumes is let in", async () => {
    const server = await startServer({ OMNID_MAX_STREAMS: "2" });
    const id = await makeSession(server);
    const path = `/api/sessions/${id}/stream`;
    const first = await openStream(server, path);
    await openStream(server, "/api/events");
    const prompt = { method: "POST", body: { input: "hello" }, headers: { accept: "text/event-stream" } };
    for (const refused of [
      await openStream(server, path),
      await openStream(server, "/api/events"),
      await openStream(server, `/api/sessions/${id}/tasks`, prompt),
    ]) {
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(JSON.parse(await refused.rest()).error.code).toBe("too_many_streams");
    }
    expect((await call(server, "GET", `/api/sessions/${id}`)).body.state).toBe("idle");
    const resumed = await openStream(server, path, { headers: { "last-event-id": "7-0" } });
    expect(resumed.status).toBe(200);
    resumed.close();
    first.close();
    await expect.poll(async () => (await call(server, "GET", "/metrics")).text).toMatch(/^omnid_streams 1$/m);
    expect((await openStream(server, path)).status).toBe(200);
  });

  test("a slot is given back by every Task's stream that was refused or has ended", async () => {
    const server = await startServer({ OMNID_MAX_STREAMS: "1" });
    const id = await makeSession(server);
    const prompt = (input: string) => ({ method: "POST", body: { input }, headers: { accept: "text/event-stream" } });
    for (let n = 0; n < 3; n += 1) {
      expect(
        states(await (await openStream(server, `/api/sessions/${id}/tasks`, prompt("hello"))).rest()).at(-1)?.data
          .ended,
      ).toMatchObject({ status: "completed" });
    }
    await call(server, "POST", `/api/sessions/${id}/tasks`, { input: "hold" });
    for (let n = 0; n < 3; n += 1) {
      expect((await openStream(server, `/api/sessions/${id}/tasks`, prompt("hello"))).status).toBe(409);
    }
    expect((await openStream(server, `/api/sessions/${id}/stream`)).status).toBe(200);
  });

  test("a removed Session ends its streams, and is gone for the next", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    const stream = await openStream(server, `/api/sessions/${id}/stream`);
    expect((await call(server, "DELETE", `/api/sessions/${id}`)).status).toBe(204);
    expect(states(await stream.rest())).toHaveLength(1);
    expect((await openStream(server, `/api/sessions/${id}/stream`)).status).toBe(404);
  });

  test("B7: a fault while the stream is being opened ends that connection with one log line, and the server lives", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    const session = server.host.sessions.get(id)!;
    const { follow } = session;
    session.follow = () => {
      throw new Error("no place to follow from");
    };
    await expect(openStream(server, `/api/sessions/${id}/stream`).then((stream) => stream.rest())).rejects.toThrow();
    session.follow = follow;
    expect((await openStream(server, `/api/sessions/${id}/stream`)).status).toBe(200);
    expect(server.logged().match(/no place to follow from/g)!.length).toBeLessThanOrEqual(2);
    expect(
      server
        .logged()
        .split("\n")
        .filter((line) => line.includes("stream failed")),
    ).toHaveLength(1);
    expect((await call(server, "GET", "/metrics")).text).toMatch(/^omnid_streams 1$/m);
  });

  test("the list of Sessions tells of what is made and removed, of one's own only", async () => {
    const server = await startServer({ OMNID_TOKENS: "ada:ada-secret,bob:bob-secret" });
    const ada = { authorization: "Bearer ada-secret" };
    const events = await openStream(server, "/api/events", { headers: ada });
    await makeSession(server, { authorization: "Bearer bob-secret" });
    const id = await makeSession(server, ada);
    await call(server, "DELETE", `/api/sessions/${id}`, undefined, ada);
    const seen = eventsIn(await events.until((text) => text.includes("session_deleted")));
    expect(seen.map((event) => [event.event, event.id, event.data.type])).toEqual([
      ["server_event", undefined, "session_created"],
      ["server_event", undefined, "session_deleted"],
    ]);
    expect(seen[1]?.data.sessionId).toBe(id);
  });
});
