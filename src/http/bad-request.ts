// What Node's parser refuses never becomes a request; it is answered on the bare socket, in the same shape.

import type { Socket } from "node:net";
import { type ErrorCode, errorBody, statusOf } from "./errors.js";

const REASONS: Record<string, [ErrorCode, string, string]> = {
  HPE_HEADER_OVERFLOW: ["headers_too_large", "Request Header Fields Too Large", "the headers are too large"],
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "Request Timeout", "the request took too long to arrive"],
};

/** Answers a connection whose bytes are no HTTP request, and ends it. */
export function answerBadRequest(error: Error & { code?: string }, socket: Socket, requestId: string): void {
  if (error.code === "ECONNRESET" || !socket.writable || isAnswering(socket)) {
    socket.destroy();
    return;
  }
  const [code, phrase, message] = REASONS[error.code ?? ""] ?? ["invalid_request", "Bad Request", "this is not HTTP"];
  const body = JSON.stringify(errorBody(code, message));
  socket.end(
    [
      `HTTP/1.1 ${statusOf(code)} ${phrase}`,
      "content-type: application/json; charset=utf-8",
      `content-length: ${Buffer.byteLength(body)}`,
      `x-request-id: ${requestId}`,
      "connection: close",
      "",
      body,
    ].join("\r\n"),
  );
}

// Bytes that follow a request on the same connection may be bad while its answer is still going out, a stream perhaps:
// a second status line would land in the middle of it. Node keeps the answer under this name and tells nobody else.
function isAnswering(socket: Socket): boolean {
  const answer = (socket as Socket & { _httpMessage?: { headersSent: boolean } | null })._httpMessage;
  return answer?.headersSent === true;
}
