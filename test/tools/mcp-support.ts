// MCP servers connected to as `main` does it, and their tools called as the engine does it.

import { onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { Environment } from "../../src/engine/ports.js";
import { createEnvironment } from "../../src/tools/environment.js";
import { type McpServers, startMcp } from "../../src/tools/mcp.js";
import type { McpServerSpec } from "../../src/tools/mcp-client.js";

export interface LogLine {
  level: "debug" | "info" | "warn";
  message: string;
  details: Record<string, unknown>;
}

export interface Connected {
  mcp: McpServers;
  environment: Environment;
  lines: LogLine[];
  names(): string[];
}

/** Connects until the test ends, and resolves when each server was tried once. */
export async function connect(
  servers: Record<string, McpServerSpec>,
  clock: Clock = systemClock(),
): Promise<Connected> {
  const connected = begin(servers, clock);
  await connected.mcp.settled();
  return connected;
}

export function begin(servers: Record<string, McpServerSpec>, clock: Clock = systemClock()): Connected {
  const lines: LogLine[] = [];
  const log = (level: LogLine["level"]) => (details: object, message: string) =>
    void lines.push({ level, message, details: { ...details } });
  const mcp = startMcp({
    servers,
    environment: { PATH: process.env.PATH ?? "", HOME: "/nonexistent" },
    clock,
    log: { debug: log("debug"), info: log("info"), warn: log("warn") },
  });
  onTestFinished(() => mcp.close());
  return {
    mcp,
    environment: createEnvironment({ tools: [], source: mcp, clock }),
    lines,
    names: () => mcp.tools().map(({ definition }) => definition.name),
  };
}
