import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/clock.js";
import { call, makeSession, openStream, raw, startServer } from "../support/http-server.js";
import { gate } from "../support/upstream.js";

const CLOSE = "host: localhost\r\nconnection: close\r\n";

describe("the one shape of errors", () => {
  test("an unknown path is 404, a known one with another method 405 with Allow, and neither reads the body", async () => {
    const server = await startServer();
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await call(server, method, "/api/nothing/here", method === "POST" ? "{broken" : undefined);
      expect([method, answer.status, answer.body]).toEqual([
        method,
        404,
        { error: { code: "not_found", message: expect.any(String) } },
      ]);
    }
    const put = await call(server, "PUT", "/api/sessions/x", "{broken");
    expect([put.status, put.body.error.code]).toEqual([405, "method_not_allowed"]);
    expect(put.headers.get("allow")).toBe("DELETE, GET, HEAD, OPTIONS, PATCH");
    expect((await call(server, "GET", "/api/sessions/x/abort")).headers.get("allow")).toBe("OPTIONS, POST");
    expect((await call(server, "PROPFIND", "/api/sessions")).status).toBe(405);
  });

  test("malformed JSON is 400, a wrong type 415, and a body over the limit 413", async () => {
    const server = await startServer({ OMNID_BODY_LIMIT: "1000" });
    const post = (body: string | Buffer, type: string) =>
      fetch(`${server.url}/api/sessions`, { method: "POST", body, headers: { "content-type": type } });
    const outcomes = [
      [await post("{", "application/json"), 400, "invalid_request"],
      [await post("", "application/xml"), 415, "unsupported_media_type"],
      [await post("{}", "application/x-ndjson"), 415, "unsupported_media_type"],
      [await post("{}", "nonsense"), 415, "unsupported_media_type"],
      [await post("{}", "application/json; charset=utf-16"), 415, "unsupported_media_type"],
      [await post(Buffer.from([0x22, 0xff, 0x22]), "application/json"), 400, "invalid_request"],
      [await post(JSON.stringify({ title: "x".repeat(1000) }), "application/json"), 413, "body_too_large"],
      [await post(JSON.stringify([]), "application/json"), 400, "invalid_request"],
      [await post("null", "application/json"), 400, "invalid_request"],
    ] as const;
    for (const [answer, status, code] of outcomes) {
      expect(answer.status).toBe(status);
      expect(await answer.json()).toMatchObject({ error: { code, message: expect.any(String) } });
      expect(answer.headers.get("x-request-id")).toBeTruthy();
    }
  });

  test("a call whose fields are all optional may come without body, without type, or with the type alone", async () => {
    const server = await startServer();
    for (const type of [undefined, "application/json", "application/json; charset=UTF-8"]) {
      const headers = new Headers(type === undefined ? {} : { "content-type": type });
      const made = await fetch(`${server.url}/api/sessions`, { method: "POST", headers });
      expect(made.status).toBe(201);
      const { sessionId } = (await made.json()) as { sessionId: string };
      expect((await fetch(`${server.url}/api/sessions/${sessionId}/abort`, { method: "POST", headers })).status).toBe(
        204,
      );
      const tasks = `${server.url}/api/sessions/${sessionId}/tasks`;
      expect((await fetch(tasks, { method: "POST", headers })).status).toBe(400);
    }
  });

  test("each unknown or wrong field is listed with its path", async () => {
    const server = await startServer();
    const answer = await call(server, "POST", "/api/sessions", {
      titel: "x",
      approvalMode: "never",
      maxTurns: 0,
      provider: "demo",
    });
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe("invalid_request");
    expect(answer.body.error.details.map((each: { path: string }) => each.path).sort()).toEqual(
      ["approvalMode", "maxTurns", "modelId", "titel"].sort(),
    );
    const half = await call(server, "POST", "/api/sessions", { provider: "demo" });
    expect(half.body.error.details).toEqual([{ path: "modelId", message: expect.stringContaining("both or neither") }]);
  });

  test.each([
    ["unknown fields", { foo: 1, bar: 2 }, ["foo", "bar"]],
    ["a list", [1], [""]],
    ["null", "null", [""]],
  ])("a call without a body of its own refuses %s, and nothing is removed", async (_, body, paths) => {
    const server = await startServer();
    const id = await makeSession(server);
    for (const path of [`/api/sessions/${id}`, `/api/sessions/${id}/queue/none`]) {
      const answer = await call(server, "DELETE", path, body);
      expect([answer.status, answer.body.error.code]).toEqual([400, "invalid_request"]);
      expect(answer.body.error.details.map((each: { path: string }) => each.path)).toEqual(paths);
    }
    expect((await call(server, "GET", `/api/sessions/${id}`)).status).toBe(200);
    expect((await call(server, "DELETE", `/api/sessions/${id}`, {})).status).toBe(204);
  });

  test("what two fields have to do with each other is listed beside what else is wrong", async () => {
    const server = await startServer();
    const answer = await call(server, "POST", "/api/sessions", { provider: "x", title: 5, bogus: 1 });
    const paths = answer.body.error.details.map((each: { path: string }) => each.path).sort();
    expect([answer.status, paths]).toEqual([400, ["bogus", "modelId", "title"]]);
    const none = await call(server, "POST", "/api/sessions", "[]");
    expect([none.status, none.body.error.details]).toMatchObject([400, [{ path: "" }]]);
  });

  test("a body full of mistakes is answered with few of them", async () => {
    const body = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, "x".repeat(50)]));
    const answer = await call(await startServer(), "POST", "/api/sessions", body);
    expect(answer.status).toBe(400);
    expect(answer.text.length).toBeLessThan(20_000);
  });

  test.each([
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"title":"x","__proto__":null}',
  ])("%s is refused", async (body) => {
    expect((await call(await startServer(), "POST", "/api/sessions", body)).status).toBe(400);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test("a failure inside the server shows neither its message nor its stack, and the log has both under the same id", async () => {
    const server = await startServer();
    server.host.models = () => {
      throw new Error("boom in /srv/secret/place.ts");
    };
    const answer = await call(server, "GET", "/api/models");
    expect(answer.status).toBe(500);
    expect(answer.body.error.code).toBe("internal");
    expect(answer.text).not.toMatch(/boom|place|\.ts|at /);
    const id = answer.headers.get("x-request-id");
    const line = server
      .logged()
      .split("\n")
      .find((each) => each.includes("boom"));
    expect(line).toContain(`"requestId":"${id}"`);
  });

  test.each([
    ["a path that is no URL", `GET /api/%zz HTTP/1.1\r\n${CLOSE}\r\n`, 400, "invalid_request"],
    ["bytes that are no HTTP", "\x16\x03\x01 hello\r\n\r\n", 400, "invalid_request"],
    ["headers without end", `GET / HTTP/1.1\r\n${CLOSE}x: ${"y".repeat(40_000)}\r\n\r\n`, 431, "headers_too_large"],
    ["a parameter without end", `GET /api/sessions/${"x".repeat(3000)} HTTP/1.1\r\n${CLOSE}\r\n`, 414, "uri_too_long"],
    [
      "two lengths",
      `POST /api/sessions HTTP/1.1\r\n${CLOSE}content-length: 1\r\ncontent-length: 2\r\n\r\nxx`,
      400,
      "invalid_request",
    ],
  ])("%s is answered in the shape, with a request id", async (_what, bytes, status, code) => {
    const answer = await raw(await startServer(), bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toMatch(/\r\nx-request-id: \S+\r\n/);
    expect(answer).toContain(`{"error":{"code":"${code}"`);
  });

  test("bad bytes after a request do not land in the middle of its stream", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    const received = await new Promise<string>((resolve, reject) => {
      const socket = connect(server.port, "127.0.0.1", () => {
        socket.write(`GET /api/sessions/${id}/stream HTTP/1.1\r\nhost: localhost\r\n\r\n`);
      });
      let text = "";
      socket.setEncoding("utf8");
      socket.on("data", (chunk) => {
        text += chunk;
        if (text.includes("task_state")) socket.write("\x00 this is not HTTP\r\n\r\n");
      });
      socket.on("error", reject);
      socket.on("close", () => resolve(text));
    });
    expect(received.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });
});

describe("request ids", () => {
  test("a sane one is taken over, on errors too; anything else is replaced, never reflected", async () => {
    const server = await startServer();
    for (const given of ["abc-1", "A.b_c-9".repeat(9).slice(0, 64)]) {
      const answer = await call(server, "GET", "/api/sessions/none", undefined, { "x-request-id": given });
      expect(answer.headers.get("x-request-id")).toBe(given);
    }
    for (const given of ["", "a b", "x".repeat(65), "<script>", 'a"b', "é"]) {
      const answer = await call(server, "GET", "/healthz", undefined, { "x-request-id": given });
      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

describe("HEAD and OPTIONS", () => {
  test("they answer on a stream without opening one", async () => {
    const server = await startServer({ OMNID_MAX_STREAMS: "1" });
    const id = await makeSession(server);
    for (const path of [`/api/sessions/${id}/stream`, "/api/events"]) {
      const head = await call(server, "HEAD", path);
      expect([path, head.status, head.text]).toEqual([path, 200, ""]);
      expect(head.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
      const options = await call(server, "OPTIONS", path);
      expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
    }
    expect(server.host.sessions.get(id)?.channel.subscribers).toBe(0);
    expect((await call(server, "HEAD", "/api/sessions/none/stream")).status).toBe(404);
    expect((await openStream(server, "/api/events")).status).toBe(200);
  });

  test("OPTIONS of an unknown path is 404", async () => {
    expect((await call(await startServer(), "OPTIONS", "/api/nope")).status).toBe(404);
  });
});

describe("draining", () => {
  test("while it drains everything under /api is 503 shutting_down, it is alive and not ready", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    server.host.draining = true;
    for (const [method, path] of [
      ["POST", "/api/sessions"],
      ["GET", `/api/sessions/${id}/stream`],
      ["GET", "/api/models"],
    ] as const) {
      const answer = await call(server, method, path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 503, "shutting_down"]);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
    }
    expect((await call(server, "GET", "/healthz")).status).toBe(200);
    expect((await call(server, "GET", "/readyz")).body.error.code).toBe("shutting_down");
  });

  test("a data directory that takes no writes makes it not ready", async () => {
    const server = await startServer();
    expect((await call(server, "GET", "/readyz")).body).toEqual({ status: "ok" });
    server.host.isReady = false;
    const answer = await call(server, "GET", "/readyz");
    expect([answer.status, answer.body.error.code]).toEqual([503, "not_ready"]);
  });
});

describe("figures and log", () => {
  test("requests are counted by route and not by path, streams while they are open", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    await call(server, "GET", "/api/sessions/some-id");
    await call(server, "GET", "/api/what/ever/comes");
    const stream = await openStream(server, `/api/sessions/${id}/stream`);
    const { text, headers } = await call(server, "GET", "/metrics");
    expect(headers.get("content-type")).toMatch(/^text\/plain/);
    expect(text).toMatch(/omnid_http_requests_total\{method="GET",route="\/api\/sessions\/:id",status="404"\} 1/);
    expect(text).toMatch(/omnid_http_requests_total\{method="GET",route="unmatched",status="404"\} 1/);
    expect(text).not.toContain("some-id");
    expect(text).toMatch(/^omnid_streams 1$/m);
    expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
    stream.close();
  });

  test("each answered request is one line with its id, and no query", async () => {
    const server = await startServer();
    const answer = await call(server, "GET", "/api/sessions?limit=3&cursor=secret-place", undefined, {
      "x-request-id": "line-1",
    });
    expect(answer.status).toBe(400);
    await call(server, "GET", "/healthz");
    const lines = server
      .logged()
      .split("\n")
      .filter((line) => line.includes("line-1"));
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      requestId: "line-1",
      method: "GET",
      path: "/api/sessions",
      status: 400,
    });
    expect(server.logged()).not.toContain("secret-place");
  });
});

test("a body that says it is compressed is not taken for JSON", async () => {
  const server = await startServer();
  const headers = { "content-type": "application/json", "content-encoding": "gzip" };
  const answer = await fetch(`${server.url}/api/sessions`, { method: "POST", headers, body: gzipSync("{}") });
  expect(answer.status).toBe(415);
});

test("whatever other origins are listed, OPTIONS on an unknown path is a 404 in the one shape", async () => {
  const server = await startServer({ CORS_ORIGINS: "https://good.example" });
  for (const origin of ["https://good.example", "https://bad.example", undefined]) {
    const headers: Record<string, string> = origin === undefined ? {} : { origin };
    const answer = await call(server, "OPTIONS", "/api/nope", undefined, headers);
    if (origin !== "https://good.example") expect([origin, answer.status]).toEqual([origin, 404]);
    expect(answer.status).toBeLessThan(500);
  }
});

test("every refusal for form says where: a query of ours, JSON that is none, a path that is none", async () => {
  const server = await startServer();
  const cursor = await call(server, "GET", "/api/sessions?cursor=nope");
  expect(cursor.body.error).toMatchObject({ code: "invalid_request", details: [{ path: "cursor" }] });
  const broken = await fetch(`${server.url}/api/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{",
  });
  expect(await broken.json()).toMatchObject({ error: { code: "invalid_request", details: [{ path: "" }] } });
  expect((await call(server, "GET", "/api/sessions/%zz")).body.error.details).toHaveLength(1);
  expect((await call(server, "GET", "/api/sessions/")).status).toBe(404);
});

test("a file that the documentation does not have is a 404", async () => {
  const server = await startServer();
  expect((await call(server, "GET", "/docs/static/nope.js")).status).toBe(404);
});

test("an expectation that nobody can meet is answered in the one shape", async () => {
  const server = await startServer();
  const answer = await raw(
    server,
    `POST /api/sessions HTTP/1.1\r\n${CLOSE}expect: miracles\r\ncontent-length: 0\r\n\r\n`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 417 /);
  expect(answer).toMatch(/x-request-id: /i);
  expect(answer).toContain('"code":"expectation_failed"');
});

test("until what an earlier process left is in order, whoever asks for Sessions waits; whether the server lives is told at once", async () => {
  const order = gate();
  let waiting = 0;
  const server = await startServer({}, systemClock(), () => {
    waiting += 1;
    return order.opened;
  });
  const answered: string[] = [];
  const asked = ["/api/sessions", "/readyz"].map(async (path) => {
    expect((await call(server, "GET", path)).status).toBe(200);
    answered.push(path);
  });
  await expect.poll(() => waiting).toBe(2);
  expect((await call(server, "GET", "/healthz")).status).toBe(200);
  expect(answered).toEqual([]);
  order.open();
  await Promise.all(asked);
});
