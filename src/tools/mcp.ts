// The tools of the configured MCP servers, for all Sessions of the process. A Session records what is offered when its
// context begins; a call looks up the server as it is then.

import type { Clock } from "../clock.js";
import { refuse, unreachable } from "../result.js";
import type { McpServerSpec } from "./mcp-client.js";
import { McpConnection, type McpLog, type ServerCallOutcome } from "./mcp-connection.js";
import { MAX_MCP_TOOLS } from "./mcp-limits.js";
import { mcpServerKey, serverKeyIn } from "./mcp-names.js";
import { readMcpResult } from "./mcp-result.js";
import type { McpTool } from "./mcp-tool-list.js";
import { parseObject, type Tool, type ToolOutput, type ToolSource } from "./tool.js";

/** How long after the start a new Session waits for servers that are still being connected to. */
const SETTLE_MS = 4_000;

export interface McpOptions {
  servers: Readonly<Record<string, McpServerSpec>>;
  /** What a server's process gets besides its own `env`: enough to be found. */
  environment: Readonly<Record<string, string>>;
  clock: Clock;
  log: McpLog;
  onCall?(call: { server: string; outcome: ServerCallOutcome["kind"] }): void;
}

/** How a server is just now; `reason` says why it is not connected. */
export interface McpServerState {
  name: string;
  tools: readonly string[];
  reason?: string;
}

/** What a server's process sees of ours: enough to be found. */
export function mcpEnvironment({ PATH, HOME }: NodeJS.ProcessEnv): Record<string, string> {
  return { ...(PATH === undefined ? {} : { PATH }), ...(HOME === undefined ? {} : { HOME }) };
}

export interface McpServers extends ToolSource {
  /** Resolves when each server was tried once, and 4 s after the start at the latest. */
  settled(): Promise<void>;
  /** Resolves when each server was tried once, however long that takes. */
  tried(): Promise<void>;
  /** In the order of the configuration. */
  states(): McpServerState[];
  readonly figures: { connected: number; tools: number };
  /** Ends every connection and every process, within 3 s. */
  close(): Promise<void>;
}

/** Begins to connect to the servers and returns at once; no server can make it fail. */
export function startMcp(options: McpOptions): McpServers {
  const { servers, environment, clock, log, onCall = () => {} } = options;
  const connections = new Map<string, McpConnection>();
  for (const [name, spec] of Object.entries(servers)) {
    const key = mcpServerKey(name, new Set(connections.keys()));
    connections.set(key, new McpConnection({ name, key, spec, environment, clock, log }));
  }
  const all = [...connections.values()];
  const settled = Promise.race([
    Promise.all(all.map((connection) => connection.settled)),
    new Promise<void>((resolve) => void clock.after(SETTLE_MS, resolve)),
  ]);
  const offered = () =>
    all.flatMap((one) => one.tools.map((tool) => toolOf(one, tool, onCall))).slice(0, MAX_MCP_TOOLS);
  return {
    tools: offered,
    find: (name) => {
      const connection = connections.get(serverKeyIn(name) ?? "");
      const tool = connection?.find(name);
      if (connection === undefined || tool === undefined) return undefined;
      return toolOf(connection, tool === "unknown" ? unknownTool(name) : tool, onCall);
    },
    settled: async () => void (await settled),
    tried: async () => void (await Promise.all(all.map((one) => one.settled))),
    states: () =>
      all.map(({ name, isConnected, tools, reason }) => ({
        name,
        tools: tools.map(({ definition }) => definition.name),
        ...(isConnected ? {} : { reason }),
      })),
    get figures() {
      return { connected: all.filter((one) => one.isConnected).length, tools: offered().length };
    },
    close: async () => void (await Promise.all(all.map((one) => one.close()))),
  };
}

/** A tool that a context was offered, of a server that is not there to tell whether it still has it. */
const unknownTool = (name: string): McpTool => ({
  ownName: name,
  definition: { name, description: "", parameters: { type: "object" } },
  mayWrite: true,
  check: () => [],
});

function toolOf(
  connection: McpConnection,
  { definition, mayWrite, check }: McpTool,
  onCall: NonNullable<McpOptions["onCall"]>,
): Tool<Record<string, unknown>> {
  const { name } = definition;
  return {
    definition,
    mayWrite,
    parse: (json) => {
      const object = parseObject(name, json);
      const problems = object.ok ? check(object.value) : [];
      if (problems.length === 0) return object;
      const lines = problems.map((problem) => `- ${problem}`);
      return refuse("bad_arguments", [`The arguments of ${name} do not fit its parameters:`, ...lines].join("\n"));
    },
    async *run(args, { signal }) {
      const outcome = await connection.call(name, args, signal);
      onCall({ server: connection.name, outcome: outcome.kind });
      if (outcome.kind !== "answered") return failureOf(connection.name, outcome);
      const { text, output } = readMcpResult(outcome.result);
      if (text !== "") yield text;
      return output;
    },
  };
}

function failureOf(server: string, outcome: Exclude<ServerCallOutcome, { kind: "answered" }>): ToolOutput {
  const named = `the MCP server ${JSON.stringify(server)}`;
  switch (outcome.kind) {
    case "aborted":
      return { stop: "aborted" };
    case "timeout":
      return {
        stop: "timeout",
        note: `[timed out: ${named} gave no answer for ${outcome.silentMs / 1_000} s; the call was cancelled, and may have been done in part]`,
      };
    case "refused":
      return { stop: "failed", note: outcome.message };
    case "malformed":
      return {
        stop: "failed",
        note: `[${named} answered with what is no result of a tool; it may have done the call]`,
      };
    case "lost":
      return {
        stop: "failed",
        note: outcome.reached
          ? `[${named} was lost during the call: ${outcome.reason}. Whether the call was done is not known.]`
          : `[${named} is not there: ${outcome.reason}. The call was not done; it is being connected to again.]`,
      };
    case "not_connected":
      return {
        stop: "failed",
        note: `[${named} is not connected: ${outcome.reason}. The call was not done; it is being connected to again.]`,
      };
    case "no_tool":
      return { stop: "failed", note: `[${named} no longer has this tool]` };
    default:
      return unreachable(outcome);
  }
}
