import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { startServer } from "../support/http-server.js";
import { manualClock } from "../support/manual-clock.js";

/** Sends bytes and keeps the connection. `text` resolves with all that came when the server has ended it. */
async function open(port: number, bytes: string): Promise<{ socket: Socket; text: Promise<string> }> {
  const socket = connect(port, "127.0.0.1");
  let said = "";
  const text = new Promise<string>((resolve) => {
    socket.on("data", (piece) => {
      said += piece;
    });
    socket.on("error", () => {}).on("close", () => resolve(said));
  });
  await new Promise((resolve) => socket.write(bytes, resolve));
  return { socket, text };
}

const head = (path: string, type: string) =>
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: ${type}\r\ncontent-length: 5000\r\n\r\n`;

test.each([
  ["/api/sessions", "application/json"],
  ["/api/none", "application/json"],
])("a body of %s that trickles is answered 408 after two minutes, and its connection ends", async (path, type) => {
  const clock = manualClock();
  const server = await startServer({}, clock);
  const begun = once(server.app.server, "request");
  const { text } = await open(server.port, `${head(path, type)}{`);
  await begun;
  await setImmediate();
  clock.advance(120_000);
  const said = await text;
  if (path === "/api/sessions") expect(said).toMatch(/^HTTP\/1.1 408 .*"code":"request_timeout"/s);
  else expect(said).toMatch(/^HTTP\/1.1 404 /);
  // One answer, counted under its route and logged under its id.
  expect(said.match(/HTTP\/1.1/g)).toHaveLength(1);
  const [, status, requestId] = /^HTTP\/1.1 (\d+).*?x-request-id: (\S+)/s.exec(said) ?? [];
  const requests = server.logged().match(/^.*"msg":"request".*$/gm) ?? [];
  expect(requests.map((line) => JSON.parse(line))).toMatchObject([{ requestId, path, status: Number(status) }]);
});

test("an upload may take longer than a prompt, and ends when nothing has come for a minute", async () => {
  const clock = manualClock();
  const server = await startServer({}, clock);
  const { socket, text } = await open(server.port, `${head("/api/sessions/import", "application/x-ndjson")}{`);
  for (let bytes = 1; bytes <= 5; bytes++) {
    await vi.waitFor(() => expect(server.host.uploadedBytes).toBe(bytes));
    clock.advance(59_000);
    if (bytes < 5) await new Promise((resolve) => socket.write("x", resolve));
  }
  clock.advance(1_000);
  expect(await text).toMatch(/^HTTP\/1.1 408 .*"code":"request_timeout"/s);
});
