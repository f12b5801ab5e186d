// The real server as a process of its own, from the build, with a data directory of its own. It is stopped by its pid
// when the test (or the file) that started it ends.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inject, onTestFinished } from "vitest";

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Registers what is done at the end: `onTestFinished`, or `atFileEnd` for a server that a whole file shares. */
export type AtEnd = (work: () => Promise<void>) => void;

export interface StartOptions {
  env?: Record<string, string>;
  /** What OMNID_CONFIG names. */
  config?: unknown;
  /** Left out: a fresh one, which is removed at the end. */
  dataDir?: string;
  atEnd?: AtEnd;
  /** A shell's word on what the process may use, for example `ulimit -n 100`. */
  limits?: string;
}

export interface Server {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  readonly dataDir: string;
  /** What the process printed so far, log included. */
  printed(): string;
  /** Resident memory in bytes. */
  rss(): number;
  kill(signal: NodeJS.Signals): void;
  /** Sends the signal and waits for the end. */
  stop(signal: NodeJS.Signals): Promise<Exit>;
  /** The same server again: data directory and settings, on a port of its own. */
  restart(): Promise<Server>;
}

export interface Ended extends Exit {
  stdout: string;
  stderr: string;
}

/** A folder that is gone when the test is. */
export function temporaryFolder(atEnd: AtEnd = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), "omnid-e2e-"));
  atEnd(async () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  return folder;
}

/** Starts a server and resolves once it says that it listens. */
export async function startOmnid(options: StartOptions = {}): Promise<Server> {
  const { atEnd = onTestFinished } = options;
  // The folder goes last: what is registered first is done last.
  const dataDir = options.dataDir ?? temporaryFolder(atEnd);
  const { child, output, exited } = launch({ ...options, dataDir });
  atEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
  });
  const port = await new Promise<number>((resolve, reject) => {
    const look = () => {
      const said = /^omnid listening on http:\/\/127\.0\.0\.1:(\d+)$/m.exec(output.stdout);
      if (said) resolve(Number(said[1]));
    };
    child.stdout?.on("data", look);
    void exited.then(() => reject(new Error(`the server ended: ${output.stdout}${output.stderr}`)));
  });
  const pid = child.pid as number;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid,
    dataDir,
    printed: () => output.stdout + output.stderr,
    rss: () => Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024,
    kill: (signal) => void child.kill(signal),
    stop: async (signal) => {
      child.kill(signal);
      return exited;
    },
    restart: () => startOmnid({ ...options, dataDir }),
  };
}

/** Starts a server that is expected not to start, and gives what it said when it ended. */
export async function runToEnd(options: StartOptions): Promise<Ended> {
  const { child, output, exited } = launch({ ...options, dataDir: options.dataDir ?? temporaryFolder() });
  onTestFinished(() => void child.kill("SIGKILL"));
  return { ...(await exited), ...output };
}

interface Launched {
  child: ChildProcess;
  output: { stdout: string; stderr: string };
  exited: Promise<Exit>;
}

function launch({ env = {}, config, dataDir, limits }: StartOptions & { dataDir: string }): Launched {
  const configFile = join(dataDir, "config-of-the-test.json");
  if (config !== undefined) writeFileSync(configFile, JSON.stringify(config));
  const command = [process.execPath, inject("cli")];
  const [file, ...args] = limits === undefined ? command : ["sh", "-c", `${limits}; exec "$0" "$1"`, ...command];
  const child = spawn(file as string, args, {
    // Nothing of the caller's environment may configure the server under test.
    env: {
      PATH: process.env.PATH,
      HOME: dataDir,
      PORT: "0",
      OMNID_DATA_DIR: dataDir,
      OMNID_DEMO_DELAY_MS: "0",
      ...(config === undefined ? {} : { OMNID_CONFIG: configFile }),
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
  });
  const exited = once(child, "close").then(([code, signal]) => ({ code, signal }) as Exit);
  return { child, output, exited };
}
