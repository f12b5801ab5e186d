// What Node's parser refuses never becomes a request; it is answered on the bare socket, in the same shape. So is a
// request whose body is bad or late: whoever reads it may still wait for the rest.

import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";
import { type ErrorCode, errorBody, statusOf } from "./errors.js";
import type { Recorder } from "./recorder.js";

const REASONS: Record<string, [ErrorCode, string, string]> = {
  CONNECT: ["method_not_allowed", "Method Not Allowed", "no path takes CONNECT"],
  HPE_HEADER_OVERFLOW: ["headers_too_large", "Request Header Fields Too Large", "the headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "Request Timeout", "the request took too long to arrive"],
};

/** For how long a client may keep its half of a connection that has ended; closed at once, the answer could be lost. */
const LINGER_MS = 5_000;

/** For how long bad bytes wait for the answers to the requests in front of them. */
const WAIT_MS = 30_000;

/** Connections that wait like that; all that comes on them is bad too, and is told of again and again. */
const waiting = new WeakSet<Socket>();

/** What may be asked of some path: a 405 has to name something. */
const ALLOWED = "GET, HEAD, POST, PATCH, DELETE, OPTIONS";

type BadRequest = Error & { code?: string };

interface Means {
  clock: Clock;
  recorder: Recorder;
}

/**
 * Answers a connection whose bytes are no HTTP request, and ends it. Bad bytes may follow good requests on the same
 * connection: those are answered first, each as if nothing came behind it.
 */
export function answerBadRequest(error: BadRequest, socket: Socket, means: Means): void {
  if (error.code === "ECONNRESET" || !socket.writable) socket.destroy();
  else if (!waiting.has(socket)) answerAfterOthers(error, socket, means);
}

/** Answers CONNECT as any method that a path does not take. Node gives such a connection away, and no longer looks after it. */
export function answerConnect(server: Server, means: Means): void {
  server.on("connect", (_request, connection) => {
    const socket = connection as Socket;
    socket.on("error", () => socket.destroy());
    socket.resume();
    answerBadRequest(Object.assign(new Error("CONNECT"), { code: "CONNECT" }), socket, means);
  });
}

function answerAfterOthers(error: BadRequest, socket: Socket, means: Means): void {
  let cancel = () => {};
  const next = () => {
    const response = answerInTurn(socket);
    // The bad bytes are the body of a request that has not come whole: the answer is to that one.
    const isOther = response?.req.complete === true;
    // What has begun and not ended may be a stream: a second status line would land in the middle of it.
    const isMidway = response?.headersSent === true && !(isOther && response.writableEnded);
    if (isOther && !isMidway) {
      response.once("close", next);
      return;
    }
    if (isMidway || !socket.writable) socket.destroy();
    else answerNow(error, socket, response, means);
    cancel();
  };
  waiting.add(socket);
  cancel = means.clock.after(WAIT_MS, () => socket.destroy());
  next();
}

function answerNow(
  error: BadRequest,
  socket: Socket,
  response: ServerResponse | undefined,
  { clock, recorder }: Means,
): void {
  const [code, phrase, message] = REASONS[error.code ?? ""] ?? ["invalid_request", "Bad Request", "this is not HTTP"];
  const status = statusOf(code);
  const isConnect = error.code === "CONNECT";
  const requestId = recorder.answered(
    { status, reason: error.code, method: isConnect ? error.code : undefined },
    response,
  );
  const body = JSON.stringify(errorBody(code, message));
  socket.end(
    [
      `HTTP/1.1 ${status} ${phrase}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      ...(isConnect ? [`allow: ${ALLOWED}`] : []),
      "connection: close",
      "",
      body,
    ].join("\r\n"),
  );
  socket.once(
    "close",
    clock.after(LINGER_MS, () => socket.destroy()),
  );
}

/** The response whose turn it is on the connection. Node keeps it under this name and tells nobody else. */
export function answerInTurn(socket: Socket): ServerResponse | undefined {
  return (socket as Socket & { _httpMessage?: ServerResponse | null })._httpMessage ?? undefined;
}
