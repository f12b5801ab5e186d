import type { ServerResponse } from "node:http";
import { describe, expect, test } from "vitest";
import { ManualClock } from "./manual-clock.js";
import { delta, sse } from "./support.js";
import { drain, SILENCE_MS, start, stopOf, streamHead, Upstream } from "./upstream.js";

describe("silence", () => {
  test("F19: before the headers", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start(() => {});
    const done = drain(start(upstream, clock).stream);
    await clock.waiting();
    clock.advance(SILENCE_MS);
    expect((await done).outcome).toMatchObject({ status: "timeout", error: { kind: "timeout" } });
    await upstream.noSockets();
    expect(clock.pending).toBe(0);
  });

  test("C8: 200 silent upstreams leave no socket and no timer behind", async () => {
    const clock = new ManualClock();
    let begun = 0;
    let onAll = () => {};
    const all = new Promise<void>((resolve) => {
      onAll = resolve;
    });
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "a" })));
      if (++begun === 200) onAll();
    });
    const streams = Array.from({ length: 200 }, () => start(upstream, clock).stream);
    await Promise.all(streams.map((stream) => stream.next()));
    await all;
    expect(upstream.connections).toBe(200);
    const done = streams.map((stream) => drain(stream));
    await clock.waiting(200);
    clock.advance(SILENCE_MS);
    for (const { outcome, messages } of await Promise.all(done)) {
      expect(outcome).toMatchObject({ status: "timeout", error: { kind: "timeout" } });
      expect(stopOf(messages)).toBe("timeout");
    }
    await upstream.noSockets();
    expect(clock.pending).toBe(0);
  });

  test("F19: a stream that is slow but alive is not cut", async () => {
    const clock = new ManualClock();
    let response: ServerResponse | undefined;
    const upstream = await Upstream.start((it) => {
      response = it.writeHead(200, streamHead);
      response.write(sse(delta({ content: "a" })));
    });
    const { stream } = start(upstream, clock);
    for (let n = 0; n < 30; n++) {
      expect((await stream.next()).done).toBe(false);
      const next = stream.next();
      await clock.waiting();
      clock.advance(SILENCE_MS - 1);
      response?.write(sse(delta({ content: "b" })));
      expect((await next).done).toBe(false);
      response?.write(sse(delta({ content: "c" })));
    }
    response?.end(sse("[DONE]"));
    expect((await drain(stream)).outcome.status).toBe("completed");
  });

  test("comments count as life for ten times the limit and no longer", async () => {
    const clock = new ManualClock();
    let response: ServerResponse | undefined;
    const upstream = await Upstream.start((it) => {
      response = it.writeHead(200, streamHead);
      it.flushHeaders();
    });
    let isOver = false;
    const done = drain(start(upstream, clock).stream).finally(() => {
      isOver = true;
    });
    // The wait for the headers has ended, the one for the body lasts.
    await clock.looked(3);
    while (!isOver) {
      clock.advance(SILENCE_MS / 2);
      const before = clock.looks;
      response?.write(": still here\n\n");
      // The next wait is the sign that the comment was read.
      await Promise.race([clock.looked(before + 2), done]);
    }
    expect((await done).outcome).toMatchObject({
      status: "timeout",
      error: { kind: "timeout", message: expect.stringContaining("without sending anything") },
    });
    expect(clock.now()).toBe(10 * SILENCE_MS);
    await upstream.noSockets();
  });

  test("a clock that is set back meanwhile makes no silence longer", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start(() => {});
    const done = drain(start(upstream, clock).stream);
    await clock.waiting();
    clock.setBack(3_600_000);
    clock.advance(SILENCE_MS);
    // Nothing waits on: it is over, or a timer was set again.
    expect(clock.pending).toBe(0);
    expect((await done).outcome).toMatchObject({ status: "timeout", error: { kind: "timeout" } });
  });

  test("the clock does not run while the reader is slow", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "a" })));
      response.end(sse(delta({ content: "b" }, "stop"), "[DONE]"));
    });
    const { stream } = start(upstream, clock);
    await stream.next();
    clock.advance(100 * SILENCE_MS);
    expect((await drain(stream)).outcome.status).toBe("completed");
    expect(clock.pending).toBe(0);
  });
});

describe("abort", () => {
  test.each([
    "before the headers",
    "in mid-stream, while reading",
    "in mid-stream, while the reader does something else",
  ])("%s ends the stream and closes the socket", async (when) => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      if (when !== "before the headers") response.writeHead(200, streamHead).write(sse(delta({ content: "a" })));
    });
    const { abort, stream } = start(upstream, clock);
    if (when !== "before the headers") await stream.next();
    const done = when.endsWith("else") ? undefined : stream.next();
    if (done !== undefined) await clock.waiting();
    abort.abort();
    if (done === undefined) await upstream.noSockets();
    expect(await (done ?? stream.next())).toMatchObject({ done: true, value: { status: "aborted" } });
    await upstream.noSockets();
    expect(clock.pending).toBe(0);
  });

  test("a signal that has fired already sends nothing", async () => {
    const upstream = await Upstream.start(() => {});
    const { abort, stream } = start(upstream, new ManualClock());
    abort.abort();
    expect(await stream.next()).toMatchObject({ done: true, value: { status: "aborted", usage: { total: 0 } } });
    expect(upstream.connections).toBe(0);
  });

  test("a reader that leaves closes the socket, too", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "a" })));
    });
    const { stream } = start(upstream, clock);
    await stream.next();
    await stream.return({ status: "aborted", usage: { cache_read: 0, cache_write: 0, output: 0, total: 0 } });
    await clock.waiting();
    clock.advance(1000);
    await upstream.noSockets();
  });
});
