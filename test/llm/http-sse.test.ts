import { describe, expect, test } from "vitest";
import { EventReader } from "../../src/llm/http-sse.js";
import { ManualClock } from "./manual-clock.js";
import { delta, expectDiscipline, segmentsOf, sse } from "./support.js";
import { drain, exchange, start, stopOf, streamHead, Upstream } from "./upstream.js";

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

describe("events", () => {
  test.each(["\n", "\r\n", "\r"])("B11: 200,000 events in one read cost linear time, line end %j", (end) => {
    const one = `data: ${"x".repeat(150)}${end}${end}`;
    const reader = new EventReader();
    // A quadratic reader needs minutes here and runs into the time-out.
    expect([...reader.push(Buffer.from(one.repeat(200_000))), ...reader.end()]).toHaveLength(200_000);
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
