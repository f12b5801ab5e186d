import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import type { LLMOutcome } from "../../src/engine/ports.js";
import { createLLMClient } from "../../src/llm/client.js";
import { EventReader } from "../../src/llm/http-sse.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { ManualClock } from "./manual-clock.js";
import { complete, delta, expectDiscipline, llmRequest, modelSpec, segmentsOf, sse } from "./support.js";

const SILENCE_MS = 1000;

/** A provider on a local port. */
class Upstream {
  readonly requests: { headers: IncomingMessage["headers"]; body: string; path: string | undefined }[] = [];
  readonly sockets = new Set<Socket>();
  connections = 0;
  readonly #server: Server;
  #onClose: (() => void)[] = [];

  private constructor(answer: (response: ServerResponse, request: IncomingMessage) => void) {
    this.#server = createServer((request, response) => {
      let body = "";
      request.setEncoding("utf8").on("data", (text: string) => {
        body += text;
      });
      request.on("end", () => {
        this.requests.push({ headers: request.headers, body, path: request.url });
        answer(response, request);
      });
    });
    this.#server.on("connection", (socket) => {
      this.connections++;
      this.sockets.add(socket);
      socket.on("error", () => {}); // resets are what some tests are about
      socket.on("close", () => {
        this.sockets.delete(socket);
        for (const wake of this.#onClose.splice(0)) wake();
      });
    });
  }

  static async start(answer: (response: ServerResponse, request: IncomingMessage) => void): Promise<Upstream> {
    const upstream = new Upstream(answer);
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", resolve));
    running.push(upstream);
    return upstream;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/v1`;
  }

  async noSockets(): Promise<void> {
    while (this.sockets.size > 0) await new Promise<void>((resolve) => this.#onClose.push(resolve));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}

let running: Upstream[] = [];
afterEach(() => {
  for (const upstream of running) upstream.stop();
  running = [];
});

const streamHead = { "content-type": "text/event-stream" };

function start(upstream: { baseUrl: string }, clock: Clock, model: Partial<ModelSpec> = {}) {
  const abort = new AbortController();
  let n = 0;
  const client = createLLMClient(modelSpec({ baseUrl: upstream.baseUrl, apiKey: "sk-secret", ...model }), {
    clock,
    newId: () => `id${++n}`,
    requestTimeoutMs: SILENCE_MS,
    demoDelayMs: 0,
  });
  return { abort, stream: client.stream(llmRequest({ signal: abort.signal })) };
}

async function drain(
  stream: ReturnType<typeof start>["stream"],
): Promise<{ messages: OmniMessage[]; outcome: LLMOutcome }> {
  const messages: OmniMessage[] = [];
  for (;;) {
    const step = await stream.next();
    if (step.done === true) return { messages, outcome: step.value };
    expect(step.value.length).toBeGreaterThan(0);
    messages.push(...step.value);
  }
}

async function exchange(
  answer: (response: ServerResponse, request: IncomingMessage) => void,
  model?: Partial<ModelSpec>,
) {
  const upstream = await Upstream.start(answer);
  const done = await drain(start(upstream, new ManualClock(), model).stream);
  expectDiscipline(done.messages);
  return { upstream, ...done };
}

const stopOf = (messages: OmniMessage[]) =>
  (complete(messages).at(-1)?.payload as { stop_reason?: string } | undefined)?.stop_reason;

describe("one exchange", () => {
  test("posts the request with the key and gives the answer as it comes", async () => {
    const { upstream, messages, outcome } = await exchange((response) => {
      response.writeHead(200, streamHead).end(sse(delta({ content: "hi" }), delta({}, "stop"), "[DONE]"));
    });
    expect(segmentsOf(messages)).toEqual([{ type: "text", text: "hi" }]);
    expect(outcome.status).toBe("completed");
    expect(upstream.requests[0]).toMatchObject({
      path: "/v1/chat/completions",
      headers: { authorization: "Bearer sk-secret" },
    });
    expect(JSON.parse(upstream.requests[0]?.body ?? "")).toMatchObject({ model: "one", stream: true });
  });

  test("a connection is used again after an answer that ended", async () => {
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).end(sse(delta({ content: "hi" }, "stop"), "[DONE]"));
    });
    for (let n = 0; n < 3; n++) {
      const { outcome } = await drain(start(upstream, new ManualClock()).stream);
      expect(outcome.status).toBe("completed");
      // The linger of the answer before ends with its body, which is on its way.
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(upstream.connections).toBeLessThan(3);
  });

  test("[DONE] ends the answer though the provider holds the connection, which is then closed", async () => {
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "hi" }, "stop"), "[DONE]"));
    });
    const clock = new ManualClock();
    expect((await drain(start(upstream, clock).stream)).outcome.status).toBe("completed");
    await clock.waiting();
    clock.advance(1000);
    await upstream.noSockets();
    expect(clock.pending).toBe(0);
  });

  test("an address that is none is an outcome, not an exception", async () => {
    const { outcome } = await drain(start({ baseUrl: "not a url" }, new ManualClock()).stream);
    expect(outcome).toMatchObject({ status: "failed", error: { kind: "invalid_request" } });
  });
});

describe("refusals", () => {
  test("F17: 429 with retry-after", async () => {
    const { outcome } = await exchange((response) => {
      response.writeHead(429, { "retry-after": "7" }).end('{"error":{"message":"slow down"}}');
    });
    expect(outcome).toMatchObject({
      status: "timeout",
      retryAfterMs: 7000,
      error: { kind: "rate_limit", http_status: 429, message: "slow down" },
    });
  });

  test("an error body without end is read to a cap, and its socket closed", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(500);
      const more = () => {
        while (!response.destroyed && response.write("x".repeat(16_384)));
        response.once("drain", more);
      };
      more();
    });
    const { outcome } = await drain(start(upstream, clock).stream);
    expect(outcome).toMatchObject({ status: "timeout", error: { kind: "timeout", http_status: 500 } });
    await upstream.noSockets();
  });

  test("a proxy's page is told in words", async () => {
    const { outcome } = await exchange((response) => {
      response.writeHead(502, { "content-type": "text/html" }).end("<html><title>502 Bad Gateway</title></html>");
    });
    expect(outcome.error).toMatchObject({ kind: "timeout", message: "502 Bad Gateway" });
  });

  test("a redirect is not followed", async () => {
    const other = await Upstream.start((response) => response.end());
    const { outcome } = await exchange((response) => response.writeHead(307, { location: other.baseUrl }).end());
    expect(outcome).toMatchObject({ status: "failed", error: { kind: "unknown", http_status: 307 } });
    expect(other.connections).toBe(0);
  });

  test("the key is not in the message, though the provider repeats it", async () => {
    const { outcome } = await exchange((response, request) => {
      response.writeHead(401).end(JSON.stringify({ error: `bad header ${request.headers.authorization}` }));
    });
    expect(outcome).toMatchObject({ status: "failed", error: { kind: "auth", message: "bad header Bearer ***" } });
  });

  test("F16: JSON in place of a stream is an error or a whole answer, a page is malformed", async () => {
    const json = { "content-type": "application/json" };
    const error = await exchange((response) => {
      response.writeHead(200, json).end('{"error":{"message":"not loaded","type":"invalid_request_error"}}');
    });
    expect(error.outcome).toMatchObject({
      status: "failed",
      error: { kind: "invalid_request", message: "not loaded" },
    });
    const whole = await exchange((response) => {
      response.writeHead(200, json).end('{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}');
    });
    expect(segmentsOf(whole.messages)).toEqual([{ type: "text", text: "hi" }]);
    const page = await exchange((response) => {
      response.writeHead(200, { "content-type": "text/html" }).end("<html>\n<p>log in</p></html>");
    });
    expect(page.outcome).toMatchObject({ status: "malformed", error: { message: expect.stringContaining("log in") } });
  });
});

describe("broken connections", () => {
  test("nobody listens", async () => {
    const upstream = await Upstream.start(() => {});
    const { baseUrl } = upstream;
    upstream.stop();
    const { outcome } = await drain(start({ baseUrl }, new ManualClock()).stream);
    expect(outcome).toMatchObject({ status: "timeout", error: { kind: "network" } });
  });

  test("a reset in mid-stream closes what is open as timeout and keeps what was read", async () => {
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "half" })));
    });
    const { stream } = start(upstream, new ManualClock());
    const first = await stream.next();
    for (const socket of upstream.sockets) socket.resetAndDestroy();
    const { messages, outcome } = await drain(stream);
    const all = [...(first.done === true ? [] : first.value), ...messages];
    expectDiscipline(all);
    expect(segmentsOf(all)).toEqual([{ type: "text", text: "half" }]);
    expect(stopOf(all)).toBe("timeout");
    expect(outcome).toMatchObject({ status: "timeout", error: { kind: "network" } });
  });

  test("F15: a body that ends early without an end mark is malformed", async () => {
    const { messages, outcome } = await exchange((response) => {
      response.writeHead(200, streamHead).end(sse(delta({ content: "half" })));
    });
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(stopOf(messages)).toBe("malformed");
  });
});

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
      it.write(": one\n\n");
    });
    let isOver = false;
    const done = drain(start(upstream, clock).stream).finally(() => {
      isOver = true;
    });
    // Once for the headers, once for the first read, once behind the first comment.
    await clock.timersSet(3);
    for (let set = 4; !isOver; set++) {
      clock.advance(SILENCE_MS / 2);
      response?.write(": still here\n\n");
      // Setting the next timer is the sign that the comment was read.
      await Promise.race([clock.timersSet(set), done]);
    }
    expect((await done).outcome).toMatchObject({
      status: "timeout",
      error: { kind: "timeout", message: expect.stringContaining("without sending anything") },
    });
    expect(clock.now()).toBe(10 * SILENCE_MS);
    await upstream.noSockets();
  });

  test("the clock does not run while the reader is slow", async () => {
    const clock = new ManualClock();
    const upstream = await Upstream.start((response) => {
      response.writeHead(200, streamHead).write(sse(delta({ content: "a" })));
      response.end(sse(delta({ content: "b" }, "stop"), "[DONE]"));
    });
    const { stream } = start(upstream, clock);
    await stream.next();
    expect(clock.pending).toBe(0);
    clock.advance(100 * SILENCE_MS);
    expect((await drain(stream)).outcome.status).toBe("completed");
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

describe("events", () => {
  test.each(["\n", "\r\n", "\r"])("B11: 64,000 events in one read cost linear time, line end %j", (end) => {
    const one = `data: ${"x".repeat(150)}${end}${end}`;
    const reader = new EventReader();
    // A quadratic reader needs minutes here, and runs into the time-out.
    expect([...reader.push(Buffer.from(one.repeat(64_000))), ...reader.end()]).toHaveLength(64_000);
  });

  test("F22: the rules of the format", () => {
    const events = (text: string) => {
      const reader = new EventReader();
      return [...reader.push(Buffer.from(text)), ...reader.end()];
    };
    expect(events("\ufeffdata: a\n\n")).toEqual([{ data: "a" }]);
    expect(events("data: a\ndata: b\n\n")).toEqual([{ data: "a\nb" }]);
    expect(events("data:a\n\ndata\n\n")).toEqual([{ data: "a" }, { data: "" }]);
    expect(events("event: error\ndata: a\n\ndata: b\n\n")).toEqual([{ event: "error", data: "a" }, { data: "b" }]);
    expect(events(": c\nid: 1\nretry: 5\n\ndata: a\n\n")).toEqual([{ data: "a" }]);
    expect(events("data: a\n\ndata: b\n")).toEqual([{ data: "a" }]);
    expect(events("data: a\r\rdata: b\r\n\r\n")).toEqual([{ data: "a" }, { data: "b" }]);
    expect(events('data: a\n\n{"error":\n1}\n')).toEqual([{ data: "a" }, { data: '{"error":\n1}' }]);
    expect(events('{"error":1}\ndata: a\n\n')).toEqual([{ data: '{"error":1}' }, { data: "a" }]);
    expect(events("hello\n\ndata: a\n\n")).toEqual([{ data: "a" }]);
  });
});
