import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { mcpServerKey, mcpToolName, serverKeyIn } from "../../src/tools/mcp-names.js";

const hash = (text: string) => createHash("sha256").update(text).digest("hex").slice(0, 8);

test("plain names are mcp__<server>__<tool>", () => {
  expect(mcpToolName(mcpServerKey("files"), "read_file")).toBe("mcp__files__read_file");
  expect(mcpToolName(mcpServerKey("my-server_2"), "a__b")).toBe("mcp__my-server_2__a__b");
});

// Parts that look alike once they are fitted, and separators where they hurt.
const part = fc.oneof(
  fc.string({ minLength: 1, maxLength: 80, unit: "grapheme" }),
  fc.string({ minLength: 1, maxLength: 12, unit: fc.constantFrom("_", "a", "-", ".", " ", "é") }),
);

test("every name is one that each provider takes, and tells its server", () => {
  fc.assert(
    fc.property(part, part, (server, tool) => {
      const key = mcpServerKey(server);
      const name = mcpToolName(key, tool);
      expect(name).toMatch(/^mcp__[A-Za-z0-9_-]{1,59}$/);
      expect(serverKeyIn(name)).toBe(key);
      expect(mcpToolName(mcpServerKey(server), tool)).toBe(name);
    }),
  );
});

test("no two servers and no two tools share a name", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(part, { minLength: 2, maxLength: 8 }),
      fc.uniqueArray(part, { maxLength: 8 }),
      (servers, tools) => {
        const keys = new Set<string>();
        for (const server of servers) keys.add(mcpServerKey(server, keys));
        expect(keys.size).toBe(servers.length);
        const names = [...keys].flatMap((key) => tools.map((tool) => mcpToolName(key, tool)));
        expect(new Set(names).size).toBe(names.length);
      },
    ),
  );
});

test("a server that is named like the fitted key of another gets a key of its own", () => {
  const first = mcpServerKey("a.b");
  expect(first).toBe(`a_b_${hash("a.b")}`);
  const second = mcpServerKey(first, new Set([first]));
  expect(second).not.toBe(first);
  expect(serverKeyIn(mcpToolName(second, "t"))).toBe(second);
});

test("what is no name of an MCP tool has no server", () => {
  for (const name of ["exec_command", "mcp__", "mcp__a", "mcp____", "xmcp__a__b"])
    expect(serverKeyIn(name)).toBeUndefined();
});
