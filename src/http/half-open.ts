// A client may end its half of a connection once it has asked for all that it wants (`nc -N`), and reads on. What it asked
// for is answered, and the connection ends with the last answer. One that is gone for good looks the same until something
// is written to it: then its side resets the connection. Streams of events have no last byte, so they end at once.

import type { Server } from "node:http";
import type { Socket } from "node:net";

/** Node's own switch, which its types leave out. */
export function answerHalfOpen(server: Server): void {
  Object.assign(server, { httpAllowHalfOpen: true });
}

/** Ends a stream once its client has ended its half; after the first event where that was before the stream. */
export function endWithClient(socket: Socket): void {
  const end = () => void socket.destroy();
  if (socket.readableEnded) setImmediate(end);
  else socket.once("end", end);
}
