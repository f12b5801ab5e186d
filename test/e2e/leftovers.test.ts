// What a command started is gone when the command is, however it ended.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { allGone, isAlive, pidsIn } from "../support/processes.js";
import { type Server, startOmnid } from "../support/server.js";
import type { SseReader } from "../support/sse-client.js";
import { answer, calls, startUpstream, type Upstream } from "../support/upstream.js";
import { api, at, expectLawful, follow, makeSession, payloads, prompt } from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({ atEnd: atFileEnd, config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0" } });
});

describe("H6 H7 H8 H9: nothing of a command survives it", () => {
  // One in the background, one that ignores SIGTERM, and the shell itself.
  const brood = "sleep 1000 & echo pid $!; (trap '' TERM; sleep 1000) & echo pid $!; echo pid $$;";
  const running = async (cmd: string, timeout?: number, where = server) => {
    const id = await makeSession(where, { approvalMode: "allow-all" });
    const reader = await follow(where, id);
    const args = { cmd, ...(timeout === undefined ? {} : { timeout_ms: timeout }) };
    upstream.script(calls({ id: "brood", name: "exec_command", args }));
    return { id, reader, taskId: await prompt(where, id, "Run.") };
  };
  /** Resolves with the three processes once all have said who they are. */
  const brooding = async (reader: SseReader) => {
    const said = () =>
      payloads(reader.messages, "partial_tool_call_output")
        .map(({ output }) => output)
        .join("");
    await reader.untilPayload("partial_tool_call_output", () => pidsIn(said()).length === 3);
    const pids = pidsIn(said());
    expect(pids.map(isAlive)).toEqual([true, true, true]);
    return pids;
  };
  test("on abort", async () => {
    const { id, reader, taskId } = await running(`${brood} wait`);
    const pids = await brooding(reader);
    expect((await api(server, "POST", at(id, "/abort"))).status).toBe(202);
    await reader.untilEnded(taskId);
    await allGone(pids);
    await expectLawful(server, id, reader.messages);
  });

  test("on a time-out, and at a normal end", async () => {
    for (const [cmd, timeout, stop] of [
      [`${brood} wait`, 1_500, "timeout"],
      [brood, undefined, undefined],
    ] as const) {
      const { id, reader, taskId } = await running(cmd, timeout);
      upstream.script(answer("Over."));
      await reader.untilEnded(taskId);
      const [output] = payloads(reader.messages, "tool_call_output");
      expect(output?.stop_reason).toBe(stop);
      const pids = pidsIn(output?.output ?? "");
      expect(pids.length).toBeGreaterThan(0);
      await allGone(pids);
      await expectLawful(server, id, reader.messages);
    }
  });

  test("when the Session is deleted in mid-run: its streams end, its files are gone, and nothing brings them back", async () => {
    const { id, reader } = await running(`${brood} wait`);
    const { workspace } = (await api(server, "GET", at(id))).body;
    const pids = await brooding(reader);
    expect((await api(server, "DELETE", at(id))).status).toBe(204);
    await reader.ended;
    await allGone(pids);
    expect(existsSync(workspace)).toBe(false);
    for (const path of ["", "/messages", "/stream"]) expect((await api(server, "GET", at(id, path))).status).toBe(404);
    expect((await api(server, "POST", at(id, "/tasks"), { input: "x" })).status).toBe(404);
    expect((await api(server, "DELETE", at(id))).status).toBe(404);
    expect(existsSync(join(server.dataDir, "sessions", id))).toBe(false);
    expect((await api(server, "GET", "/api/sessions")).body.sessions).not.toContainEqual(
      expect.objectContaining({ sessionId: id }),
    );
  });

  test.each(["SIGTERM", "SIGKILL"] as const)("when the server itself gets %s", async (signal) => {
    const doomed = await startOmnid({ config: upstream.config() });
    const { reader } = await running(`${brood} wait`, undefined, doomed);
    const pids = await brooding(reader);
    await doomed.stop(signal);
    await allGone(pids);
  });
});
