// What a command ends with when its reader goes, or a signal comes: as its --help says.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { atFileEnd } from "../support/at-file-end.js";
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
  expect(await help("serve")).toMatch(/0 ended by a signal, in order; 1 cannot start, or ended at once/);
});
