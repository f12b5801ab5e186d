import { once } from "node:events";
import { connect } from "node:net";
import { Readable } from "node:stream";
import Fastify from "fastify";
import { expect, onTestFinished, test } from "vitest";
import { onceOver } from "../../src/http/once-over.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("what waits behind another answer is over with its connection, and lets go of what it would have sent", async () => {
  const app = Fastify();
  onTestFinished(() => app.close());
  const bodies: Readable[] = [];
  let [came, over] = [0, 0];
  let goOn = () => {};
  const late = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  app.addHook("onRequest", (_request, reply, done) => {
    came += 1;
    onceOver(reply.raw, () => {
      over += 1;
    });
    done();
  });
  const endless = () => {
    const body = new Readable({ read: () => {} });
    bodies.push(body);
    return body;
  };
  app.get("/now", (_request, reply) => reply.send(endless()));
  app.get("/late", async (_request, reply) => {
    await late;
    return reply.send(endless());
  });
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as { port: number };
  const socket = connect(port, "127.0.0.1");
  const paths = [...Array<string>(20).fill("/now"), "/late"];
  socket.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`).join(""));
  const [ours] = await once(app.server, "connection");
  while (came < 21 || bodies.length < 20) await turn();
  socket.destroy();
  await once(ours, "close");
  goOn();
  while (bodies.length < 21) await turn();
  await expect.poll(() => bodies.filter(({ destroyed }) => destroyed).length).toBe(21);
  expect(over).toBe(21);
});
