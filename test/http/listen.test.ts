// One server at two addresses, as `localhost` has them on many machines: whoever comes by the second is served as well.

import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { text } from "node:stream/consumers";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import type { App } from "../../src/http/context.js";
import { Connections } from "../../src/http/end-connections.js";
import { answerHalfOpen } from "../../src/http/half-open.js";
import { listen } from "../../src/http/listen.js";
import { manualClock } from "../support/manual-clock.js";
import { gate } from "../support/upstream.js";

const ADDRESSES = ["127.0.0.1", "127.0.0.2"] as const;
const both = async () => [...ADDRESSES];

async function listening(port = 0) {
  const app = Fastify() as unknown as App;
  const asked = gate();
  const ready = gate();
  app.get("/", async () => {
    asked.open();
    await ready.opened;
    return "here";
  });
  answerHalfOpen(app.server);
  const connections = new Connections(app.server);
  const warnings: object[] = [];
  app.log.warn = (details: object) => void warnings.push(details);
  const server = await listen(app, { host: "localhost", port }, app.log, both);
  onTestFinished(() => {
    ready.open();
    return server.close();
  });
  const { port: taken } = app.server.address() as AddressInfo;
  return { server, port: taken, asked, ready, connections, warnings };
}

const get = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

test.each(ADDRESSES)(
  "who has asked for all at %s reads the answer, also when the server ends meanwhile",
  async (at) => {
    const { server, port, asked, ready } = await listening();
    const client = connect({ port, host: at, allowHalfOpen: true });
    client.end(get);
    await asked.opened;
    const closed = server.close();
    ready.open();
    expect(await text(client)).toContain("here");
    await closed;
  },
);

test.each(ADDRESSES)("a connection that says nothing at %s is ended with the server", async (at) => {
  const { server, port, connections } = await listening();
  const client = connect(port, at);
  // However it ends: the first half of a request may still be unread.
  const gone = new Promise((resolve) => client.on("error", () => {}).once("close", resolve));
  client.resume().write("GET / HTTP/1.1\r\nhost:");
  await expect.poll(() => open(port, at)).toBe(true);
  const closed = server.close();
  connections.end(manualClock(), 1, 0);
  await gone;
  await closed;
  expect(await open(port, at)).toBe(false);
});

test("an address whose port another has is told of, and the others are served", async () => {
  const other = createServer().listen(0, ADDRESSES[1]);
  await once(other, "listening");
  onTestFinished(() => void other.close());
  const { port, ready, warnings } = await listening((other.address() as AddressInfo).port);
  expect(warnings).toMatchObject([{ err: { code: "EADDRINUSE" }, address: ADDRESSES[1] }]);
  ready.open();
  expect(await (await fetch(`http://${ADDRESSES[0]}:${port}/`)).text()).toBe("here");
});

/** Whether connections are accepted there. */
async function open(port: number, at: string): Promise<boolean> {
  const client = connect(port, at);
  return once(client, "connect").then(
    () => {
      client.destroy();
      return true;
    },
    () => false,
  );
}
