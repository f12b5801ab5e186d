// Real Sessions on a real (or a failing) disk, without HTTP: a scripted model, the built-in tools, readers as lists.

import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { expect, onTestFinished } from "vitest";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import type { Sink } from "../../src/channel/subscription.js";
import { type Clock, systemClock } from "../../src/clock.js";
import type { LLMClient } from "../../src/engine/ports.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { SessionProcess } from "../../src/session/process.js";
import { createSessionManager, type SessionManager } from "../../src/session/session-manager.js";
import { createRecordStore } from "../../src/session/session-record.js";
import type { HistoryPage, HistoryQuery, HistoryRecord } from "../../src/session/types.js";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import { diskFs, type TraceFs } from "../../src/trace/trace-fs.js";

const SPEC: ModelSpec = {
  provider: "test",
  modelId: "scripted",
  protocol: "demo",
  baseUrl: "",
  contextWindow: 100_000,
  vision: false,
  thinking: true,
  cost: { input: 1, output: 2 },
};

export interface HostOptions {
  model: LLMClient;
  dataDir?: string;
  clock?: Clock;
  fs?: TraceFs;
  process?: Partial<SessionProcess>;
}

export const tempDir = (): string => {
  const dir = mkdtempSync(join(tmpdir(), "omnid-test-"));
  onTestFinished(() => removeFolder(dir));
  return dir;
};

/** Removes a folder in which a Session may still be writing its record: what is written meanwhile is removed too. */
async function removeFolder(dir: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await rm(dir, { recursive: true, force: true });
    } catch (error) {
      if (tries === 50) throw error;
      await setTimeout(20);
    }
  }
}

let ids = 0;

/** Opens a data directory and hosts its Sessions, as `main` does. */
export async function hostOn(options: HostOptions): Promise<SessionManager> {
  const { clock = systemClock(), dataDir = tempDir(), fs = diskFs, model } = options;
  const log = { warn: () => {}, error: () => {} };
  const traces = await createTraceStore({ dir: dataDir, fs, fsync: "off", clock, log });
  const host = await createSessionManager({
    clock,
    newId: () => (++ids).toString(16).padStart(8, "0"),
    log,
    traces,
    records: createRecordStore({ traces, fs, fsync: "off", log }),
    models: {
      defaultModel: SPEC,
      views: () => [],
      find: (provider, modelId) =>
        provider === SPEC.provider && modelId === SPEC.modelId ? { spec: SPEC, available: true } : undefined,
      client: () => model,
    },
    heartbeat: new HeartbeatWheel({ intervalMs: 60_000, clock }),
    workspacesFolder: join(dataDir, "workspaces"),
    commandEnvironment: { PATH: process.env.PATH ?? "" },
    systemPrompt: "be brief",
    maxTurns: -1,
    retry: { baseMs: 10, maxMs: 40, limit: 5 },
    compaction: { maxContextLength: -1, maxSessionTurns: -1, mode: "summarize", prompt: "Summarize." },
    replay: { maxEvents: 10_000, maxBytes: 8_000_000 },
    approvalTimeoutMs: undefined,
    allowOutside: false,
    maxSessions: undefined,
    maxTasks: undefined,
    onChannelStat: () => {},
    ...options.process,
  });
  await host.recover();
  return host;
}

export async function made<T>(result: Promise<{ ok: true; value: T } | { ok: false; message: string }>): Promise<T> {
  const settled = await result;
  if (!settled.ok) throw new Error(settled.message);
  return settled.value;
}

export async function recordsOf(
  session: { history(query: HistoryQuery): Pick<HistoryPage, "records"> },
  query: HistoryQuery = {},
): Promise<OmniMessage[]> {
  const records: OmniMessage[] = [];
  for await (const batch of session.history(query).records)
    for (const { json } of batch) records.push(JSON.parse(await textOf(json)));
  return records;
}

/** A record's text, in pieces or not. */
export async function textOf(json: HistoryRecord["json"]): Promise<string> {
  if (typeof json === "string") return json;
  const pieces: Buffer[] = [];
  for await (const piece of json) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

/** The records of a Session, held to every guarantee. @param running its Task goes on */
export async function lawfulRecordsOf(
  session: Parameters<typeof recordsOf>[0],
  running = false,
): Promise<OmniMessage[]> {
  const records = await recordsOf(session);
  expect(validateStream(records, { mode: "trace", running })).toEqual([]);
  return records;
}

export interface ListReader extends Sink {
  readonly events: { id?: string; name?: string; data: Record<string, unknown> }[];
  readonly messages: OmniMessage[];
  /** Resolves when an event that fits has come. */
  until(fits: (event: { name?: string; data: Record<string, unknown> }) => boolean): Promise<void>;
  /** Goes away. */
  leave(): void;
}

/** A reader that is a list. */
export function listReader(): ListReader {
  const events: ListReader["events"] = [];
  const messages: OmniMessage[] = [];
  let waiting: (() => void)[] = [];
  let leave = () => {};
  return {
    events,
    messages,
    framing: "plain",
    queuedBytes: 0,
    write(bytes) {
      for (const frame of Buffer.from(bytes).toString().split("\n\n")) {
        const data = /^data: (.*)$/m.exec(frame)?.[1];
        if (data === undefined) continue;
        const id = /^id: (.*)$/m.exec(frame)?.[1];
        const name = /^event: (.*)$/m.exec(frame)?.[1];
        const value = JSON.parse(data);
        events.push({ ...(id === undefined ? {} : { id }), ...(name === undefined ? {} : { name }), data: value });
        if (name === undefined) messages.push(value);
      }
      for (const look of waiting) look();
      return true;
    },
    onDrain() {},
    onClose(closed) {
      leave = closed;
    },
    end() {},
    destroy() {},
    leave: () => leave(),
    until: (fits) =>
      new Promise((resolve) => {
        const look = () => {
          if (!events.some(fits)) return;
          waiting = waiting.filter((each) => each !== look);
          resolve();
        };
        waiting.push(look);
        look();
      }),
  };
}

/** Fits the `task_state` that ends a Task. */
export const ended = ({ name, data }: { name?: string; data: Record<string, unknown> }): boolean =>
  name === "server_event" && data.type === "task_state" && data.ended !== undefined;
