// Commands whose server does not answer, or not at the first try.

import type { IncomingMessage } from "node:http";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { startFlawedProxy } from "./flawed-proxy.js";
import { runCli, startCli } from "./run-cli.js";

let server: Server;
beforeAll(async () => {
  server = await startOmnid({ atEnd: atFileEnd });
});

const called =
  (method: string, path: RegExp) =>
  (call: IncomingMessage): boolean =>
    call.method === method && path.test(call.url ?? "");

describe("a call that is never answered", () => {
  test.each([
    ["the list of Sessions, of chat", ["chat", "-s", "last", "hi"], called("GET", /sessions\?/), 1, 130],
    ["a new Session", ["chat", "hi"], called("POST", /sessions$/), 1, 130],
    ["the history", ["chat", "hi"], called("GET", /messages/), 1, 130],
    ["a prompt", ["chat", "hi"], called("POST", /tasks$/), 2, 130],
    ["how a Task ended", ["chat", "hi"], called("GET", /tasks\//), 2, 130],
    ["the list of Sessions, of tail", ["tail", "last"], called("GET", /sessions\?/), 1, 0],
    ["the history, of tail", ["tail", "last"], called("GET", /messages/), 1, 0],
  ])("%s: Ctrl-C ends the command", async (_, args, isHung, times, code) => {
    await runCli(["chat", "a Session to find"], { env: { OMNID_URL: server.url } });
    const proxy = await startFlawedProxy(server.url, (call) => (isHung(call) ? "hang" : undefined));
    const run = startCli(args, { env: { OMNID_URL: proxy.url } });
    await proxy.hung;
    run.child.kill("SIGINT");
    if (times > 1) {
      await run.says(/Once more leaves/);
      run.child.kill("SIGINT");
    }
    expect((await run.finished).code).toBe(code);
  });

  test("SIGTERM ends the command, and so it does while the abort is not answered either", async () => {
    const isHung = (call: IncomingMessage) => /abort|tasks\//.test(call.url ?? "");
    const proxy = await startFlawedProxy(server.url, (call) => (isHung(call) ? "hang" : undefined));
    const run = startCli(["chat", "hi"], { env: { OMNID_URL: proxy.url } });
    await proxy.hung;
    run.child.kill("SIGINT");
    await run.says(/Once more leaves/);
    run.child.kill("SIGTERM");
    const { code, stderr } = await run.finished;
    expect(code).toBe(130);
    expect(stderr).not.toContain("not aborted");
  });
});
