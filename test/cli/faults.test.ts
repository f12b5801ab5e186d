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

describe("a call that fails and would not the next time", () => {
  test.each([
    [
      "an answer to an approval, cut",
      ["chat", "--yes", "--approval-mode", "always-ask"],
      /approvals\//,
      "cut",
      "hello\n",
    ],
    [
      "an answer to an approval, refused by a proxy",
      ["chat", "--yes", "--approval-mode", "always-ask"],
      /approvals\//,
      503,
      "hello\n",
    ],
    ["a denial for want of a person", ["chat", "--approval-mode", "always-ask"], /approvals\//, 502, "was denied"],
    ["how a Task ended, cut", ["chat", "--yes"], /tasks\//, "cut", "hello\n"],
    ["how a Task ended, refused", ["chat", "--yes"], /tasks\//, 429, "hello\n"],
    ["a prompt, cut", ["chat", "--yes"], /tasks$/, "cut", "hello\n"],
    ["a prompt, refused", ["chat", "--yes"], /tasks$/, 503, "hello\n"],
  ] as const)("%s: it is made again, and the exit code is the Task's", async (_, args, path, flaw, said) => {
    let flaws = 0;
    const proxy = await startFlawedProxy(server.url, (call) => {
      if (flaws === 1 || !path.test(call.url ?? "")) return undefined;
      flaws += 1;
      return flaw;
    });
    const { code, stdout } = await runCli([...args, "/run echo hello"], { env: { OMNID_URL: proxy.url } });
    expect(flaws).toBe(1);
    expect(stdout).toContain(said);
    expect(code).toBe(0);
  });

  test("an answer that arrived, whose own answer was lost, is not called somebody else's", async () => {
    let isLost = false;
    const proxy = await startFlawedProxy(server.url, (call) => {
      if (isLost || !/approvals\//.test(call.url ?? "")) return undefined;
      isLost = true;
      return "lost";
    });
    const args = ["chat", "--yes", "--approval-mode", "always-ask", "/run echo hello"];
    const { code, stderr } = await runCli(args, { env: { OMNID_URL: proxy.url } });
    expect(code).toBe(0);
    expect(stderr).toContain("trying again in");
    expect(stderr).not.toContain("elsewhere");
  });

  test("a prompt that is never taken is exit code 2", async () => {
    const proxy = await startFlawedProxy(server.url, (call) => (/tasks$/.test(call.url ?? "") ? 503 : undefined));
    const { code, stderr } = await runCli(["chat", "hi"], { env: { OMNID_URL: proxy.url } });
    expect(code).toBe(2);
    expect(stderr).toContain("the server answered 503");
  });
});
