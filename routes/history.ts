// What a Session recorded: as JSON with the place in the stream that it describes, and as the bare file.

import { Readable } from "node:stream";
import { z } from "zod";
import type { App, RouteContext } from "../src/http/context.js";
import { historyQuery, historySchema, sessionParams } from "../src/http/contracts.js";
import { onceOver } from "../src/http/once-over.js";
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
      ),
    },
    handler: (request, reply) =>
      useSession(host, request.params.id, request.owner, async (session) => {
        const gone = new AbortController();
        onceOver(reply.raw, () => gone.abort());
        const pieces = historyPieces(session.history(request.query, gone.signal));
        reply.type("application/json; charset=utf-8");
        const { head, isWhole } = await take(pieces, STREAM_ABOVE_CHARS);
        return reply.send(isWhole ? head.join("") : new Pieces(head, pieces));
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

type Piece = string | Buffer;

/** The answer, in pieces. Records are spliced in as stored: they are never parsed and written again. */
export async function* historyPieces({ records, ...rest }: HistoryPage): AsyncGenerator<Piece, void, void> {
  let piece = '{"messages":[';
  let separator = "";
  for await (const batch of records) {
    for (const { ordinal, json } of batch) {
      piece += `${separator}{"ordinal":${ordinal},`;
      separator = ",";
      if (typeof json === "string") piece += json.slice(1);
      else {
        yield piece;
        piece = "";
        yield* withoutFirstByte(json);
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

async function* withoutFirstByte(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, void> {
  let from = 1;
  for await (const bytes of pieces) {
    if (bytes.length > from) yield bytes.subarray(from);
    from = 0;
  }
}

/**
 * Takes pieces until they are as long as `chars`, or one is of a long record. A disk that refuses meanwhile refuses the
 * request.
 */
async function take(pieces: AsyncIterator<Piece, void>, chars: number): Promise<{ head: Piece[]; isWhole: boolean }> {
  const head: Piece[] = [];
  for (let length = 0; length < chars; ) {
    const piece = await pieces.next();
    if (piece.done === true) return { head, isWhole: true };
    head.push(piece.value);
    if (typeof piece.value !== "string") break;
    length += piece.value.length;
  }
  return { head, isWhole: false };
}

/**
 * One piece at a time: what a slow client has not taken is not even read yet. The file is let go however this ends, also
 * where the client left before anything was asked of it (a generator that has not begun has no `finally`).
 */
class Pieces extends Readable {
  readonly #head: Piece[];
  readonly #rest: AsyncGenerator<Piece, void, void>;

  constructor(head: Piece[], rest: AsyncGenerator<Piece, void, void>) {
    super({ highWaterMark: 1 });
    this.#head = head;
    this.#rest = rest;
  }

  override _read(): void {
    const head = this.#head.shift();
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
