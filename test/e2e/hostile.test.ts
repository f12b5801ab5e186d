// What no honest client sends. The server answers each in the one shape of its errors, and lives.

import { connect } from "node:net";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { api, at, history, makeSession } from "./api.js";

let server: Server;
let id: string;
beforeAll(async () => {
  server = await startOmnid({ atEnd: atFileEnd, env: { OMNID_BODY_LIMIT: "100000" } });
  id = await makeSession(server);
});

/** Sends bytes as they are and gives all that comes back until the server ends the connection; `leave` hangs up first. */
function raw(bytes: string | Buffer, leave = false): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(server.port, "127.0.0.1", () => {
      socket.write(bytes);
      if (leave) socket.end();
    });
    let received = "";
    socket.setEncoding("latin1").on("data", (text) => {
      received += text;
    });
    // A reset is an answer too: what counts is that the server goes on.
    socket.on("error", () => {});
    socket.on("close", () => resolve(received));
  });
}

const statusOf = (text: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1]);

describe("bodies", () => {
  const deep = `${"[".repeat(40_000)}${"]".repeat(40_000)}`;
  const cases: [string, string, number][] = [
    ["nothing", "", 400],
    ["not JSON", "{input:1}", 400],
    ["cut JSON", '{"input":"x"', 400],
    ["null", "null", 400],
    ["a list", "[]", 400],
    ["a string", '"input"', 400],
    ["no input", "{}", 400],
    ["a number for input", '{"input":5}', 400],
    ["an unknown field", '{"input":"x","inptu":"y"}', 400],
    ["a prototype", '{"input":"x","__proto__":{"whenBusy":"queue"}}', 400],
    ["an unknown part", '{"input":[{"type":"video","url":"x"}]}', 400],
    [
      "a file with a path for a name",
      '{"input":[{"type":"file","fileName":"../x","dataUrl":"data:text/plain,x"}]}',
      400,
    ],
    ["an image from the disk", '{"input":[{"type":"image_url","imageUrl":"file:///etc/passwd"}]}', 400],
    ["a bad level", '{"input":"x","thinkingLevel":"most"}', 400],
    ["a huge nesting", `{"input":${deep}}`, 400],
    ["too much", JSON.stringify({ input: "x".repeat(100_001) }), 413],
  ];
  test.each(cases)("%s is refused and nothing is stored", async (_kind, body, status) => {
    const refused = await api(server, "POST", at(id, "/tasks"), body);
    expect(refused.status).toBe(status);
    if (status === 400 && refused.body.error.code === "invalid_request") {
      for (const detail of refused.body.error.details ?? [])
        expect(Object.keys(detail).sort()).toEqual(["message", "path"]);
    }
    expect((await history(server, id)).records).toHaveLength(1);
    expect(Object.prototype).not.toHaveProperty("whenBusy");
  });

  test("H1: another content type than JSON is 415, and so is none at all", async () => {
    for (const type of [
      "text/plain",
      "application/x-www-form-urlencoded",
      "multipart/form-data; boundary=x",
      "application/jsonp",
    ]) {
      const refused = await api(server, "POST", at(id, "/tasks"), '{"input":"x"}', { "content-type": type });
      expect(refused).toMatchObject({ status: 415, body: { error: { code: "unsupported_media_type" } } });
    }
    const bare = await raw(
      `POST /api/sessions/${id}/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 13\r\n\r\n{"input":"x"}`,
    );
    expect(statusOf(bare)).toBe(415);
    // All fields optional: neither a body nor a type is needed.
    expect(
      statusOf(
        await raw("POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"),
      ),
    ).toBe(201);
  });

  test("both or neither of provider and modelId, and only Workspaces that exist", async () => {
    const refusals: [Record<string, unknown>, number, string][] = [
      [{ provider: "demo" }, 400, "invalid_request"],
      [{ modelId: "demo" }, 400, "invalid_request"],
      [{ provider: "demo", modelId: "none" }, 400, "unknown_model"],
      [{ workspace: "/no/such/place" }, 400, "workspace_not_found"],
      [{ workspace: "relative" }, 400, "workspace_not_found"],
      [{ workspace: "/etc/passwd" }, 400, "workspace_not_found"],
      [{ allowOutsideWorkspace: true }, 403, "not_allowed"],
      [{ tools: ["no_such_tool"] }, 400, "invalid_request"],
      [{ maxTurns: 1.5 }, 400, "invalid_request"],
    ];
    for (const [body, status, code] of refusals) {
      const refused = await api(server, "POST", "/api/sessions", body);
      const { error } = refused.body;
      expect([status, error.code === "invalid_request" && code === "workspace_not_found" ? code : error.code]).toEqual([
        refused.status,
        code,
      ]);
    }
  });
});

