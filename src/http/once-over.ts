// Says when an answer is over. Node closes the response whose turn it is when a connection goes, and leaves those that
// wait behind it open for ever, with the files that they read from: here they are closed as it closes that one.

import type { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";

/** The responses of a connection that are not over. One listener serves all of them. */
const open = new WeakMap<EventEmitter, Set<ServerResponse>>();

/** Calls `over` once, when the response has closed or its connection is gone. */
export function onceOver(response: ServerResponse, over: () => void): void {
  const socket = response.req?.socket;
  let isOver = false;
  const once = () => {
    if (isOver) return;
    isOver = true;
    over();
  };
  response.once("close", once);
  if (socket) closeWith(socket, response);
  if (response.closed || socket?.destroyed) process.nextTick(once);
}

function closeWith(socket: EventEmitter, response: ServerResponse): void {
  const responses = open.get(socket) ?? listen(socket);
  if (responses.has(response)) return;
  responses.add(response);
  response.once("close", () => responses.delete(response));
}

function listen(socket: EventEmitter): Set<ServerResponse> {
  const responses = new Set<ServerResponse>();
  open.set(socket, responses);
  socket.once("close", () => {
    // One that has a socket had its turn, and is Node's to close.
    for (const response of responses) if (!response.socket) close(response);
  });
  return responses;
}

function close(response: ServerResponse): void {
  // What `closed` reads, which also tells a stream that is sent to it later.
  Object.assign(response.destroy(), { _closed: true });
  response.emit("close");
}
