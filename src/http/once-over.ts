// Says when an answer is over. A response that never got its turn on a connection does not close by itself: its
// connection does, and however many requests are pipelined on one, it is listened to once.

import type { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";

/** What is called when a connection closes. */
const waiting = new WeakMap<EventEmitter, Set<() => void>>();

/** Calls `over` once, when the response has closed or its connection is gone. */
export function onceOver(response: ServerResponse, over: () => void): void {
  const socket = response.req?.socket;
  const waits = socket && waitsOf(socket);
  let isOver = false;
  const once = () => {
    if (isOver) return;
    isOver = true;
    waits?.delete(once);
    over();
  };
  response.once("close", once);
  waits?.add(once);
  if (response.closed || socket?.destroyed) process.nextTick(once);
}

function waitsOf(socket: EventEmitter): Set<() => void> {
  const known = waiting.get(socket);
  if (known) return known;
  const waits = new Set<() => void>();
  waiting.set(socket, waits);
  socket.once("close", () => {
    for (const over of [...waits]) over();
  });
  return waits;
}
