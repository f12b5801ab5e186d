// Opens an event stream on a Fastify reply and gives the Channel a Sink for it.
//
// Three ways out, by what the connection is: HTTP/1.1 takes buffers that are already framed as chunks, straight to the
// socket (all readers share them, and `res.write` would cost more than the rest of the path); HTTP/1.0 takes the bare
// bytes on the socket; anything else (HTTP/2, a pipelined request whose turn has not come, an injected request) goes
// through `res.write`. Nothing calls `res.write` on a connection that was written to directly.

import type { ServerResponse } from "node:http";
import { Socket } from "node:net";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Sink } from "../channel/subscription.js";
import { endWithClient } from "./half-open.js";
import { onceOver } from "./once-over.js";

export const SSE_HEADERS = {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  // nginx would hold the stream back until it ends.
  "x-accel-buffering": "no",
} as const;

/**
 * Takes the reply over and sends status 200 with what hooks had set on it (CORS, request id) and the stream's headers.
 * From here on no error can become an answer: a fault ends this connection only.
 */
export function openSse(request: FastifyRequest, reply: FastifyReply): Sink {
  reply.headers(SSE_HEADERS).hijack();
  const response = reply.raw;
  const socket = directSocket(request, response);
  // Headers and first event leave in one packet: whoever opens the stream writes the first event in this same tick.
  if (socket) {
    socket.cork();
    process.nextTick(() => socket.uncork());
  }
  response.writeHead(200, streamHeaders(request, reply));
  response.flushHeaders();
  return socket ? socketSink(response, socket) : responseSink(response);
}

/** @returns the socket when this response is the one that it carries now and the bytes on it are ours to frame. */
function directSocket(request: FastifyRequest, response: ServerResponse): Socket | undefined {
  const { socket } = response;
  const isOurs = socket instanceof Socket && socket === request.raw.socket && request.raw.httpVersionMajor === 1;
  return isOurs ? socket : undefined;
}

function streamHeaders(request: FastifyRequest, reply: FastifyReply): Record<string, number | string | string[]> {
  const headers: Record<string, number | string | string[]> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) if (value !== undefined) headers[name] = value;
  // No length and no encoding: whatever a hook assumed about a body does not hold for a stream.
  delete headers["content-length"];
  delete headers["content-encoding"];
  // A stream that ends takes its connection with it, so that a drain does not wait for an idle one. HTTP/2 forbids it.
  if (request.raw.httpVersionMajor === 1) headers.connection = "close";
  return headers;
}

function socketSink(response: ServerResponse, socket: Socket): Sink {
  // Not after everything that is queued: for a client that does not read that is never.
  endWithClient(socket);
  let isEnded = false;
  return {
    framing: response.chunkedEncoding ? "chunked" : "plain",
    write: (bytes) => isEnded || socket.write(bytes),
    get queuedBytes() {
      return socket.writableLength;
    },
    onDrain: (resume) => socket.on("drain", resume),
    onClose: (closed) => onceOver(response, closed),
    end: () => {
      isEnded = true;
      // Writes the last chunk where there are chunks, and tells Node that the response is complete.
      response.end();
    },
    destroy: () => socket.destroy(),
  };
}

function responseSink(response: ServerResponse): Sink {
  let isEnded = false;
  return {
    framing: "plain",
    write: (bytes) => isEnded || response.write(bytes),
    get queuedBytes() {
      return response.writableLength;
    },
    onDrain: (resume) => response.on("drain", resume),
    onClose: (closed) => onceOver(response, closed),
    end: () => {
      isEnded = true;
      response.end();
    },
    destroy: () => response.destroy(),
  };
}
