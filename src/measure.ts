// What is measured of the process beside its HTTP requests, and under which names; docs/metrics.md lists them all. The
// parts that are measured know nothing of it: they count in plain numbers, or tell by a callback what happened.

import type { Logger } from "pino";
import type { ChannelStat } from "./channel/channel.js";
import type { ChannelFigures } from "./channel/channel-figures.js";
import type { ReplayBudget } from "./channel/replay-budget.js";
import { RESYNC_REASONS } from "./channel/subscription.js";
import type { Clock } from "./clock.js";
import type { Metrics } from "./http/metrics.js";
import type { RequestStat } from "./llm/counted-client.js";
import { unreachable } from "./result.js";
import type { Figures, SessionProcess } from "./session/process.js";
import type { McpServers } from "./tools/mcp.js";

/** Seconds until a model's first words. */
const FIRST_BUCKETS = [0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60, 120];
const REQUEST_BUCKETS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600];
const TRACE_BUCKETS = [0.0001, 0.0005, 0.001, 0.005, 0.02, 0.1, 0.5, 2];

/** Of readers that were dropped, in words. */
const DROPPED = { does_not_read: "took nothing for a minute", fell_behind: "missed events" };

/** @returns what the Sessions call where something happens. */
export function measureWork(
  metrics: Metrics,
  log: Logger,
): Required<Pick<SessionProcess, "onChannelStat" | "onToolCall" | "onTraceWrite">> {
  const byReason = (name: string, help: string, reasons: readonly string[]) =>
    metrics.counter(
      name,
      help,
      ["reason"],
      reasons.map((reason) => ({ reason })),
    );
  const resyncs = byReason("omnid_resyncs_total", "Readers that lost their place", RESYNC_REASONS);
  const dropped = byReason("omnid_readers_dropped_total", "Readers that were disconnected", [
    ...Object.keys(DROPPED),
    "fault",
  ]);
  const calls = metrics.counter("omnid_tool_calls_total", "Tool calls that were run", ["tool", "outcome"]);
  const writes = metrics.histogram(
    "omnid_trace_write_seconds",
    "Time that a record waits for its write",
    TRACE_BUCKETS,
    [],
  );
  return {
    onChannelStat: (stat: ChannelStat, sessionId) => {
      switch (stat.name) {
        case "resync_required":
          return resyncs({ reason: stat.reason });
        case "reader_dropped":
          log.info({ sessionId, reason: stat.reason }, `a reader that ${DROPPED[stat.reason]} was disconnected`);
          return dropped({ reason: stat.reason });
        case "reader_failed":
          log.error({ err: stat.error, sessionId, reason: "fault" }, "a stream was cut off");
          return dropped({ reason: "fault" });
        default:
          return unreachable(stat);
      }
    },
    onToolCall: (call) => calls({ tool: call.tool, outcome: call.outcome }),
    onTraceWrite: (ms) => writes({}, ms / 1000),
  };
}

/** @returns what is called with each Request of a provider. */
export function measureRequests(metrics: Metrics): (provider: string, stat: RequestStat) => void {
  const labels = ["provider", "outcome"] as const;
  const requests = metrics.counter("omnid_llm_requests_total", "Requests to models, each try of its own", labels);
  const tokens = metrics.counter("omnid_llm_tokens_total", "Tokens that providers counted", [...labels, "kind"]);
  const first = metrics.histogram(
    "omnid_llm_first_token_seconds",
    "Time from a Request to the first message of its answer",
    FIRST_BUCKETS,
    ["provider"],
  );
  const whole = metrics.histogram(
    "omnid_llm_request_duration_seconds",
    "Time from a Request to the end of its answer",
    REQUEST_BUCKETS,
    ["provider"],
  );
  return (provider, { outcome, usage, firstMs, totalMs }) => {
    requests({ provider, outcome });
    for (const kind of ["cache_read", "cache_write", "output"] as const) {
      if (usage[kind] > 0) tokens({ provider, outcome, kind }, usage[kind]);
    }
    if (firstMs !== undefined) first({ provider }, firstMs / 1000);
    whole({ provider }, totalMs / 1000);
  };
}

export function measureChannels(metrics: Metrics, figures: ChannelFigures, budget: ReplayBudget): void {
  metrics.totals("omnid_events_published_total", "Events that Sessions said", "kind", () => ({
    message: figures.published,
    server_event: figures.announced,
  }));
  metrics.total("omnid_events_delivered_total", "Events handed to readers, one for each", () => figures.delivered);
  metrics.total("omnid_stream_bytes_total", "Bytes handed to readers", () => figures.deliveredBytes);
  metrics.total("omnid_replays_total", "Readers that went on from an id", () => figures.replays);
  metrics.totals("omnid_replay_evictions_total", "Messages that left a replay buffer", "bound", () => ({
    channel: figures.evicted,
    server: figures.evictedByBudget,
  }));
  metrics.gauge("omnid_replay_bytes", "What all replay buffers hold", () => budget.bytes);
  metrics.gauge("omnid_readers", "Readers of Channels", () => figures.readers);
  metrics.gauge("omnid_readers_blocked", "Readers that take nothing at present", () => figures.blocked);
}

export function measureSessions(metrics: Metrics, host: { readonly figures: Figures }, clock: Clock): void {
  let now = host.figures;
  metrics.beforeAnswer(() => {
    now = host.figures;
  });
  metrics.gauge("omnid_sessions", "Sessions in the data directory", () => now.sessions);
  metrics.gauges("omnid_sessions_by_state", "Sessions by state", "state", () => now.states);
  metrics.gauge("omnid_sessions_in_memory", "Sessions in memory", () => now.inMemory);
  metrics.gauge("omnid_tasks_running", "Tasks that run", () => now.running);
  metrics.gauge("omnid_subagents_running", "Children at work, in the places of their parents", () => now.children);
  metrics.gauge("omnid_approvals_pending", "Approvals that wait for a person", () => now.pendingApprovals);
  metrics.gauge("omnid_approvals_oldest_seconds", "Age of the oldest of them; 0 when there is none", () =>
    now.oldestApprovalAt === undefined ? 0 : Math.max(0, clock.now() - now.oldestApprovalAt) / 1000,
  );
}

/** @returns what is called with each call of an MCP server. */
export function measureMcpCalls(metrics: Metrics): (call: { server: string; outcome: string }) => void {
  return metrics.counter("omnid_mcp_calls_total", "Calls of MCP tools", ["server", "outcome"]);
}

export function measureMcp(metrics: Metrics, mcp: McpServers, servers: number): void {
  metrics.gauge("omnid_mcp_servers", "MCP servers that are configured", () => servers);
  metrics.gauge("omnid_mcp_servers_connected", "MCP servers that are connected", () => mcp.figures.connected);
  metrics.gauge("omnid_mcp_tools", "Tools of MCP servers that a new Session is offered", () => mcp.figures.tools);
}
