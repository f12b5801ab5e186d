import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { call, makeSession, openStream, type RunningServer, raw, startServer } from "../support/http-server.js";

/** GET with a Host of one's own, which fetch does not allow. */
function withHost(server: RunningServer, path: string, host: string, method = "GET"): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port: server.port, host: "127.0.0.1", path, method, headers: { host } }, (answer) => {
      answer.destroy();
      resolve(answer.statusCode ?? 0);
    });
    sent.on("error", reject).end();
  });
}

const GOOD = [
  "localhost",
  "LOCALHOST:1",
  "localhost.",
  "localhost.:80",
  "127.0.0.1",
  "127.0.0.1:9",
  "127.7.7.7",
  "[::1]",
];
const BAD = [
  "evil.example",
  "localhost.evil.example",
  "127.0.0.1.evil.example",
  "evil.localhost.example",
  "127.1",
  "2130706433",
  "0.0.0.0",
  "[::2]",
  "[::1",
  "::1",
  "localhost:80:80",
  "localhost:port",
  "localhost@evil.example",
  "user@localhost",
  "evil.example,localhost",
  "localhost evil",
];

describe("Host", () => {
  test("H2: loopback names with any port come in, everything else is turned away", async () => {
    const server = await startServer();
    for (const host of GOOD) expect([host, await withHost(server, "/api/models", host)]).toEqual([host, 200]);
    for (const host of BAD) expect([host, await withHost(server, "/api/models", host)]).toEqual([host, 403]);
  });

  test("H2: no path is left out, streams and unknown ones included, but the two for a balancer", async () => {
    const server = await startServer();
    const id = await makeSession(server);
    for (const path of [
      "/",
      "/docs",
      "/openapi.json",
      "/metrics",
      "/nowhere",
      `/api/sessions/${id}/stream`,
      "/api/events",
    ]) {
      expect([path, await withHost(server, path, "evil.example")]).toEqual([path, 403]);
    }
    expect(await withHost(server, "/api/models", "evil.example", "OPTIONS")).toBe(403);
    expect(await withHost(server, "/healthz", "evil.example")).toBe(200);
    expect(await withHost(server, "/readyz", "evil.example")).toBe(200);
  });

  test("H2: OMNID_ALLOWED_HOSTS lets a name in, with its port when one is named", async () => {
    const server = await startServer({ OMNID_ALLOWED_HOSTS: "omnid.example,Other.example:8443" });
    expect(await withHost(server, "/api/models", "OMNID.example:99")).toBe(200);
    expect(await withHost(server, "/api/models", "other.example:8443")).toBe(200);
    expect(await withHost(server, "/api/models", "other.example")).toBe(403);
    expect(await withHost(server, "/api/models", "sub.omnid.example")).toBe(403);
  });

  test.each([
    ["a missing Host", "GET /api/models HTTP/1.1\r\nconnection: close\r\n\r\n"],
    ["an empty Host", "GET /api/models HTTP/1.1\r\nhost: \r\nconnection: close\r\n\r\n"],
    ["a second Host", "GET /api/models HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n"],
    [
      "a target with another host",
      "GET http://evil.example/api/models HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
    ],
    ["HTTP/1.0 without a Host", "GET /api/models HTTP/1.0\r\n\r\n"],
  ])("H2: %s gets 403 host_not_allowed in the one shape", async (_what, bytes) => {
    const answer = await raw(await startServer(), bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toMatch(/\r\nx-request-id: \S+\r\n/);
    expect(answer).toContain('{"error":{"code":"host_not_allowed"');
  });
});

describe("Origin and CORS", () => {
  test("H1: a page of another site cannot change anything, by a simple request or another", async () => {
    const server = await startServer();
    for (const origin of ["https://evil.example", "null", "http://localhost:1", "http://127.0.0.1", "file://"]) {
      const json = await call(server, "POST", "/api/sessions", {}, { origin });
      expect([origin, json.status, json.body.error.code]).toEqual([origin, 403, "origin_not_allowed"]);
      expect(json.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect(server.host.sessions.size).toBe(0);
  });

  test("H1: a body that a form can send is refused even without an Origin, an empty one too", async () => {
    const server = await startServer();
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      for (const body of ["{}", ""]) {
        const sent = await fetch(`${server.url}/api/sessions`, {
          method: "POST",
          body,
          headers: { "content-type": type },
        });
        expect([type, sent.status]).toEqual([type, 415]);
      }
    }
    expect(server.host.sessions.size).toBe(0);
  });

  test("the server's own origin may change things, behind TLS too", async () => {
    const server = await startServer();
    for (const scheme of ["http", "https"]) {
      const origin = `${scheme}://127.0.0.1:${server.port}`;
      expect((await call(server, "POST", "/api/sessions", {}, { origin })).status).toBe(201);
    }
  });

  test("H1: a preflight from an origin that is not listed gets no CORS header", async () => {
    const server = await startServer({ CORS_ORIGINS: "https://app.example" });
    const headers = { origin: "https://evil.example", "access-control-request-method": "POST" };
    const answer = await call(server, "OPTIONS", "/api/sessions", undefined, headers);
    expect(answer.status).toBe(204);
    expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
  });

  test("a listed origin's preflight names the methods and headers that clients of streams need, without a token", async () => {
    const server = await startServer({ CORS_ORIGINS: "https://app.example", OMNID_TOKENS: "ada:secret" });
    const headers = {
      origin: "https://app.example",
      "access-control-request-method": "PATCH",
      "access-control-request-headers": "last-event-id,authorization",
    };
    const answer = await call(server, "OPTIONS", "/api/sessions/x/stream", undefined, headers);
    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-origin")).toBe("https://app.example");
    expect(answer.headers.get("access-control-allow-methods")).toMatch(/PATCH.*DELETE/);
    for (const name of ["Last-Event-ID", "Authorization", "Idempotency-Key", "Content-Type"]) {
      expect(answer.headers.get("access-control-allow-headers")).toContain(name);
    }
    expect(Number(answer.headers.get("access-control-max-age"))).toBeGreaterThan(0);
    expect(answer.headers.get("vary")).toMatch(/origin/i);
  });

  test("B5: a stream carries the CORS, Vary and request id headers that JSON and errors carry", async () => {
    const server = await startServer({ CORS_ORIGINS: "https://app.example" });
    const id = await makeSession(server);
    const headers = { origin: "https://app.example", "x-request-id": "mine-1" };
    const json = await call(server, "GET", `/api/sessions/${id}`, undefined, headers);
    const error = await call(server, "GET", "/api/sessions/none", undefined, headers);
    const stream = await openStream(server, `/api/sessions/${id}/stream`, { headers });
    const task = await openStream(server, `/api/sessions/${id}/tasks`, {
      method: "POST",
      body: { input: "hi" },
      headers: { ...headers, accept: "text/event-stream" },
    });
    expect([json.status, error.status, stream.status, task.status]).toEqual([200, 404, 200, 200]);
    for (const name of [
      "access-control-allow-origin",
      "access-control-expose-headers",
      "vary",
      "x-request-id",
      "x-content-type-options",
    ]) {
      const values = [error, stream, task].map((answer) => answer.headers.get(name));
      expect([name, ...values]).toEqual([name, ...values.map(() => json.headers.get(name))]);
      expect(json.headers.get(name)).toBeTruthy();
    }
    expect(json.headers.get("access-control-expose-headers")).toMatch(/x-request-id.*retry-after/);
  });
});

describe("tokens", () => {
  const tokens = { OMNID_TOKENS: "ada:ada-secret,bob:bob-secret,bare-secret" };
  const bearer = (secret: string) => ({ authorization: `Bearer ${secret}` });

  test("everything under /api and /metrics needs one, unknown paths included; the rest needs none", async () => {
    const server = await startServer(tokens);
    for (const path of [
      "/api/models",
      "/api/sessions",
      "/api/events",
      "/api/nowhere",
      "/metrics",
      "/api/sessions/x/stream",
    ]) {
      const answer = await call(server, "GET", path);
      expect([path, answer.status, answer.body.error.code]).toEqual([path, 401, "unauthorized"]);
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer /);
    }
    for (const path of ["/healthz", "/readyz", "/docs", "/openapi.json", "/openapi.yaml"]) {
      expect([path, (await call(server, "GET", path)).status]).toEqual([path, 200]);
    }
    expect((await call(server, "GET", "/nowhere")).status).toBe(404);
  });

  test("a path that is spelt with escapes needs one as well", async () => {
    const server = await startServer(tokens);
    for (const path of ["/%61pi/models", "/ap%69/sessions", "/%6detrics"]) {
      expect([path, (await call(server, "GET", path)).status]).not.toEqual([path, 200]);
    }
  });

  test.each(["ada-secret2", "ada-secre", "ada", "ada:ada-secret", "", "Ada-Secret"])(
    "%s opens nothing",
    async (secret) => {
      expect((await call(await startServer(tokens), "GET", "/api/models", undefined, bearer(secret))).status).toBe(401);
    },
  );

  test("A11: each token sees its own Sessions only, and a foreign one is not found whatever is asked", async () => {
    const server = await startServer(tokens);
    const id = await makeSession(server, bearer("ada-secret"));
    for (const stranger of ["bob-secret", "bare-secret"]) {
      expect((await call(server, "GET", "/api/sessions", undefined, bearer(stranger))).body.sessions).toEqual([]);
      for (const [method, path, body] of [
        ["GET", "", undefined],
        ["PATCH", "", {}],
        ["DELETE", "", undefined],
        ["GET", "/messages", undefined],
        ["GET", "/trace", undefined],
        ["GET", "/approvals", undefined],
        ["GET", "/stream?lastEventId=7-1", undefined],
        ["POST", "/tasks", { input: "hi" }],
        ["POST", "/abort", {}],
        ["POST", "/approvals/call-1", { decision: "allow" }],
      ] as const) {
        const answer = await call(server, method, `/api/sessions/${id}${path}`, body, bearer(stranger));
        expect([method, path, answer.status, answer.body.error.code]).toEqual([method, path, 404, "session_not_found"]);
      }
    }
    expect((await call(server, "GET", `/api/sessions/${id}`, undefined, bearer("ada-secret"))).status).toBe(200);
  });

  test("B13: a token in the query opens the streams and nothing else, and is in no log line", async () => {
    const server = await startServer(tokens);
    const id = await makeSession(server, bearer("ada-secret"));
    for (const path of [`/api/sessions/${id}/stream`, "/api/events"]) {
      const stream = await openStream(server, `${path}?access_token=ada-secret`);
      expect([path, stream.status]).toEqual([path, 200]);
      stream.close();
      expect((await call(server, "HEAD", `${path}?access_token=ada-secret`)).status).toBe(200);
      expect((await call(server, "GET", `${path}?access_token=wrong-secret`)).status).toBe(401);
      expect((await call(server, "GET", `${path}?access_token=ada-secret&access_token=x`)).status).toBe(401);
    }
    for (const path of [
      `/api/sessions/${id}`,
      "/api/sessions",
      "/api/models",
      `/api/sessions/${id}/messages`,
      "/metrics",
    ]) {
      expect([path, (await call(server, "GET", `${path}?access_token=ada-secret`)).status]).toEqual([path, 401]);
    }
    await call(server, "GET", "/nowhere?access_token=ada-secret");
    await call(server, "GET", "/%zz?access_token=ada-secret");
    const posted = await call(server, "POST", `/api/sessions/${id}/tasks?access_token=ada-secret`, { input: "hi" });
    expect(posted.status).toBe(401);
    expect(server.logged()).toContain('"path":"/nowhere"');
    expect(server.logged()).not.toMatch(/ada-secret|wrong-secret|access_token|[Bb]earer/);
  });
});
