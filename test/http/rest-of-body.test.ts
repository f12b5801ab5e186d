import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { discardRest } from "../../src/http/rest-of-body.js";
import { type RunningServer, startServer } from "../support/http-server.js";
import { manualClock } from "../support/manual-clock.js";

const LENGTH = 50_000;
const JSON_TYPE = "application/json";
const TRACE_TYPE = "application/x-ndjson";

interface Sent {
  path: string;
  type: string;
  /** Lines of the head; left out: the length of the body. */
  lines?: string[];
  /** What of the body comes with the head. */
  first?: string;
}

/** Sends a head, and resolves with the status once the whole answer is here. */
async function send(server: RunningServer, { path, type, lines = [`content-length: ${LENGTH}`], first = "" }: Sent) {
  const accepted = once(server.app.server, "connection").then(([socket]: Socket[]) => {
    return { here: socket as Socket, closed: once(socket as Socket, "close") };
  });
  const client = connect(server.port, "127.0.0.1").on("error", () => {});
  const head = [`POST ${path} HTTP/1.1`, "host: 127.0.0.1", `content-type: ${type}`, ...lines, "", ""].join("\r\n");
  client.write(head + first);
  let said = "";
  for await (const piece of client.iterator({ destroyOnReturn: false })) {
    said += piece;
    const [answerHead = "", body] = said.split("\r\n\r\n");
    const length = /content-length: (\d+)/i.exec(answerHead)?.[1];
    if (body !== undefined && body.length === Number(length)) break;
  }
  return { ...(await accepted), client, sent: head.length + first.length, status: Number(said.split(" ")[1]) };
}

const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
const close = ["connection: close", `content-length: ${LENGTH}`];
const chunked = ["connection: close", "transfer-encoding: chunked"];
const refused: [string, number, Sent & { rest?: string }][] = [
  ["too large by its length", 413, { path: "/api/sessions", type: JSON_TYPE }],
  [
    "too large as it comes",
    413,
    { path: "/api/sessions", type: JSON_TYPE, lines: chunked, first: chunk("x".repeat(2_000)), rest: chunk("rest") },
  ],
  ["of the wrong type", 415, { path: "/api/sessions", type: "text/plain", lines: close }],
  ["for nothing", 404, { path: "/api/none", type: JSON_TYPE, lines: close }],
  [
    "for a Trace and compressed",
    415,
    { path: "/api/sessions/import", type: TRACE_TYPE, lines: [...close, "content-encoding: gzip"] },
  ],
  ["with an expectation", 417, { path: "/api/sessions", type: JSON_TYPE, lines: [...close, "expect: miracles"] }],
];

test.each(refused)(
  "a body %s is read to its end after the answer, before the connection is closed",
  async (_, status, sent) => {
    const server = await startServer({ OMNID_BODY_LIMIT: "1000" });
    const answer = await send(server, sent);
    expect(answer.status).toBe(status);
    const rest = sent.rest === undefined ? "x".repeat(LENGTH) : `${sent.rest}0\r\n\r\n`;
    answer.client.write(rest);
    await answer.closed;
    expect(answer.here.bytesRead).toBe(answer.sent + rest.length);
  },
);

test("a body that is refused while the server ends is read to its end too", async () => {
  const server = await startServer();
  server.host.draining = true;
  const answer = await send(server, { path: "/api/sessions", type: JSON_TYPE });
  expect(answer.status).toBe(503);
  answer.client.write("x".repeat(LENGTH));
  await answer.closed;
  expect(answer.here.bytesRead).toBe(answer.sent + LENGTH);
});

test("after an answer a trickle ends with its connection after two minutes, also where an upload may take hours", async () => {
  const clock = manualClock();
  const server = await startServer({}, clock);
  const answer = await send(server, {
    path: "/api/sessions/import",
    type: TRACE_TYPE,
    lines: [`content-length: ${2 * 1024 ** 3}`],
  });
  expect(answer.status).toBe(413);
  answer.client.write("x");
  await expect.poll(() => answer.here.bytesRead).toBe(answer.sent + 1);
  clock.advance(120_000);
  await answer.closed;
  expect(JSON.parse(server.logged().match(/^.*"msg":"request".*$/m)?.[0] ?? "")).toMatchObject({
    status: 413,
    done: true,
  });
});

test("no more than a quarter of a gigabyte is thrown away for an answer", async () => {
  const piece = Buffer.alloc(1024 ** 2);
  const bodyOf = (pieces: number) => Readable.from(Array.from({ length: pieces }, () => piece)) as IncomingMessage;
  expect(await discardRest(bodyOf(256), manualClock())).toBe(true);
  expect(await discardRest(bodyOf(257), manualClock())).toBe(false);
});
