import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { emptyTokenCounts } from "../../src/protocol/builders.js";
import type { SessionMetaPayload } from "../../src/protocol/payloads.js";
import {
  createRecordStore,
  parseSessionRecord,
  recordFile,
  recordFromMeta,
  type SessionRecord,
} from "../../src/session/session-record.js";
import { collectingLog, MemoryFs } from "../trace/support.js";

let dir = "";
const log = collectingLog();
const traces = { folder: (id: string) => join(dir, "sessions", id) };
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "omnid-record-"));
  log.warnings.length = 0;
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const newRecord = (change: Partial<SessionRecord> = {}): SessionRecord => ({
  sessionId: "s",
  owner: "ann",
  provider: "demo",
  modelId: "demo",
  workspace: "/w",
  ownsWorkspace: true,
  approvalMode: "allow-all",
  thinkingLevel: "high",
  title: "a\u2028b",
  createdAt: "2026-07-18T03:10:22.000Z",
  lastActiveAt: "2026-07-18T03:10:23.000Z",
  archived: false,
  epoch: 12,
  usage: { ...emptyTokenCounts(), costUsd: 0.5 },
  ...change,
});

const store = () => createRecordStore({ traces, fsync: "interval", log });

describe("a record", () => {
  test("comes back equal, with the fields of a later version, in a file of mode 0600", async () => {
    await mkdir(traces.folder("s"), { recursive: true });
    const record = { ...newRecord({ tools: ["read_file"], parentSessionId: "p" }), later: { x: [1] } };
    await store().write(record);
    expect(await store().readAll(["s"])).toEqual([record]);
    expect((await stat(join(traces.folder("s"), "session.json"))).mode & 0o777).toBe(0o600);
    expect(await readdir(traces.folder("s"))).toEqual(["session.json"]);
    expect(parseSessionRecord(Object.values(recordFile(record))[0]!)).toEqual(record);
  });

  test("with a broken field takes the value that grants least", () => {
    const broken = {
      ...newRecord(),
      approvalMode: "yes",
      ownsWorkspace: 1,
      tools: "all",
      usage: 7,
      epoch: -1,
      maxTurns: {},
    };
    expect(parseSessionRecord(JSON.stringify(broken))).toMatchObject({
      owner: "ann",
      approvalMode: "always-ask",
      ownsWorkspace: false,
      tools: [],
      usage: emptyTokenCounts(),
      epoch: 0,
    });
  });

  test("with a broken owner or identity, cut at any byte, or of another Session counts as missing", async () => {
    for (const field of ["owner", "sessionId", "provider", "modelId", "workspace"]) {
      expect(parseSessionRecord(JSON.stringify({ ...newRecord(), [field]: 5 }))).toBeUndefined();
    }
    const text = JSON.stringify(newRecord());
    for (let cut = 0; cut < text.length; cut++) expect(parseSessionRecord(text.slice(0, cut))).toBeUndefined();
    await mkdir(traces.folder("copy"), { recursive: true });
    await writeFile(join(traces.folder("copy"), "session.json"), text);
    expect(await store().readAll(["copy"])).toEqual([undefined]);
    expect(log.warnings).toHaveLength(1);
    expect(await store().readAll(["none"])).toEqual([undefined]);
    expect(log.warnings).toHaveLength(1);
  });

  test("cannot be written for a Session that is gone, and does not bring its folder back", async () => {
    await expect(store().write(newRecord())).rejects.toMatchObject({ name: "StorageError", errno: "ENOENT" });
    await expect(readdir(join(dir, "sessions"))).rejects.toThrow("ENOENT");
  });
});

describe("writing", () => {
  test("many at once ends with the last one, and each is answered when it or a later one is in place", async () => {
    await mkdir(traces.folder("s"), { recursive: true });
    const records = store();
    await Promise.all(
      Array.from({ length: 50 }, async (_, i) => {
        await records.write(newRecord({ epoch: i }));
        const there = JSON.parse(await readFile(join(traces.folder("s"), "session.json"), "utf8")) as SessionRecord;
        expect(there.epoch).toBeGreaterThanOrEqual(i);
      }),
    );
    expect(await records.readAll(["s"])).toMatchObject([{ epoch: 49 }]);
  });

  test("leaves the old record or the new one, whichever call fails or ends the process", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.nat(8),
        fc.boolean(),
        fc.boolean(),
        fc.double({ min: 0, max: 1, noNaN: true }),
        async (at, isCrash, done, part) => {
          const fs = new MemoryFs();
          await fs.makeFolder("/sessions/s");
          await fs.syncFolder("/");
          await fs.syncFolder("/sessions");
          const open = (disk: MemoryFs) =>
            createRecordStore({ traces: { folder: (id) => `/sessions/${id}` }, fs: disk, fsync: "always", log });
          const records = open(fs);
          await records.write(newRecord({ epoch: 1 }));
          const start = fs.calls;
          fs.plan = (call) =>
            call - start !== at
              ? undefined
              : isCrash
                ? { kind: "crash", done, part }
                : { kind: "error", code: "EIO", done, part };
          const isWritten = await records.write(newRecord({ epoch: 2 })).then(
            () => true,
            () => false,
          );
          for (const disk of [fs.afterKill(), fs.afterPowerFailure(part, true)]) {
            const [record] = await open(disk).readAll(["s"]);
            expect(isWritten ? [2] : [1, 2]).toContain(record?.epoch);
          }
        },
      ),
    );
  });
});

test("G7: the records of thousands of Sessions are read in their order with few files open at once, and no Trace", async () => {
  const fs = new MemoryFs();
  let most = 0;
  let now = 0;
  const counted = Object.assign(Object.create(fs) as MemoryFs, {
    readFile: async (path: string) => {
      most = Math.max(most, ++now);
      try {
        return Buffer.from(JSON.stringify(newRecord({ sessionId: path.split("/")[2]! })));
      } finally {
        await Promise.resolve();
        now--;
      }
    },
  });
  const ids = Array.from({ length: 10_000 }, (_, i) => `s${i}`);
  const records = createRecordStore({ traces: { folder: (id) => `/sessions/${id}` }, fs: counted, fsync: "off", log });
  const all = await records.readAll(ids);
  expect(all.map((one) => one?.sessionId)).toEqual(ids);
  expect(most).toBeLessThanOrEqual(64);
  expect(fs.calls).toBe(0);
});

test("a record made from a Trace asks for everything, belongs to nobody, and owns only a Workspace of ours", () => {
  const meta = {
    session_id: "s",
    provider: "demo",
    model_id: "m",
    model_context_window: 1,
    system_prompt: "p",
    tools: [
      { name: "read_file", description: "" },
      { name: "mcp__x__y", description: "" },
    ],
    thinking_level: "someday",
    agent_state: "/d/sessions/s",
    workspace: "/d/workspaces/s",
  } satisfies SessionMetaPayload;
  const context = {
    sessionId: "s",
    createdAt: "2026-07-18T03:10:22.000Z",
    lastActiveAt: "2026-07-18T03:10:22.000Z",
    workspacesFolder: "/d/workspaces",
  };
  const record = recordFromMeta(meta, context);
  expect(record).toMatchObject({
    owner: null,
    approvalMode: "always-ask",
    ownsWorkspace: true,
    thinkingLevel: "default",
    tools: ["read_file"],
  });
  expect(parseSessionRecord(JSON.stringify(record))).toEqual(record);
  expect(recordFromMeta({ ...meta, workspace: "/home/me/workspaces" }, context).ownsWorkspace).toBe(false);
});
