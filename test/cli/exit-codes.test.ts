// What a command ends with when its reader goes, or a signal comes: as its --help says.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { atFileEnd } from "../support/at-file-end.js";
import { freePort } from "../support/free-port.js";
import { type Server, startOmnid, temporaryFolder } from "../support/server.js";
import { runCli, startCli } from "./run-cli.js";

let server: Server;
let trace: string;
beforeAll(async () => {
  server = await startOmnid({ atEnd: atFileEnd });
  const client = createClient({ baseUrl: server.url });
  const { sessionId } = await client.sessions.create();
  for await (const _ of client.session(sessionId).run("Hello"));
  trace = join(temporaryFolder(atFileEnd), "trace.jsonl");
  writeFileSync(trace, "no Trace\n");
});

/** The code of a command whose reader has gone before it wrote anything. */
async function unread(...args: string[]): Promise<number | null> {
  const run = startCli(args, { env: { OMNID_DATA_DIR: server.dataDir } });
  run.child.stdout.destroy();
  return (await run.finished).code;
}

/** On one line. */
const help = async (command: string) => (await runCli([command, "--help"])).stdout.replace(/\s+/g, " ");

test.each([
  ["sessions", []],
  ["models", []],
  ["doctor", []],
  ["completion", ["bash"]],
  // Its own code, 1 here, would say that it printed what it found.
  ["verify", ["TRACE"]],
])("%s is 130 when its reader has seen enough, as --help says", async (command, args) => {
  expect(await unread(command, ...args.map((arg) => arg.replace("TRACE", trace)))).toBe(130);
  expect(await help(command)).toMatch(/130 interrupted, also by a reader that has seen enough/);
});

test("tail, which only ends so, is 0 when its reader has seen enough, by Ctrl-C and by SIGTERM", async () => {
  expect(await unread("tail", "last")).toBe(0);
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    const run = startCli(["tail", "last"], { env: { OMNID_DATA_DIR: server.dataDir } });
    await run.says(/You said: "Hello"/);
    run.child.kill(signal);
    expect((await run.finished).code).toBe(0);
  }
  expect(await help("tail")).toMatch(/: 0 interrupted, also by a reader that has seen enough, or the Session is gone/);
});

test("serve is 0 by a signal, and 1 when its end takes longer than OMNID_SHUTDOWN_MS", async () => {
  const start = async (env: Record<string, string>) => {
    const run = startCli(["serve"], { env });
    const [, port] = /listening on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(await run.says(/listening on .*\n/)) ?? [];
    return { run, port: Number(port) };
  };
  const calm = await start({});
  calm.run.child.kill("SIGINT");
  expect((await calm.run.finished).code).toBe(0);
  const { run, port } = await start({ OMNID_SHUTDOWN_MS: "1" });
  // A body that never comes is waited for longer than that.
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  onTestFinished(() => void socket.destroy());
  socket.write("POST /api/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n");
  socket.write("content-length: 9\r\nexpect: 100-continue\r\n\r\n");
  await once(socket, "data");
  run.child.kill("SIGTERM");
  expect((await run.finished).code).toBe(1);
  expect(await help("serve")).toMatch(
    /0 ended by a signal, in order; 1 cannot start, also where the disk is full, or ended at once/,
  );
});

describe("a Task that is ended, but by nobody who wanted it to end, is 1 and says what ended it", () => {
  /** `chat`, in the middle of a Task of a server that comes back at the same address. */
  async function inMidTask(...options: string[]) {
    const own = await startOmnid({ env: { PORT: String(await freePort()) } });
    const run = startCli(["chat", "--yes", ...options, "/run echo on; sleep 600"], { env: { OMNID_URL: own.url } });
    await run.says(/"name":"exec_command"|\* exec_command/);
    return { own, run };
  }

  test.each([
    ["SIGKILL", "the server was restarted"],
    ["SIGTERM", "the server was shut down"],
  ] as const)("the server, by %s", async (signal, why) => {
    const { own, run } = await inMidTask();
    await own.stop(signal);
    await own.restart();
    const { code, stderr } = await run.finished;
    expect(stderr).toContain(`! Interrupted: ${why}.\nomnid: the Task ended as aborted: ${why}\n`);
    expect(code).toBe(1);
  });

  test("the server, as JSON", async () => {
    const { own, run } = await inMidTask("--json");
    await own.stop("SIGKILL");
    await own.restart();
    const { code, stdout, stderr } = await run.finished;
    expect(stderr).toBe("omnid: the Task ended as aborted: the server was restarted\n");
    expect(stdout).toMatch(/"reason":"server_restarted"/);
    expect(code).toBe(1);
  });

  test("its Session, which was deleted", async () => {
    const { own, run } = await inMidTask();
    const client = createClient({ baseUrl: own.url });
    const [session] = (await client.sessions.list()).sessions;
    await client.session(session!.sessionId).delete();
    const { code, stderr } = await run.finished;
    expect(stderr).toContain("! Interrupted: the Session was deleted.\nomnid: the Session is gone\n");
    expect(code).toBe(1);
  });
});

test("a Task that a person ends elsewhere is 130, as one that is ended here", async () => {
  const run = startCli(["chat", "--yes", "/run echo on; sleep 600"], { env: { OMNID_URL: server.url } });
  await run.says(/\* exec_command/);
  const client = createClient({ baseUrl: server.url });
  const [session] = (await client.sessions.list({ limit: 1 })).sessions;
  await client.session(session!.sessionId).abort();
  const { code, stderr } = await run.finished;
  expect(stderr).toMatch(/! aborted: user\n$/);
  expect(code).toBe(130);
});