describe("paths and methods", () => {
  test("what does not exist is 404 and what exists otherwise is 405, in the one shape", async () => {
    const cases: [string, string, number][] = [
      ["GET", "/api", 404],
      ["GET", "/api/nothing", 404],
      ["GET", "/nothing", 404],
      ["GET", at("session-2026-01-01-00-00-00-deadbeef"), 404],
      ["GET", at("..%2f..%2fetc%2fpasswd"), 404],
      ["GET", at("%00"), 404],
      ["GET", at("__proto__"), 404],
      ["GET", at("constructor", "/messages"), 404],
      ["DELETE", at("toString"), 404],
      ["PUT", at(id), 405],
      ["DELETE", "/api/sessions", 405],
      ["POST", at(id, "/stream"), 405],
      ["GET", at(id, "/abort"), 405],
    ];
    for (const [method, path, status] of cases)
      expect([path, (await api(server, method, path)).status]).toEqual([path, status]);
  });

  test("a path that climbs, a broken escape and an endless one are answered and reach no file", async () => {
    const head = "HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    for (const path of [
      "/../../etc/passwd",
      "/%2e%2e/%2e%2e/etc/passwd",
      "/docs/..%2f..%2f..%2fpackage.json",
      "//etc/passwd",
      "/%",
      "/api/sessions/%ff",
    ]) {
      const answer = await raw(`GET ${path} ${head}`);
      expect(answer).not.toMatch(/root:|"dependencies"/);
      expect([400, 403, 404]).toContain(statusOf(answer));
    }
    expect([404, 414, 431]).toContain(statusOf(await raw(`GET /${"a".repeat(60_000)} ${head}`)));
    expect(
      statusOf(await raw(`GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Big: ${"b".repeat(60_000)}\r\n\r\n`)),
    ).toBe(431);
  });
});

describe("headers", () => {
  test("H2: a name that is not ours is refused, on streams too, but not by the health checks", async () => {
    const ask = (path: string, host: string) =>
      raw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
    for (const host of [
      "evil.example",
      "evil.example:80",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "127.0.0.1@evil.example",
      "[::ffff:1.2.3.4]",
      "",
    ]) {
      for (const path of ["/api/sessions", at(id, "/stream"), "/", "/metrics"]) {
        const answer = await ask(path, host);
        expect([host, path, statusOf(answer)]).toEqual([host, path, 403]);
        expect(answer).toContain('"code":"host_not_allowed"');
      }
      expect(statusOf(await ask("/healthz", host))).toBe(200);
      expect(statusOf(await ask("/readyz", host))).toBe(200);
    }
    for (const host of ["localhost", "LOCALHOST:1", "localhost.", "127.0.0.1", "[::1]", "127.1.2.3"]) {
      expect([host, statusOf(await ask("/api/sessions", host))]).toEqual([host, 200]);
    }
  });

  test("H1: a foreign page changes nothing and reads nothing", async () => {
    for (const origin of ["https://evil.example", "null", "http://127.0.0.1:1", "file://"]) {
      const refused = await api(server, "POST", "/api/sessions", {}, { origin });
      expect(refused).toMatchObject({ status: 403, body: { error: { code: "origin_not_allowed" } } });
      const read = await api(server, "GET", "/api/sessions", undefined, { origin });
      expect(read.headers.get("access-control-allow-origin")).toBeNull();
      const asked = await fetch(`${server.url}/api/sessions`, {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      });
      expect(asked.headers.get("access-control-allow-origin")).toBeNull();
    }
    expect((await api(server, "POST", "/api/sessions", {}, { origin: server.url })).status).toBe(201);
  });

  test("HEAD and OPTIONS answer a stream's headers without opening it", async () => {
    for (const method of ["HEAD", "OPTIONS"]) {
      const answer = await fetch(server.url + at(id, "/stream"), { method });
      expect(await answer.text()).toBe("");
      expect(answer.ok).toBe(true);
    }
  });
});

describe("raw bytes", () => {
  test("garbage on the socket, and requests that smuggle, end that connection and nothing else", async () => {
    const pieces: (string | Buffer)[] = [
      "\r\n\r\n\r\n",
      Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03, 0x03]),
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "GET / HTTP/9.9\r\nHost: 127.0.0.1\r\n\r\n",
      "GET /healthz HTTP/1.1\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil\r\n\r\n",
      "POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n",
      "POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
      "POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n",
      "POST /api/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{",
      Buffer.concat([
        Buffer.from(`GET /api/sessions/`),
        Buffer.from([0xff, 0xfe, 0x00]),
        Buffer.from(" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
      ]),
      Buffer.alloc(200_000, 0x41),
    ];
    const answers = await Promise.all(pieces.map((piece) => raw(piece, true)));
    for (const answer of answers) {
      expect(answer).not.toMatch(/node_modules|\.js:\d/);
      if (answer !== "" && !/^HTTP\/1\.1 [23]/.test(answer)) expect(answer).toMatch(/"error":\{"code":"[a-z_]+"/);
    }
    expect((await api(server, "GET", at(id))).status).toBe(200);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    expect(server.printed()).not.toMatch(/uncaught|unhandled/i);
  });
});
