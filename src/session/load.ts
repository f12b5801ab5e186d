// A Session comes into memory: from its records alone, by the same folds that a live one keeps. What a crash left
// unfinished is closed on record before anyone sees it.

import { stat } from "node:fs/promises";
import { Channel } from "../channel/channel.js";
import { FlushPacer } from "../channel/flush-pacer.js";
import { documentTypes, type ModelCost } from "../llm/model-spec.js";
import type { TokenCounts } from "../protocol/payloads.js";
import { classify } from "../protocol/validate.js";
import { ok, refuse } from "../result.js";
import { builtInTools } from "../tools/built-in-tools.js";
import { createEnvironment } from "../tools/environment.js";
import type { RunSubagent } from "../tools/run-subagent.js";
import type { Trace } from "../trace/trace-store.js";
import { Journal } from "./journal.js";
import { faultOutcome, type SessionProcess } from "./process.js";
import { Session } from "./session.js";
import type { ClaimTask, HostedChildren, SessionDeps } from "./session-deps.js";
import type { SessionRecord } from "./session-record.js";
import { timedSink } from "./timed-sink.js";
import type { SessionView } from "./types.js";

/** What the host of a Session answers it with. */
export interface HostHooks {
  claimTask: ClaimTask;
  children: HostedChildren;
  onUpdated(record: SessionRecord, view: SessionView): void;
}

/** Where the Channel of an earlier time in memory stood; undefined after a restart. */
export interface ChannelPosition {
  epoch: number;
  lastSeq: number;
  /** Of each child that the Channel has carried: how many of its records that was. */
  carried?: Record<string, number>;
}

/**
 * Makes the Session of a record and its Trace. Its Channel goes on where it stood in this process, or begins a new
 * epoch, larger than every earlier one.
 * @throws StorageError when the Trace cannot be read.
 */
export async function loadSession(
  shared: SessionProcess,
  record: SessionRecord,
  trace: Trace,
  hooks: HostHooks,
  position?: ChannelPosition,
): Promise<Session> {
  const epoch = position?.epoch ?? Math.max(shared.clock.now(), record.epoch + 1);
  const channel = new Channel({
    epoch,
    ...(position === undefined ? {} : { lastSeq: position.lastSeq }),
    ...shared.replay,
    heartbeat: shared.heartbeat,
    pace: new FlushPacer(shared.clock),
    onStat: (stat) => shared.onChannelStat(stat, record.sessionId),
  });
  try {
    return await sessionOn(channel, shared, { ...record, epoch }, trace, hooks, position);
  } catch (error) {
    // Whoever asks next makes a Channel anew: this one must not stay among those of the process.
    channel.dispose();
    throw error;
  }
}

