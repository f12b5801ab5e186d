// The built command line as a process, with nothing of the caller's environment.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { inject, onTestFinished } from "vitest";
import { temporaryFolder } from "../support/server.js";

export interface RunOptions {
  env?: Record<string, string>;
  /** What comes through the pipe; empty unless given. Undefined leaves it open. */
  input?: string | undefined;
  cwd?: string;
}

export interface Finished {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface Running {
  child: ChildProcessWithoutNullStreams;
  /** Resolves once both streams together have said it, with all that they said. */
  says(pattern: RegExp): Promise<string>;
  finished: Promise<Finished>;
}

/** Starts `omnid` with these arguments, until the test ends. */
export function startCli(args: readonly string[], options: RunOptions = {}): Running {
  return startProcess(process.execPath, [inject("cli"), ...args], options);
}

export function startProcess(command: string, args: readonly string[], options: RunOptions = {}): Running {
  const { env = {}, cwd = temporaryFolder() } = options;
  const home = env.HOME ?? cwd;
  const child = spawn(command, args, {
    cwd,
    env: {
      PATH: process.env.PATH,
      HOME: home,
      OMNID_DATA_DIR: `${home}/data`,
      OMNID_DEMO_DELAY_MS: "0",
      PORT: "0",
      ...env,
    },
    stdio: "pipe",
  });
  const said = { stdout: "", stderr: "" };
  let look = () => {};
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      said[name] += text;
      look();
    });
  }
  child.stdin.on("error", () => {}); // It may end without reading.
  if (!("input" in options) || options.input !== undefined) child.stdin.end(options.input ?? "");
  const finished = once(child, "close").then(([code]) => ({ code: code as number | null, ...said }));
  onTestFinished(async () => {
    if (child.exitCode === null) child.kill("SIGKILL");
    await finished;
  });
  return {
    child,
    finished,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        look = () => {
          if (pattern.test(said.stdout + said.stderr)) resolve(said.stdout + said.stderr);
        };
        void finished.then((end) => reject(new Error(`it ended: ${JSON.stringify(end)}`)));
        look();
      }),
  };
}

export const runCli = (args: readonly string[], options: RunOptions = {}): Promise<Finished> =>
  startCli(args, options).finished;
