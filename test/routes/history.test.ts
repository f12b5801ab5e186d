import { connect, type Socket } from "node:net";
import { Readable } from "node:stream";
import fc from "fast-check";
import { expect, test } from "vitest";
import { historyPieces } from "../../routes/history.js";
import { toLine } from "../../src/protocol/message.js";
import { StorageError } from "../../src/trace/storage-error.js";
import { call, makeSession, startServer } from "../support/http-server.js";

test("the pieces of an answer, however many, are one JSON object with each record as stored and its ordinal", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ timestamp: fc.string(), payload: fc.string({ maxLength: 40_000 }) }), { maxLength: 8 }),
      fc.record({
        children: fc.option(fc.dictionary(fc.string(), fc.nat()), { nil: undefined }),
        nextBefore: fc.option(fc.nat(), { nil: undefined }),
      }),
      async (messages, more) => {
        const records = messages.map((message, n) => ({ ordinal: n + 5, json: toLine(message) }));
        const defined = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined));
        const batches = Readable.from([records.slice(0, 3), records.slice(3)]);
        let text = "";
        for await (const piece of historyPieces({ records: batches, cursor: "7-9", ...defined })) text += piece;
        const expected = {
          messages: messages.map((message, n) => ({ ordinal: n + 5, ...message })),
          cursor: "7-9",
          ...defined,
        };
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(expected)));
        for (const { json } of records) expect(text).toContain(json.slice(1));
      },
    ),
    { numRuns: 50 },
  );
});

test("a long record's pieces are passed on as they come, without its opening brace", async () => {
  const json = Buffer.from(toLine({ timestamp: "", payload: { type: "text", text: "🙂é".repeat(1_000) } }));
  for (const first of [1, 2, 100, json.length]) {
    const cut = Readable.from([json.subarray(0, first), ...(first < json.length ? [json.subarray(first)] : [])]);
    const pieces: (string | Buffer)[] = [];
    const batches = Readable.from([
      [
        { ordinal: 0, json: '{"a":1}' },
        { ordinal: 1, json: cut },
        { ordinal: 2, json: '{"b":2}' },
      ],
    ]);
    for await (const piece of historyPieces({ records: batches, cursor: "1-1" })) pieces.push(piece);
    const text = Buffer.concat(pieces.map((piece) => Buffer.from(piece))).toString();
    const rest = json.toString().slice(1);
    expect(text).toBe(`{"messages":[{"ordinal":0,"a":1},{"ordinal":1,${rest},{"ordinal":2,"b":2}],"cursor":"1-1"}`);
    expect(pieces).not.toContainEqual(Buffer.alloc(0));
  }
});

test("a large history arrives whole, in chunks", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  server.host.sessions.get(id)!.fill(3000, 1000);
  const answer = await call(server, "GET", `/api/sessions/${id}/messages`);
  expect(answer.headers.get("content-length")).toBeNull();
  expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(answer.body.messages).toHaveLength(3001);
  expect(answer.body.messages.at(-1)).toMatchObject({ ordinal: 3000, type: "model_msg" });
  expect(answer.body.cursor).toBe("7-3000");
});

test("C5: a client that does not read a large history makes the server hold a small part of it", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  server.host.sessions.get(id)!.fill(20_000, 3000);
  const accepted = new Promise<Socket>((resolve) => server.app.server.once("connection", resolve));
  const socket = connect(server.port, "127.0.0.1");
  socket.write(`GET /api/sessions/${id}/messages HTTP/1.1\r\nhost: localhost\r\n\r\n`);
  // The answer has begun, and nothing of it is read.
  await new Promise((resolve) => socket.once("readable", resolve));
  const serverSide = await accepted;
  for (let n = 0; n < 5; n += 1) expect((await call(server, "GET", "/healthz")).status).toBe(200);
  const held = serverSide.writableLength;
  expect(held).toBeLessThan(1_000_000);
  expect(serverSide.bytesWritten).toBeLessThan(40_000_000);
  socket.destroy();
});

test("a disk that refuses a history at once is 507; one that refuses it half-way cuts the answer off", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const session = server.host.sessions.get(id)!;
  session.fill(3000, 1000);
  const whole = session.history.bind(session);
  const batches = (failAt: number) =>
    Readable.from(
      (async function* () {
        let batch = 0;
        for await (const records of whole({}).records) {
          for (let n = 0; n < records.length; n += 100, batch += 1) {
            if (batch === failAt) throw new StorageError("read_failed", "the trace could not be read");
            yield records.slice(n, n + 100);
          }
        }
      })(),
    );
  session.history = () => ({ ...whole({}), records: batches(0) });
  const refused = await call(server, "GET", `/api/sessions/${id}/messages`);
  expect([refused.status, refused.body.error.code]).toEqual([507, "storage_failed"]);
  session.history = () => ({ ...whole({}), records: batches(8) });
  const begun = await fetch(`${server.url}/api/sessions/${id}/messages`);
  expect(begun.status).toBe(200);
  await expect(begun.text()).rejects.toThrow();
});

test("the Trace is downloaded byte for byte, and HEAD opens no file", async () => {
  const server = await startServer();
  const id = await makeSession(server);
  const session = server.host.sessions.get(id)!;
  session.say("with \u2028 inside");
  let opened = 0;
  const { openTrace } = session;
  session.openTrace = () => {
    opened += 1;
    return openTrace.call(session);
  };
  const head = await call(server, "HEAD", `/api/sessions/${id}/trace`);
  expect([head.status, opened]).toEqual([200, 0]);
  const trace = await call(server, "GET", `/api/sessions/${id}/trace`);
  expect(trace.headers.get("content-type")).toBe("application/x-ndjson");
  const { messages } = (await call(server, "GET", `/api/sessions/${id}/messages`)).body;
  const lines = trace.text.trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line))).toEqual(
    messages.map(({ ordinal: _, ...rest }: { ordinal: number }) => rest),
  );
});
