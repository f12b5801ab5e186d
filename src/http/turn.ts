// Requests that a client sends on one connection without waiting for the answers (pipelining). Their answers have to wait
// for each other, so nothing is done for one before its turn: each would hold its answer in memory until then, and a
// client that sends hundreds and reads none could have the process hold gigabytes.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { onceOver } from "./once-over.js";

/** From so many on the connection is not read any further: each that waits is a few kilobytes. */
const MAX_WAITING = 32;

const waiting = new WeakMap<Socket, number>();

/** Calls `go` when the answer may be written, at once where none is before it; never where its connection ends first. */
export function inTurn(request: IncomingMessage, response: ServerResponse, go: () => void): void {
  const { socket } = request;
  // HTTP/2 and an injected request have no turns.
  if (response.socket !== null || !(socket instanceof Socket)) {
    go();
    return;
  }
  let isWaiting = true;
  const stop = () => {
    if (isWaiting) count(socket, -1);
    isWaiting = false;
  };
  count(socket, 1);
  response.once("socket", () => {
    stop();
    go();
  });
  onceOver(response, stop);
}

function count(socket: Socket, change: 1 | -1): void {
  const now = (waiting.get(socket) ?? 0) + change;
  waiting.set(socket, now);
  if (socket.destroyed) return;
  if (now >= MAX_WAITING) socket.pause();
  else if (now === MAX_WAITING - 1 && change === -1) socket.resume();
}
