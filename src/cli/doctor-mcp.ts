// The part of `omnid doctor` that looks at MCP servers: each is started or called as the server would, asked for its
// tools, and left again.

import { type Clock, systemClock } from "../clock.js";
import type { Config } from "../config.js";
import { mcpEnvironment, startMcp } from "../tools/mcp.js";

export interface ExamineOptions {
  clock: Clock | undefined;
  /** Takes each line for the person who asked. */
  out: (line: string) => void;
}

/** A server that is fetched first, as by npx, takes its time. */
const PATIENCE_MS = 30_000;
const SHOWN_TOOLS = 5;

/** Prints a line for each configured server. @returns how many are not there. */
export async function examineMcp({ mcpServers }: Config, options: ExamineOptions): Promise<number> {
  const { clock = systemClock(), out } = options;
  if (Object.keys(mcpServers).length === 0) return 0;
  const silent = { debug: () => {}, info: () => {}, warn: () => {} };
  const mcp = startMcp({ servers: mcpServers, environment: mcpEnvironment(process.env), clock, log: silent });
  const patience = new AbortController();
  try {
    await Promise.race([mcp.tried(), clock.sleep(PATIENCE_MS, patience.signal)]);
    const states = mcp.states();
    for (const { name, tools, reason } of states) {
      if (reason !== undefined) out(`fail  mcp ${name}: ${reason.replace(/[.\s]+$/, "")}`);
      else out(`ok    mcp ${name}: ${countOf(tools.length)}${namesOf(tools)}`);
    }
    const lost = states.filter(({ reason }) => reason !== undefined).length;
    out(`MCP servers: ${states.length - lost} connected, ${lost} failed`);
    return lost;
  } finally {
    patience.abort();
    await mcp.close();
  }
}

const countOf = (tools: number): string => (tools === 1 ? "1 tool" : `${tools} tools`);

function namesOf(tools: readonly string[]): string {
  if (tools.length === 0) return "";
  const more = tools.length > SHOWN_TOOLS ? `, and ${tools.length - SHOWN_TOOLS} more` : "";
  return ` (${tools.slice(0, SHOWN_TOOLS).join(", ")}${more})`;
}
