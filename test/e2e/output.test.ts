// Who started the server may not read what it prints, or be gone: it serves all the same, and ends when it is told to.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, statSync, truncateSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, inject, onTestFinished, test, vi } from "vitest";
import { freePort } from "../support/free-port.js";
import { temporaryFolder } from "../support/server.js";

vi.setConfig({ testTimeout: 60_000 });

async function started(
  prepare: (child: ReturnType<typeof spawn>) => void,
  env: Record<string, string> = {},
  shell = 'exec "$0" "$1"',
) {
  const dataDir = temporaryFolder();
  const port = await freePort();
  const child = spawn("sh", ["-c", shell, process.execPath, inject("cli")], {
    env: { PATH: process.env.PATH, HOME: dataDir, PORT: String(port), OMNID_DATA_DIR: dataDir, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const exited = once(child, "exit");
  prepare(child);
  await vi.waitFor(() => reachable(port), { timeout: 30_000, interval: 20 });
  return { child, exited, url: `http://127.0.0.1:${port}` };
}

const reachable = (port: number) =>
  new Promise<void>((resolve, reject) => {
    const socket = connect(port, "127.0.0.1", () => {
      socket.destroy();
      resolve();
    }).once("error", reject);
  });

async function endsInOrder({ child, exited }: Awaited<ReturnType<typeof started>>) {
  child.kill("SIGTERM");
  expect(await exited).toEqual([0, null]);
}

test("the reader of standard output and error is gone before the server listens", async () => {
  const server = await started((child) => {
    child.stdout?.destroy();
    child.stderr?.destroy();
  });
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  await endsInOrder(server);
});

test("standard error is a full pipe that nobody reads", async () => {
  // Not listened to, a stream is not read.
  const server = await started(() => {});
  const path = `/api/sessions/none-${"x".repeat(900)}`;
  for (let n = 0; n < 300; n += 1) expect((await fetch(server.url + path)).status).toBe(404);
  await endsInOrder(server);
});

test("the log is a file that cannot grow: it goes on when it can, and says how much is missing", async () => {
  const log = join(temporaryFolder(), "log");
  // As a disk without room: no file of this process can have more than 32 blocks of 512 bytes.
  const server = await started(() => {}, { LOG: log }, 'ulimit -f 32; exec "$0" "$1" 2>>"$LOG"');
  const path = `/api/sessions/none-${"x".repeat(900)}`;
  for (let n = 0; n < 40; n += 1) expect((await fetch(server.url + path)).status).toBe(404);
  expect(statSync(log).size).toBe(32 * 512);
  truncateSync(log);
  await endsInOrder(server);
  const lines = readFileSync(log, "utf8").trimEnd().split("\n");
  const told = /"\d+ lines of the log were dropped: standard error could not be written \(EFBIG\)"/;
  expect(lines.filter((line) => told.test(line))).toHaveLength(1);
  expect(JSON.parse(lines.at(-1) ?? "")).toMatchObject({ msg: "ending", signal: "SIGTERM" });
});

test("a warning of Node's is a line of the log like any other", async () => {
  const preload = "process.on('SIGCONT', () => process.emitWarning('of old\\nstyle', 'DeprecationWarning', 'DEP0000'))";
  let text = "";
  const server = await started(
    (child) =>
      child.stderr?.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      }),
    { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(preload)}` },
  );
  server.child.kill("SIGCONT");
  await vi.waitFor(() => expect(text).toContain("DEP0000"), { timeout: 30_000 });
  await endsInOrder(server);
  const lines = text.trimEnd().split("\n");
  const records = lines.map((line) => JSON.parse(line));
  expect(records).toContainEqual(expect.objectContaining({ level: 40, msg: "DeprecationWarning: of old\nstyle" }));
});
