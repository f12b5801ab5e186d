import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { pipeline, Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { Connections } from "../../src/http/end-connections.js";
import { manualClock } from "../support/manual-clock.js";
import { gate } from "../support/upstream.js";

const GRACE_MS = 500;
const PIECE = Buffer.alloc(64 * 1024, "x");

/** A server whose answers are longer than what the system holds for a connection, and clients that read none of it. */
async function withClients(count: number) {
  const clock = manualClock();
  const server = createServer((_request, response) => {
    pipeline(Readable.from(Array.from({ length: 500 }, () => PIECE)), response, () => {});
  });
  const connections = new Connections(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const ends: { client: Socket; here: Socket }[] = [];
  for (let index = 0; index < count; index++) {
    const accepted = once(server, "connection");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    client.write("GET / HTTP/1.1\r\nhost: localhost\r\n\r\n");
    ends.push({ client, here: (await accepted)[0] });
  }
  onTestFinished(() => {
    for (const { client } of ends) client.destroy();
    server.close();
  });
  for (const { client, here } of ends) {
    await once(client, "readable");
    await untilStill(here);
  }
  return { clock, connections, ends };
}

const takenBy = (socket: Socket) => socket.bytesWritten - socket.writableLength;

/** Resolves when the system takes no more for that connection. */
async function untilStill(socket: Socket): Promise<void> {
  for (let before = -1, still = 0; still < 20; still = takenBy(socket) === before ? still + 1 : 0) {
    before = takenBy(socket);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function readSome({ client, here }: { client: Socket; here: Socket }): Promise<void> {
  const before = takenBy(here);
  while (takenBy(here) === before) {
    client.read();
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

test("who takes something within each grace is waited for, who does not is cut off", async () => {
  const { clock, connections, ends } = await withClients(2);
  const [reads, sleeps] = ends as [(typeof ends)[0], (typeof ends)[0]];
  connections.end(clock, GRACE_MS, 600_000);
  for (let look = 0; look < 5; look++) {
    await readSome(reads);
    clock.advance(GRACE_MS);
    expect([look, reads.here.destroyed, sleeps.here.destroyed]).toEqual([look, false, true]);
  }
  await untilStill(reads.here);
  clock.advance(2 * GRACE_MS);
  expect(reads.here.destroyed).toBe(true);
});

test("an answer that the server has not begun is waited for, and a request that does not come whole is not", async () => {
  const clock = manualClock();
  const rest = gate();
  const server = createServer(async (_request, response) => {
    await rest.opened;
    response.end("at last");
  });
  const connections = new Connections(server);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const ends: { client: Socket; here: Socket }[] = [];
  for (const bytes of [
    "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{",
    "GET /",
  ]) {
    const accepted = once(server, "connection");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => {});
    onTestFinished(() => void client.destroy());
    const [here] = (await accepted) as [Socket];
    client.write(bytes);
    while (here.bytesRead < bytes.length) await new Promise((resolve) => setTimeout(resolve, 1));
    ends.push({ client, here });
  }
  connections.end(clock, GRACE_MS, 600_000);
  clock.advance(10 * GRACE_MS);
  expect(ends.map(({ here }) => here.destroyed)).toEqual([false, true, true]);
  const text = once(ends[0]?.client as Socket, "data");
  rest.open();
  expect(String((await text)[0])).toContain("at last");
  server.close();
  server.closeAllConnections();
});

test("a limit below the grace holds, and one that is over ends everything at once", async () => {
  for (const limitMs of [100, 0, -1]) {
    const { clock, connections, ends } = await withClients(1);
    connections.end(clock, GRACE_MS, limitMs);
    clock.advance(Math.max(0, limitMs));
    expect([limitMs, ends[0]?.here.destroyed]).toEqual([limitMs, true]);
  }
});

test("after its limit everybody is cut off, and nobody once it was stopped", async () => {
  const { clock, connections, ends } = await withClients(2);
  const [reads, sleeps] = ends as [(typeof ends)[0], (typeof ends)[0]];
  connections.end(clock, GRACE_MS, 600_000)();
  clock.advance(GRACE_MS);
  expect(sleeps.here.destroyed).toBe(false);
  connections.end(clock, GRACE_MS, GRACE_MS);
  await readSome(reads);
  clock.advance(GRACE_MS);
  expect([reads.here.destroyed, sleeps.here.destroyed]).toEqual([true, true]);
});
