// MCP servers for tests: the published one that exercises the whole protocol, and one that misbehaves as it is told.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import type { McpServerSpec } from "../../src/tools/mcp-client.js";

const HOSTILE = fileURLToPath(new URL("../fixtures/mcp/hostile.mjs", import.meta.url));
const LOOPBACK = new URL("../fixtures/mcp/loopback.mjs", import.meta.url).href;
const EVERYTHING = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

type Process = Extract<McpServerSpec, { command: string }>;

export const hostile = (...args: string[]): Process => ({
  command: process.execPath,
  args: [HOSTILE, ...args],
  env: {},
});

export const everything = (env: Record<string, string> = {}): Process => ({
  command: process.execPath,
  args: [EVERYTHING, "stdio"],
  env,
});

export interface HttpServer {
  url: string;
  port: number;
  kill(): Promise<void>;
}

/** The published server over streamable HTTP, until the test ends. */
export async function startEverything(port = 0): Promise<HttpServer> {
  const child = spawn(process.execPath, ["--import", LOOPBACK, EVERYTHING, "streamableHttp"], {
    env: { PATH: process.env.PATH, LISTEN_PORT: String(port) },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  const kill = async () => {
    child.kill("SIGKILL");
    await exited;
  };
  onTestFinished(kill);
  const listens = await new Promise<number>((resolve, reject) => {
    let said = "";
    child.stdout.on("data", (bytes: Buffer) => {
      said += bytes.toString();
      const found = /^port (\d+)$/m.exec(said)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    void exited.then(() => reject(new Error(`the server ended: ${said}`)));
  });
  return { url: `http://127.0.0.1:${listens}/mcp`, port: listens, kill };
}
