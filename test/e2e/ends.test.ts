// A server that is told to stop, and one that refuses to start.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { isPartial } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import { runToEnd, startOmnid, temporaryFolder } from "../support/server.js";
import { answer, calls, say, startUpstream } from "../support/upstream.js";
import { api, at, expectLawful, follow, history, makeSession, payloads, prompt, untilIdle } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

async function scripted(env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0", ...env } });
  return { upstream, server };
}

const complete = (messages: readonly OmniMessage[]): OmniMessage[] => messages.filter((message) => !isPartial(message));

describe("SIGTERM", () => {
  test("C11: with 50 open streams, a running model and a running command: shutdown to each, the Trace closed in order, exit 0 in time", async () => {
    const { upstream, server } = await scripted({ OMNID_SHUTDOWN_MS: "8000" });
    const speaking = await makeSession(server);
    const running = await makeSession(server, { approvalMode: "allow-all" });
    upstream.script(
      { steps: say("on and "), end: "never" },
      calls({ id: "long", name: "exec_command", args: { cmd: "echo began; sleep 600" } }),
    );
    const readers = await Promise.all(
      Array.from({ length: 50 }, (_, index) => follow(server, index % 2 ? speaking : running)),
    );
    await prompt(server, speaking, "Speak.");
    await readers[1]?.untilPayload("partial_text", ({ text }) => text !== "");
    await prompt(server, running, "Run.");
    await readers[0]?.untilPayload("partial_tool_call_output", ({ output }) => output !== "");
    // 0 says that it was in time.
    expect(await server.stop("SIGTERM")).toEqual({ code: 0, signal: null });
    await Promise.all(readers.map((reader) => reader.ended));
    for (const reader of readers) {
      expect(reader.events.at(-1)).toMatchObject({
        name: "server_event",
        data: { type: "shutdown", retryMs: expect.any(Number) },
      });
      reader.check();
    }
    const next = await server.restart();
    for (const [id, reader] of [
      [speaking, readers[1]],
      [running, readers[0]],
    ] as const) {
      const { records } = await history(next, id);
      expect(payloads(records, "abort")).toMatchObject([{ reason: "shutdown" }]);
      expect(records).toEqual(expect.arrayContaining(complete(reader?.messages ?? [])));
      await expectLawful(next, id, [], { joined: true, running: true });
    }
  });

  test("connections that send nothing, or half a request, do not hold it up", async () => {
    const { server } = await scripted({ OMNID_SHUTDOWN_MS: "30000" });
    const { port } = new URL(server.url);
    const sockets = [
      "",
      "GET /healthz HTTP/1.1\r\nhost: 127",
      "POST /api/sessions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 9\r\n\r\n{",
    ].map((bytes) => {
      const socket = connect(Number(port), "127.0.0.1");
      socket.on("error", () => {});
      socket.write(bytes);
      return socket;
    });
    await Promise.all(sockets.map((socket) => once(socket, "connect")));
    // Were they waited for, the drain would run into its limit, which is an exit code of 1.
    expect(await server.stop("SIGTERM")).toEqual({ code: 0, signal: null });
    for (const socket of sockets) socket.destroy();
  });

  test("who still reads what was asked for before gets all of it, and who reads nothing is not waited for", async () => {
    const { upstream, server } = await scripted({ OMNID_SHUTDOWN_MS: "600000" });
    const id = await makeSession(server);
    for (const input of ["One.", "Two."]) {
      upstream.script(answer("x".repeat(12_000_000)));
      await prompt(server, id, input);
      await untilIdle(server, id);
    }
    const [reads, still] = (await Promise.all(
      [0, 1].map(async () => {
        const socket = connect(server.port, "127.0.0.1").on("error", () => {});
        socket.write(`GET ${at(id, "/messages")} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`);
        await once(socket, "readable");
        return socket;
      }),
    )) as [Socket, Socket];
    const exited = server.stop("SIGTERM");
    const pieces: Buffer[] = [];
    reads.on("data", (bytes: Buffer) => pieces.push(bytes));
    await once(reads, "end");
    // Twice the answer, its envelope, and the last chunk of the transfer.
    const text = Buffer.concat(pieces);
    expect(text.length).toBeGreaterThan(24_000_000);
    expect(text.subarray(-5).toString()).toBe("0\r\n\r\n");
    expect(await exited).toEqual({ code: 0, signal: null });
    still.destroy();
  });

  test("while it drains it refuses: 503 shutting_down, and /readyz says no", async () => {
    const { server } = await scripted();
    const id = await makeSession(server, { provider: "demo", modelId: "demo", approvalMode: "allow-all" });
    const reader = await follow(server, id);
    // A command that takes its two seconds to die keeps the drain going.
    await prompt(server, id, "/run trap '' TERM; echo began; while :; do sleep 1; done");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("began"));
    const exited = server.stop("SIGTERM");
    await reader.until(({ data }) => data.type === "shutdown");
    const refused = await api(server, "POST", "/api/sessions", {}).catch(() => undefined);
    if (refused !== undefined)
      expect(refused).toMatchObject({ status: 503, body: { error: { code: "shutting_down" } } });
    const ready = await fetch(`${server.url}/readyz`).catch(() => undefined);
    if (ready !== undefined) expect(ready.status).toBe(503);
    expect(await exited).toEqual({ code: 0, signal: null });
  });
});

