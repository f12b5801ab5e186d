// Names of MCP tools as a model sees them: `mcp__<server>__<tool>`, 64 characters of [A-Za-z0-9_-] at most, which every
// provider takes.
//
// Invariant: no two (server, tool) pairs share a name. A server's key holds no `__` and does not end with `_`, so the
// first `__` after the prefix ends it; a part that had to be changed carries a hash of what it was.

import { createHash } from "node:crypto";

export const MCP_PREFIX = "mcp__";
const MAX_NAME = 64;
const MAX_KEY = 32;
const HASH_LENGTH = 8;

/** The part of a name that says which server. `taken` holds the keys of the servers before it. */
export function mcpServerKey(server: string, taken: ReadonlySet<string> = new Set()): string {
  const isPlain = /^[A-Za-z0-9_-]+$/.test(server) && !/__|_$/.test(server) && server.length <= MAX_KEY;
  if (isPlain && !taken.has(server)) return server;
  const fitted = server.replace(/[^A-Za-z0-9-]+/g, "_").slice(0, MAX_KEY - HASH_LENGTH - 1);
  for (let salt = 0; ; salt++) {
    const key = `${fitted.replace(/_+$/, "")}_${hashOf(salt === 0 ? server : `${salt}:${server}`)}`;
    if (!taken.has(key)) return key;
  }
}

/** The whole name of a tool. Two tools of one server may still meet when one is named like the hash of the other. */
export function mcpToolName(serverKey: string, tool: string): string {
  const begin = `${MCP_PREFIX}${serverKey}__`;
  if (/^[A-Za-z0-9_-]+$/.test(tool) && begin.length + tool.length <= MAX_NAME) return begin + tool;
  const fitted = tool.replace(/[^A-Za-z0-9_-]/g, "_").slice(0, MAX_NAME - begin.length - HASH_LENGTH - 1);
  return `${begin}${fitted}_${hashOf(tool)}`;
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex").slice(0, HASH_LENGTH);

/** The key in a name, or undefined when it is no name of an MCP tool. */
export function serverKeyIn(name: string): string | undefined {
  if (!name.startsWith(MCP_PREFIX)) return undefined;
  const end = name.indexOf("__", MCP_PREFIX.length + 1);
  return end < 0 ? undefined : name.slice(MCP_PREFIX.length, end);
}
