// A TCP proxy that does to connections what networks and their middlemen do: one fault for each connection, as planned,
// and none any more when the plan is used up.

import { connect, createServer, type Server, type Socket } from "node:net";
import fc from "fast-check";

export type Fault =
  | { do: "nothing" }
  /** Closed before a byte came back. */
  | { do: "refuse" }
  /** Broken off within an answer, in the middle of whatever is there. */
  | { do: "cut"; after: number }
  /** As `cut`, but nobody says so. */
  | { do: "hang"; after: number }
  /** A middleman's own answer. */
  | { do: "answer"; status: 401 | 502 | 503 }
  /** In small pieces, one for each turn of the event loop. */
  | { do: "crumble"; size: number }
  /** What is sent goes to the server on two connections; one of them is answered. */
  | { do: "twice" };

const bytes = fc.oneof(fc.integer({ min: 0, max: 900 }), fc.integer({ min: 0, max: 9_000 }));
export const fault: fc.Arbitrary<Fault> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Fault>({ do: "nothing" }) },
  { weight: 1, arbitrary: fc.constant<Fault>({ do: "refuse" }) },
  { weight: 8, arbitrary: bytes.map((after): Fault => ({ do: "cut", after })) },
  { weight: 1, arbitrary: bytes.map((after): Fault => ({ do: "hang", after })) },
  { weight: 2, arbitrary: fc.constantFrom(401, 502, 503).map((status): Fault => ({ do: "answer", status }) as Fault) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 700 }).map((size): Fault => ({ do: "crumble", size })) },
  { weight: 1, arbitrary: fc.constant<Fault>({ do: "twice" }) },
);

export interface FlakyProxy {
  url: string;
  /** From now on nothing goes wrong with new connections. */
  heal(): void;
  close(): Promise<void>;
}

/** Starts one in front of a server on loopback, which may be another one later. */
export async function startFlakyProxy(
  target: number | (() => number),
  plan: readonly Fault[] = [],
): Promise<FlakyProxy> {
  const targetPort = typeof target === "number" ? () => target : target;
  const faults = [...plan];
  const sockets = new Set<Socket>();
  const keep = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.on("close", () => sockets.delete(socket)).on("error", () => {});
  };
  const server: Server = createServer((client) => {
    keep(client);
    const next = faults.shift() ?? { do: "nothing" };
    if (next.do === "refuse") return void client.destroy();
    if (next.do === "answer") {
      const body = "<h1>not now</h1>";
      const head = `HTTP/1.1 ${next.status} No\r\ncontent-type: text/html\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n`;
      return void client.once("data", () => client.end(head + body));
    }
    const upstream = keep(connect(targetPort(), "127.0.0.1"));
    client.on("data", (chunk) => upstream.write(chunk));
    if (next.do === "twice") {
      const second = keep(connect(targetPort(), "127.0.0.1"));
      second.on("data", () => {});
      client.on("data", (chunk) => second.write(chunk)).on("close", () => second.destroy());
    }
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
    forward(upstream, client, next);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}`,
    heal: () => void faults.splice(0),
    close: () => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function forward(upstream: Socket, client: Socket, fault: Fault): void {
  let left = "after" in fault ? fault.after : Number.POSITIVE_INFINITY;
  let turn = Promise.resolve();
  upstream.on("data", (chunk: Buffer) => {
    const passed = chunk.subarray(0, left);
    left -= passed.length;
    if (fault.do === "crumble") {
      for (let at = 0; at < chunk.length; at += fault.size) {
        const piece = chunk.subarray(at, at + fault.size);
        turn = turn.then(() => new Promise((resolve) => setImmediate(() => resolve(void client.write(piece)))));
      }
      return;
    }
    client.write(passed, () => {
      if (left === 0 && fault.do === "cut") client.destroy();
    });
  });
}