describe("a server that does not start", () => {
  test("exits 78 with every bad variable named, and no secret", async () => {
    const ended = await runToEnd({
      env: {
        PORT: "99999",
        OMNID_REPLAY_EVENTS: "many",
        OMNID_FSYNC: "sometimes",
        OMNID_TOKENS: "hush-hush-secret,",
        LOG_LEVEL: "loud",
        OMNID_MODEL: "none",
      },
    });
    expect(ended.code).toBe(78);
    for (const name of ["PORT", "OMNID_REPLAY_EVENTS", "OMNID_FSYNC", "OMNID_TOKENS", "LOG_LEVEL", "OMNID_MODEL"]) {
      expect(ended.stderr).toMatch(new RegExp(`\\b${name}\\b`));
    }
    expect(ended.stdout + ended.stderr).not.toMatch(/hush-hush|listening/);
  });

  test("a data directory that cannot be one exits 78 and names the variable", async () => {
    for (const dataDir of [`${process.execPath}/below`, process.execPath, "/proc/nope"]) {
      const ended = await runToEnd({ dataDir });
      expect([dataDir, ended.code]).toEqual([dataDir, 78]);
      expect(ended.stderr).toMatch(/^omnid: OMNID_DATA_DIR: /);
    }
  });

  test("a disk that takes nothing exits 1, for it may have room again: 78 is not started again", async () => {
    const ended = await runToEnd({ limits: "ulimit -f 0" });
    expect(ended.stderr).toMatch(/^omnid: OMNID_DATA_DIR: .*EFBIG/);
    expect(ended.code).toBe(1);
  });

  test("H5: an address that others can reach needs a token", async () => {
    const ended = await runToEnd({ env: { HOST: "0.0.0.0" } });
    expect(ended.code).toBe(78);
    expect(ended.stderr).toContain("OMNID_TOKENS");
  });

  test("a second server on one data directory exits 75 and names the process that holds it; after kill -9 the next one takes over", async () => {
    const dataDir = temporaryFolder();
    const first = await startOmnid({ dataDir });
    const second = await runToEnd({ dataDir });
    expect(second.code).toBe(75);
    expect(second.stderr).toContain(String(first.pid));
    expect(second.stdout).not.toContain("listening");
    expect((await fetch(`${first.url}/readyz`)).status).toBe(200);
    await first.stop("SIGKILL");
    const third = await startOmnid({ dataDir });
    expect((await fetch(`${third.url}/readyz`)).status).toBe(200);
  });

  test("where the port is another's: exits 1 and has begun nothing; what waited waits for the next start", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    upstream.script({ steps: say("one"), end: "never" });
    const reader = await follow(server, id);
    await prompt(server, id, "First.");
    await reader.untilPayload("partial_text", ({ text }) => text === "one");
    const second = await api(server, "POST", at(id, "/tasks"), { input: "Second.", whenBusy: "queue" });
    await server.stop("SIGKILL");
    const files = () =>
      ["trace-000001.jsonl", "session.json"].map((name) =>
        readFileSync(join(server.dataDir, "sessions", id, name), "utf8"),
      );
    const before = files();
    const other = await startOmnid();
    const failed = await runToEnd({
      dataDir: server.dataDir,
      config: upstream.config(),
      env: { PORT: String(other.port) },
    });
    expect(failed).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("EADDRINUSE") });
    expect(files()).toEqual(before);
    expect(upstream.requests).toHaveLength(1);
    upstream.script(answer("two"));
    const next = await server.restart();
    const task = async () => (await api(next, "GET", at(id, `/tasks/${second.body.taskId}`))).body.state;
    await expect.poll(task).toBe("ended");
    const { records } = await history(next, id);
    expect(payloads(records, "text").map(({ text }) => text)).toEqual(["First.", "Second.", "two"]);
    expect(validateStream(records, { mode: "trace" })).toEqual([]);
  });
});
