// What a Session recorded: as JSON with the place in the stream that it describes, and as the bare file.

import { Readable } from "node:stream";
import { z } from "zod";
import type { App, RouteContext } from "../src/http/context.js";
import { historyQuery, historySchema, sessionParams } from "../src/http/contracts.js";
import { answers, content, OF_A_SESSION } from "../src/http/openapi.js";
import { toLine } from "../src/protocol/message.js";
import type { HistoryPage } from "../src/session/types.js";
import { useSession } from "./use-session.js";

/** An answer below this goes out whole, with its length. */
const STREAM_ABOVE_CHARS = 256 * 1024;

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
        ...OF_A_SESSION,
        "storage_failed",
      ),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, async (session) => {
        const pieces = historyPieces(session.history(request.query));
        reply.type("application/json; charset=utf-8");
        const head = await take(pieces, STREAM_ABOVE_CHARS);
        if (head.isWhole) return reply.send(head.text);
        return reply.send(new Pieces(head.text, pieces));
      }),
  });

  app.head(TRACE_URL, { schema: { params: sessionParams } }, (request, reply) =>
    useSession(host, request.params.id, request.owner, () => reply.type("application/x-ndjson").send()),
  );

  app.route({
    method: "GET",
    url: TRACE_URL,
    schema: {
      operationId: "downloadTrace",
      tags: ["History"],
      summary: "Download the Trace",
      description: "JSON Lines, byte for byte as stored, all files in order.",
      params: sessionParams,
      ...answers({ 200: content("application/x-ndjson", z.string(), "The Trace") }, ...OF_A_SESSION),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, (session) =>
        reply.type("application/x-ndjson").send(session.openTrace()),
      ),
  });
}

const PIECE_CHARS = 64 * 1024;

/** The answer's text, in pieces. Records are spliced in as stored: they are never parsed and written again. */
export async function* historyPieces({ records, ...rest }: HistoryPage): AsyncGenerator<string, void, void> {
  let piece = '{"messages":[';
  let separator = "";
  for await (const batch of records) {
    for (const { ordinal, json } of batch) {
      piece += `${separator}{"ordinal":${ordinal},`;
      separator = ",";
      if (json.length <= PIECE_CHARS) piece += json.slice(1);
      else {
        yield piece;
        // Windows on the one text: a client that does not read holds no copies of a record of megabytes.
        for (let at = 1; at < json.length; at += piece.length) {
          piece = pieceOf(json, at);
          yield piece;
        }
        piece = "";
      }
      if (piece.length < PIECE_CHARS) continue;
      yield piece;
      piece = "";
    }
  }
  const { cursor, live, children, nextBefore } = rest;
  // The rest as an object of its own, without its opening brace.
  yield `${piece}],${toLine({ cursor, live, children, nextBefore }).slice(1)}`;
}

/** Ends between two characters: each piece is encoded by itself. */
function pieceOf(text: string, from: number): string {
  const piece = text.slice(from, from + PIECE_CHARS);
  const isCut = from + piece.length < text.length && /[\uD800-\uDBFF]$/.test(piece);
  return isCut ? piece.slice(0, -1) : piece;
}

/** Takes pieces until they are as long as `chars`. A disk that refuses meanwhile refuses the request. */
async function take(pieces: AsyncIterator<string, void>, chars: number): Promise<{ text: string; isWhole: boolean }> {
  let text = "";
  while (text.length < chars) {
    const piece = await pieces.next();
    if (piece.done === true) return { text, isWhole: true };
    text += piece.value;
  }
  return { text, isWhole: false };
}

/**
 * One piece at a time: what a slow client has not taken is not even read yet. The file is let go however this ends, also
 * where the client left before anything was asked of it (a generator that has not begun has no `finally`).
 */
class Pieces extends Readable {
  readonly #rest: AsyncGenerator<string, void, void>;
  #head: string | undefined;

  constructor(head: string, rest: AsyncGenerator<string, void, void>) {
    super({ highWaterMark: 1 });
    this.#head = head;
    this.#rest = rest;
  }

  override _read(): void {
    const head = this.#head;
    this.#head = undefined;
    if (head !== undefined) {
      this.push(head);
      return;
    }
    this.#rest.next().then(
      ({ done, value }) => this.push(done === true ? null : value),
      (error: Error) => this.destroy(error),
    );
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#rest.return().then(
      () => done(error),
      (cause: Error) => done(error ?? cause),
    );
  }
}
