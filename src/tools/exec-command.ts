// exec_command: one shell command. A non-zero exit is an answer, not a failure.

import { StringDecoder } from "node:string_decoder";
import { z } from "zod";
import type { CommandEnd } from "./process-group.js";
import { startCommand, TERM_GRACE_MS } from "./process-group.js";
import { defineTool, type Tool, ToolFailure, type ToolOutput } from "./tool.js";
import type { Workspace } from "./workspace.js";

const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 3_600_000;
// Linux refuses a single argument of 128 KiB, its terminator included.
const MAX_CMD_BYTES = 131_071;

const parameters = z.strictObject({
  cmd: z.string().min(1).describe("The command, run by `bash -lc`. It has no input; output and errors come together."),
  workdir: z.string().optional().describe("Folder to run in, inside the Workspace. Left out: the Workspace itself."),
  timeout_ms: z
    .int()
    .min(1)
    .max(MAX_TIMEOUT_MS)
    .optional()
    .describe(`Longest run in milliseconds. Left out: ${DEFAULT_TIMEOUT_MS}.`),
});

export interface ExecCommandOptions {
  workspace: Workspace;
  /** What commands get as their environment, secrets already removed. */
  environment: Readonly<Record<string, string>>;
}

export function execCommandTool({ workspace, environment }: ExecCommandOptions): Tool<ExecArgs> {
  return defineTool({
    name: "exec_command",
    description:
      "Runs a shell command in the Workspace and gives its output and exit code. Everything that it started, also in " +
      "the background, is killed when it ends.",
    parameters,
    mayWrite: true,
    // The time a process has between SIGTERM and SIGKILL, and a moment for the kernel and the rest of the output.
    graceMs: TERM_GRACE_MS + 1_500,
    async *run(args, { signal, clock }) {
      const timeoutMs = args.timeout_ms ?? DEFAULT_TIMEOUT_MS;
      refuseUnstartable(args.cmd);
      const cwd = await workspace.folder(args.workdir ?? ".");
      if (signal.aborted) return { stop: "aborted" };
      const command = await startCommand({ cmd: args.cmd, cwd, environment, clock });
      let timedOut = false;
      const onAbort = () => command.terminate();
      const cancelTimeout = clock.after(timeoutMs, () => {
        timedOut = true;
        command.terminate();
      });
      // What comes after its end has a limit of its own, and says nothing of how long the command took.
      void command.ended.then(cancelTimeout);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        // Much faster than TextDecoder, which a flood shows.
        const decoder = new StringDecoder("utf8");
        for await (const bytes of command.output()) {
          const text = decoder.write(bytes);
          // After an abort the pipe is still emptied, so that a command that tidies up is not stuck in a write.
          if (text !== "" && !signal.aborted) yield text;
        }
        const last = decoder.end();
        if (last !== "") yield last;
        const end = await command.ended;
        return timedOut ? timeoutOf(timeoutMs) : outputOf(end);
      } finally {
        cancelTimeout();
        signal.removeEventListener("abort", onAbort);
        command.dispose();
      }
    },
  });
}

type ExecArgs = z.output<typeof parameters>;

function refuseUnstartable(cmd: string): void {
  if (cmd.includes("\0")) throw new ToolFailure("cmd holds a NUL character, which no command can.");
  const size = Buffer.byteLength(cmd);
  if (size > MAX_CMD_BYTES) {
    throw new ToolFailure(
      `cmd is ${size} bytes, limit ${MAX_CMD_BYTES}: write it to a file with write_file and run that.`,
    );
  }
}

function timeoutOf(timeoutMs: number): ToolOutput {
  return {
    stop: "timeout",
    note: `[timed out after ${timeoutMs} ms; the command and what it started were killed. A longer timeout_ms is possible.]`,
  };
}

function outputOf(end: CommandEnd): ToolOutput {
  if (end.kind === "not_started") return { stop: "failed", note: `[the command did not start: ${end.error.message}]` };
  const { exitCode, signal } = end;
  if (exitCode === 0) return { exitCode };
  return { exitCode, note: `${signal === undefined ? "" : `[killed by ${signal}]\n`}[exit code ${exitCode}]` };
}
