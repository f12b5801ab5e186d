// A cable that is pulled once: everything goes through, but the first event stream ends in the middle of whatever comes
// with `cutAt`, as if the network had gone. What comes after finds it whole again.

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { AtEnd } from "../support/server.js";

export interface CuttingProxy {
  url: string;
  /** From now on everything goes to another port, as to a server that was started again. */
  leadTo(port: number): void;
  /** Streams that were asked for, the one that was cut included. */
  streams(): number;
  isCut(): boolean;
  /** The Session that the client spoke of first. */
  sessionId(): string;
}

export async function startCuttingProxy(
  target: number,
  cutAt: RegExp | undefined,
  atEnd: AtEnd,
): Promise<CuttingProxy> {
  const sockets = new Set<Socket>();
  let streams = 0;
  let isCut = cutAt === undefined;
  let port = target;
  let sessionId = "";
  const keep = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => {}).on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((client) => {
    const upstream = keep(connect(port, "127.0.0.1"));
    let isStream = false;
    let carried = "";
    keep(client).on("data", (bytes) => {
      const text = bytes.toString("latin1");
      sessionId ||= /\/sessions\/(session-[\w-]+)/.exec(text)?.[1] ?? "";
      if (/^accept: text\/event-stream/im.test(text)) {
        isStream = true;
        streams += 1;
      }
      upstream.write(bytes);
    });
    upstream.on("data", (bytes) => {
      if (!isStream || isCut) return void client.write(bytes);
      const before = carried.length;
      carried += bytes.toString("latin1");
      const found = cutAt?.exec(carried);
      if (!found) return void client.write(bytes);
      isCut = true;
      client.end(bytes.subarray(0, Math.max(0, found.index + found[0].length - before)), () => client.destroy());
      upstream.destroy();
    });
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroySoon());
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  atEnd(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo: (other) => {
      port = other;
    },
    streams: () => streams,
    isCut: () => isCut,
    sessionId: () => sessionId,
  };
}
