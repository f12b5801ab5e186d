// A disk that is really full: a small file system of its own for the data directory.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { startOmnid, temporaryFolder } from "../support/server.js";
import { answer, finish, gate, say, startUpstream, usage } from "../support/upstream.js";
import { api, at, expectLawful, expectPaired, follow, history, makeSession, payloads, prompt } from "./api.js";

vi.setConfig({ testTimeout: 60_000 });

const MOUNT = ["-t", "tmpfs", "-o", "size=2m", "none"];

/** Why no file system can be mounted here, if so. */
function hindrance(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "only root can mount a file system";
  const folder = mkdtempSync(join(tmpdir(), "omnid-e2e-"));
  try {
    execFileSync("mount", [...MOUNT, folder], { stdio: "ignore" });
    execFileSync("umount", [folder], { stdio: "ignore" });
    return undefined;
  } catch {
    return "the system lets nobody mount a file system";
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A folder on a file system of two megabytes. */
function smallDisk(): string {
  const folder = temporaryFolder();
  execFileSync("mount", [...MOUNT, folder]);
  onTestFinished(() => void execFileSync("umount", ["--lazy", folder]));
  return folder;
}

/** Writes until nothing more goes on the disk. */
function fill(file: string): void {
  for (let size = 1 << 20; size >= 1; size >>= 1) {
    for (;;) {
      try {
        writeFileSync(file, Buffer.alloc(size), { flag: "a" });
      } catch {
        break; // Full, for this size.
      }
    }
  }
}

const why = hindrance();

test.skipIf(why !== undefined)(
  `a full disk: the Task ends with storage, prompts are 507, and with room again all is made good${why === undefined ? "" : ` (skipped: ${why})`}`,
  async () => {
    const upstream = await startUpstream();
    const server = await startOmnid({ config: upstream.config(), dataDir: smallDisk() });
    const id = await makeSession(server);
    const reader = await follow(server, id);
    const rest = gate();
    // More than the Trace's last page has room for.
    const long = "x".repeat(20_000);
    upstream.script({ steps: [...say("so far"), rest, ...say(long), ...finish("stop", usage(1, 1))] });
    const taskId = await prompt(server, id, "First.");
    await reader.untilPayload("partial_text", ({ text }) => text === "so far");
    const filler = join(server.dataDir, "filler");
    fill(filler);
    const before = (await history(server, id)).records;
    rest.open();
    const end = await reader.untilEnded(taskId);
    expect(end.data).toMatchObject({ state: "idle", ended: { status: "failed", error: { kind: "storage" } } });
    expect((await history(server, id)).records).toEqual(before);
    for (const body of [{ input: "Refused." }, { input: "Refused.", whenBusy: "queue" }]) {
      const refused = await api(server, "POST", at(id, "/tasks"), body);
      expect(refused).toMatchObject({ status: 507, body: { error: { code: "storage_failed" } } });
    }
    expect((await api(server, "PATCH", at(id), { title: "refused" })).status).toBe(507);
    expect((await api(server, "POST", "/api/sessions", {})).status).toBe(507);
    expect((await api(server, "GET", "/readyz")).status).toBe(503);
    expect((await api(server, "GET", "/healthz")).status).toBe(200);

    rmSync(filler);
    expect((await api(server, "GET", "/readyz")).status).toBe(200);
    upstream.script(answer("Second."));
    await reader.untilEnded(await prompt(server, id, "Next."));
    const records = await expectLawful(server, id, reader.messages);
    expect(records.slice(0, before.length)).toEqual(before);
    const asked = payloads(records, "text").flatMap(({ role, text }) => (role === "user" ? [text] : []));
    expect(asked).toEqual(["First.", "Next."]);
    const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
    expectPaired(messages);
    expect(messages.at(-1)).toEqual({ role: "user", content: "Next." });
    expect((await api(server, "GET", "/api/sessions")).body.sessions).toMatchObject([{ sessionId: id, title: null }]);
  },
);
