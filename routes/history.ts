// What a Session recorded: as JSON with the place in the stream that it describes, and as the bare file.

import { Readable } from "node:stream";
import { z } from "zod";
import type { App, RouteContext } from "../src/http/context.js";
import { historyQuery, historySchema, sessionParams } from "../src/http/contracts.js";
import { orThrow } from "../src/http/errors.js";
import { answers, content } from "../src/http/openapi.js";
import { toLine } from "../src/protocol/message.js";
import type { HistoryPage } from "../src/session/types.js";
import { findSession } from "./find-session.js";

/** An answer below this goes out whole, with its length. */
const STREAM_ABOVE_BYTES = 256 * 1024;

const TRACE_URL = "/api/sessions/:id/trace";

export function historyRoutes(app: App, { host }: RouteContext): void {
  app.route({
    method: "GET",
    url: "/api/sessions/:id/messages",
    schema: {
      operationId: "getMessages",
      tags: ["History"],
      summary: "Read the history",
      description:
        "Then follow the stream with `lastEventId` set to `cursor`: nothing is missing and nothing comes twice.",
      params: sessionParams,
      querystring: historyQuery,
      ...answers(
        { 200: historySchema.describe("Records in order, and the open fragments") },
        "invalid_request",
        "session_not_found",
      ),
    },
    handler: async (request, reply) => {
      const session = await findSession(host, request.params.id, request.owner);
      const page = orThrow(await session.history(request.query));
      reply.type("application/json; charset=utf-8");
      const size = page.records.reduce((sum, record) => sum + record.json.length, 0);
      if (size < STREAM_ABOVE_BYTES) return reply.send([...historyPieces(page)].join(""));
      // One buffer at a time: what a slow client has not taken is not rendered yet.
      return reply.send(Readable.from(historyPieces(page), { objectMode: false, highWaterMark: 1 }));
    },
  });

  app.head(TRACE_URL, { schema: { params: sessionParams } }, async (request, reply) => {
    await findSession(host, request.params.id, request.owner);
    return reply.type("application/x-ndjson").send();
  });

  app.route({
    method: "GET",
    url: TRACE_URL,
    config: { isStream: true },
    schema: {
      operationId: "downloadTrace",
      tags: ["History"],
      summary: "Download the Trace",
      description: "JSON Lines, byte for byte as stored, all files in order.",
      params: sessionParams,
      ...answers({ 200: content("application/x-ndjson", z.string(), "The Trace") }, "session_not_found"),
    },
    handler: async (request, reply) => {
      const session = await findSession(host, request.params.id, request.owner);
      return reply.type("application/x-ndjson").send(session.openTrace());
    },
  });
}

const PIECE_CHARS = 64 * 1024;

/** The answer's text, in pieces. Records are spliced in as stored: they are never parsed and written again. */
export function* historyPieces(page: HistoryPage): Generator<string> {
  let piece = '{"messages":[';
  let separator = "";
  for (const { ordinal, json } of page.records) {
    piece += `${separator}{"ordinal":${ordinal},${json.slice(1)}`;
    separator = ",";
    if (piece.length < PIECE_CHARS) continue;
    yield piece;
    piece = "";
  }
  const { cursor, live, children, nextBefore } = page;
  // The rest as an object of its own, without its opening brace.
  yield `${piece}],${toLine({ cursor, live, children, nextBefore }).slice(1)}`;
}
