// Who gets the token of a command line that names no server.

import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../src/cli/connect.js";
import { startOmnid, temporaryFolder } from "../support/server.js";
import { runCli } from "./run-cli.js";

const TOKEN = "secret-of-ada";

/** Says that it is a server, and notes what it is sent. */
async function startStranger({ port = 0, wantsToken = true } = {}) {
  const tokens: (string | undefined)[] = [];
  const server = createServer(({ url, headers }, response) => {
    tokens.push(headers.authorization);
    response.setHeader("content-type", "application/json");
    if (url === "/healthz") return void response.end('{"status":"ok"}');
    if (!wantsToken || headers.authorization !== undefined) return void response.end('{"models":[],"sessions":[]}');
    response.writeHead(401).end('{"error":{"code":"unauthorized","message":"a token is needed"}}');
  });
  await once(server.listen(port, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  return { tokens, port: (server.address() as AddressInfo).port };
}

test("a server at the usual address that is not the data directory's is sent no token, and the user is told how to", async () => {
  const { tokens, port } = await startStranger();
  const url = `http://127.0.0.1:${port}`;
  const env = { PORT: String(port), OMNID_TOKEN: TOKEN, OMNID_TOKENS: `ada:${TOKEN}` };
  const refused = await runCli(["sessions"], { env });
  expect(refused).toMatchObject({ code: 2, stdout: "" });
  expect(refused.stderr).toMatch(
    new RegExp(`wants a token, and it is not the one of .*: yours was not sent; --url ${url}`),
  );
  expect(tokens).toEqual([undefined, undefined]);
  expect((await runCli(["sessions", "--url", url], { env })).code).toBe(0);
  expect(tokens.slice(2)).toEqual([`Bearer ${TOKEN}`]);
});

test("one that wants no token is used, without one", async () => {
  const { tokens, port } = await startStranger({ wantsToken: false });
  const { code } = await runCli(["sessions"], { env: { PORT: String(port), OMNID_TOKEN: TOKEN } });
  expect(code).toBe(0);
  expect(new Set(tokens)).toEqual(new Set([undefined]));
});

test("whoever listens where a killed server did is sent no token: not by who finds it, not by who talked to that one", async () => {
  const server = await startOmnid({ env: { OMNID_TOKENS: `ada:${TOKEN}` } });
  const env = { OMNID_DATA_DIR: server.dataDir, OMNID_TOKENS: `ada:${TOKEN}`, PORT: "0" };
  const before = await connect({}, { start: false }, env);
  if (!before.ok) throw new Error(before.problems.join());
  await expect(before.client.models()).resolves.toHaveProperty("models");
  await server.stop("SIGKILL");
  const { tokens } = await startStranger({ port: server.port });
  await expect(before.client.models()).rejects.toMatchObject({ code: "network" });
  expect(await connect({}, { start: false }, env)).toMatchObject({ ok: false, exitCode: 2 });
  expect(tokens).toEqual([]);
});

test("a server that comes back on its directory and port is sent the token again", async () => {
  const dataDir = temporaryFolder();
  const fixed = { OMNID_TOKENS: `ada:${TOKEN}` };
  const server = await startOmnid({ env: fixed, dataDir });
  const env = { ...fixed, OMNID_DATA_DIR: dataDir, PORT: "0" };
  const found = await connect({}, { start: false }, env);
  if (!found.ok) throw new Error(found.problems.join());
  await server.stop("SIGTERM");
  await expect(found.client.models()).rejects.toMatchObject({ code: "network" });
  await startOmnid({ env: { ...fixed, PORT: String(server.port) }, dataDir });
  await expect(found.client.models()).resolves.toHaveProperty("models");
});
