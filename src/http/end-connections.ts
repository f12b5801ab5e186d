// How the last answers of a server that ends go out: whoever still takes his answer is waited for, and so is an answer
// that the server has not finished; nobody else is.

import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";

/** The open connections of a server, from its first on. */
export class Connections {
  /** With the request that is being answered, if there is one. */
  readonly #open = new Map<Socket, IncomingMessage | undefined>();

  constructor(server: Server) {
    server.on("connection", (socket) => {
      this.#open.set(socket, undefined);
      socket.once("close", () => this.#open.delete(socket));
    });
    server.on("request", (request, response) => this.#answers(request, response));
  }

  /**
   * Ends a connection once it has moved no byte for `graceMs` while it was its turn, and all of them after `limitMs`. The
   * server accepts no more of them meanwhile. The returned function stops it.
   */
  end(clock: Clock, graceMs: number, limitMs: number): () => void {
    const endsAt = clock.monotonic() + limitMs;
    let before = this.#moved();
    const look = () => {
      const isLate = clock.monotonic() >= endsAt;
      const moved = this.#moved();
      for (const [socket, bytes] of moved)
        if (isLate || (bytes === before.get(socket) && !this.#isOwed(socket))) socket.destroy();
      before = moved;
      next();
    };
    let cancel = () => {};
    const next = () => {
      const leftMs = endsAt - clock.monotonic();
      cancel = clock.after(leftMs > 0 ? Math.min(graceMs, leftMs) : graceMs, look);
    };
    if (limitMs > 0) next();
    else look();
    return () => cancel();
  }

  #answers(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    if (!this.#open.has(socket)) return;
    this.#open.set(socket, request);
    response.once("close", () => {
      if (this.#open.get(socket) === request) this.#open.set(socket, undefined);
    });
  }

  /** Bytes in both directions, as far as the system has taken them. */
  #moved(): Map<Socket, number> {
    return new Map(
      [...this.#open.keys()].map((socket) => [socket, socket.bytesRead + socket.bytesWritten - socket.writableLength]),
    );
  }

  /** True while the client waits for us: it has asked for everything, and has taken everything that there is so far. */
  #isOwed(socket: Socket): boolean {
    return this.#open.get(socket)?.complete === true && socket.writableLength === 0;
  }
}
