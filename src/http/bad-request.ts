// What Node's parser refuses never becomes a request; it is answered on the bare socket, in the same shape. So is a
// request whose body is bad or late: whoever reads it may still wait for the rest.

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";
import { type ErrorCode, errorBody, statusOf } from "./errors.js";
import type { Recorder } from "./recorder.js";

const REASONS: Record<string, [ErrorCode, string, string]> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "Request Header Fields Too Large", "the headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "Request Timeout", "the request took too long to arrive"],
};

/** For how long a client may keep its half of a connection that has ended; closed at once, the answer could be lost. */
const LINGER_MS = 5_000;

/** Answers a connection whose bytes are no HTTP request, and ends it. */
export function answerBadRequest(
  error: Error & { code?: string },
  socket: Socket,
  { clock, recorder }: { clock: Clock; recorder: Recorder },
): void {
  const response = answerInTurn(socket);
  // Bytes that follow a request on the same connection may be bad while its answer is still going out, a stream perhaps:
  // a second status line would land in the middle of it.
  if (error.code === "ECONNRESET" || !socket.writable || response?.headersSent) {
    socket.destroy();
    return;
  }
  const [code, phrase, message] = REASONS[error.code ?? ""] ?? ["invalid_request", "Bad Request", "this is not HTTP"];
  const status = statusOf(code);
  const requestId = recorder.answered({ status, reason: error.code }, response);
  const body = JSON.stringify(errorBody(code, message));
  socket.end(
    [
      `HTTP/1.1 ${status} ${phrase}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
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