/** @param record with the epoch of the Channel */
async function sessionOn(
  channel: Channel,
  shared: SessionProcess,
  record: SessionRecord,
  trace: Trace,
  hooks: HostHooks,
  position: ChannelPosition | undefined,
): Promise<Session> {
  const { clock, log } = shared;
  let session: Session | undefined;
  const environment = environmentOf(shared, record, (task, context) => (session as Session).runSubagent(task, context));
  const journal = new Journal({
    trace: shared.onTraceWrite === undefined ? trace : timedSink(trace, clock, shared.onTraceWrite),
    channel,
    now: () => clock.iso(),
    tools: () => environment.definitions(),
    thinkingLevel: () => session?.record.thinkingLevel ?? record.thinkingLevel,
    onUnshown: () => session?.onUnshown(),
    ...(record.running === undefined ? {} : { turnsFrom: record.running.ordinal }),
    ...(record.restsAt === undefined ? {} : { restsAt: record.restsAt }),
    onShown: (message) => session?.onShown(message),
  });
  for await (const batch of trace.read()) {
    for (const { ordinal, message } of batch) {
      const judged = classify(message);
      if ("problems" in judged) {
        // It stays in the history, where it stands; what is built on the records goes on without it.
        journal.passOver();
        log.warn(
          { sessionId: record.sessionId, ordinal, problems: judged.problems },
          "a damaged record is passed over",
        );
      } else journal.replay(message);
    }
  }
  const current: SessionRecord = { ...record, usage: { ...record.usage, ...journal.usage } };
  session = new Session(current, {
    clock,
    newId: shared.newId,
    trace,
    channel,
    journal,
    environment,
    model: () => modelOf(shared, record),
    workspaceExists: () => isDirectory(record.workspace),
    approvalTimeoutMs: shared.approvalTimeoutMs,
    defaultMaxTurns: shared.maxTurns,
    retry: shared.retry,
    compaction: shared.compaction,
    onCompactionFailed: (error) => log.warn({ sessionId: record.sessionId, error }, "a compaction failed"),
    costOf: (usage) => costOf(shared.models.find(record.provider, record.modelId)?.spec.cost, usage),
    claimTask: hooks.claimTask,
    children: hooks.children,
    ...(position?.carried === undefined ? {} : { carried: position.carried }),
    saveRecord: (changed) => shared.records.write(changed),
    onUpdated: hooks.onUpdated,
    onFault: (error) => faultOutcome(log, record.sessionId, error),
  });
  if (position === undefined) await session.recover();
  return session;
}

/** @param runSubagent left out where only the definitions are asked for */
export function environmentOf(
  shared: SessionProcess,
  record: Pick<SessionRecord, "workspace" | "allowOutsideWorkspace" | "tools" | "parentSessionId">,
  runSubagent: RunSubagent = runsNothing,
): ReturnType<typeof createEnvironment> {
  const tools = builtInTools({
    workspace: record.workspace,
    allowOutsideWorkspace: record.allowOutsideWorkspace === true && shared.allowOutside,
    environment: shared.commandEnvironment,
    // A child has no children.
    ...(record.parentSessionId === undefined ? { runSubagent } : {}),
  });
  const offered = record.tools;
  return createEnvironment({
    tools: offered === undefined ? tools : tools.filter((tool) => offered.includes(tool.definition.name)),
    ...(shared.mcp === undefined ? {} : { source: shared.mcp }),
    clock: shared.clock,
    ...(shared.onToolCall === undefined ? {} : { onCall: shared.onToolCall }),
  });
}

const runsNothing: RunSubagent = () => Promise.reject(new Error("no Session is there to have a child"));

function modelOf(shared: SessionProcess, record: SessionRecord): ReturnType<SessionDeps["model"]> {
  const { provider, modelId } = record;
  const model = shared.models.find(provider, modelId);
  const name = `${provider}/${modelId}`;
  if (model === undefined) {
    return { ...refuse("model_unavailable", `${name} is not configured`), kind: "invalid_request" };
  }
  if (!model.available) {
    // All that a model can lack which is configured is its key.
    const why = `${name} cannot be used: ${model.reason ?? "not available"}`;
    return { ...refuse("model_unavailable", why), kind: "auth" };
  }
  const { spec } = model;
  return ok({
    llm: shared.models.client(spec),
    contextWindow: spec.contextWindow,
    vision: spec.vision,
    documents: documentTypes(spec.protocol),
  });
}

/** US dollars; prices are per million tokens, and one that is not named is that of plain input. */
function costOf(cost: ModelCost | undefined, usage: TokenCounts): number | undefined {
  if (cost?.input === undefined || cost.output === undefined) return undefined;
  const cached = usage.cache_creation ?? 0;
  const dollars =
    usage.cache_read * (cost.cacheRead ?? cost.input) +
    cached * (cost.cacheWrite ?? cost.input) +
    (usage.cache_write - cached) * cost.input +
    usage.output * cost.output;
  return Math.round(dollars * 1e3) / 1e9;
}

export async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    // Missing, not reachable, not ours to see: in each case there is no Workspace.
    return false;
  }
}
