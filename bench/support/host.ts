// Sessions in this process, as `main` hosts them, with a model of the benchmark's own.

import { join } from "node:path";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import { systemClock } from "../../src/clock.js";
import type { LLMClient } from "../../src/engine/ports.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import { createSessionManager, type SessionManager } from "../../src/session/session-manager.js";
import { createRecordStore } from "../../src/session/session-record.js";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import type { FsyncPolicy } from "../../src/trace/trace-fs.js";

const SPEC: ModelSpec = {
  provider: "bench",
  modelId: "scripted",
  protocol: "demo",
  baseUrl: "",
  contextWindow: 1e9,
  vision: false,
  thinking: false,
};

let ids = 0;

export interface HostOptions {
  dataDir: string;
  model: LLMClient;
  /** When records are forced to the disk; "interval" unless given. */
  fsync?: FsyncPolicy;
}

export async function hostWith({ dataDir, model, fsync = "interval" }: HostOptions): Promise<SessionManager> {
  const clock = systemClock();
  const log = { warn: console.error, error: console.error };
  const traces = await createTraceStore({ dir: dataDir, fsync, clock, log });
  const host = await createSessionManager({
    clock,
    newId: () => (++ids).toString(16).padStart(8, "0"),
    log,
    traces,
    records: createRecordStore({ traces, fsync, log }),
    models: {
      defaultModel: SPEC,
      views: () => [],
      find: () => ({ spec: SPEC, available: true }),
      client: () => model,
    },
    heartbeat: new HeartbeatWheel({ intervalMs: 15_000, clock }),
    workspacesFolder: join(dataDir, "workspaces"),
    commandEnvironment: {},
    systemPrompt: "be brief",
    maxTurns: -1,
    retry: { baseMs: 10, maxMs: 40, limit: 0 },
    compaction: { maxContextLength: -1, maxSessionTurns: -1, mode: "summarize", prompt: "Summarize." },
    replay: { maxEvents: 10_000, maxBytes: 8_388_608 },
    approvalTimeoutMs: undefined,
    allowOutside: false,
    maxSessions: undefined,
    maxTasks: undefined,
    onChannelStat: () => {},
  });
  await host.recover();
  return host;
}
