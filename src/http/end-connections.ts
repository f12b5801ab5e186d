// How the last answers of a server that ends go out: whoever still takes something of them is waited for, and nobody else.

import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";

/** The open connections of a server, from its first on. */
export class Connections {
  readonly #open = new Set<Socket>();

  constructor(server: Server) {
    server.on("connection", (socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
    });
  }

  /**
   * Ends a connection once it has taken nothing for `graceMs`, and all of them after `limitMs`. The server accepts no
   * more of them meanwhile. The returned function stops it.
   */
  end(clock: Clock, graceMs: number, limitMs: number): () => void {
    const endsAt = clock.monotonic() + limitMs;
    let before = this.#taken();
    const look = () => {
      const taken = this.#taken();
      const isLate = clock.monotonic() >= endsAt;
      for (const [socket, bytes] of taken) if (isLate || bytes === before.get(socket)) socket.destroy();
      before = taken;
      cancel = clock.after(graceMs, look);
    };
    let cancel = clock.after(graceMs, look);
    return () => cancel();
  }

  /** Bytes that the system has taken for each connection. */
  #taken(): Map<Socket, number> {
    return new Map([...this.#open].map((socket) => [socket, socket.bytesWritten - socket.writableLength]));
  }
}
