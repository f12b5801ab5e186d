// `localhost` may be several addresses. Whoever connects to any of them is served by the one HTTP server: what holds for
// its connections, from the half-open ones to the last answers, holds for all.

import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";
import type { FastifyBaseLogger } from "fastify";
import type { App } from "./context.js";

/** A server that listens. */
export interface Listening {
  /** For example `http://127.0.0.1:8420`. */
  readonly url: string;
  /** Accepts no more connections; resolves when those that there are have ended. */
  close(): Promise<void>;
}

/**
 * Rejects when the port cannot be had; of several addresses the first counts, what is amiss with others is logged.
 * @param addressesOf none for a name or an address that the system is to resolve itself
 */
export async function listen(
  app: App,
  { host, port }: { host: string; port: number },
  log: FastifyBaseLogger,
  addressesOf: (host: string) => Promise<string[]> = severalOf,
): Promise<Listening> {
  const [first = host, ...others] = await addressesOf(host);
  await app.listen({ host: first, port });
  const servers: Server[] = [];
  for (const address of others) {
    const server = await listenBeside(app, address).catch((err) => {
      const isMissing = ["EADDRNOTAVAIL", "EAFNOSUPPORT"].includes(err.code);
      log[isMissing ? "debug" : "warn"]({ err, address }, `${host} is not listened to at this address`);
    });
    if (server !== undefined) servers.push(server);
  }
  return {
    url: urlOf(app, host),
    close: async () => {
      const closed = servers.map((server) => new Promise<void>((resolve) => server.close(() => resolve())));
      await app.close();
      await Promise.all(closed);
    },
  };
}

async function severalOf(host: string): Promise<string[]> {
  if (host.toLowerCase() !== "localhost") return [];
  const found = await lookup(host, { all: true });
  return [...new Set(found.map(({ address }) => address))];
}

/** Listens at the same port. Rejects when it cannot be had there. */
async function listenBeside(app: App, address: string): Promise<Server> {
  const { port } = app.server.address() as AddressInfo;
  // As an HTTP server of Node's has its own.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) =>
    app.server.emit("connection", socket),
  );
  server.listen(port, address);
  await once(server, "listening");
  return server;
}

function urlOf(app: App, host: string): string {
  const { port, address } = app.server.address() as AddressInfo;
  const name = host === "localhost" ? host : address;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
