// Drives tools through the environment as the engine does, and holds every stream to the streaming discipline.

import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, onTestFinished } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { Environment, ToolExecution } from "../../src/engine/ports.js";
import { toolCall } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { ToolCallOutputPayload } from "../../src/protocol/payloads.js";
import { validateStream } from "../../src/protocol/validate.js";
import { builtInTools } from "../../src/tools/built-in-tools.js";
import { createEnvironment } from "../../src/tools/environment.js";
import type { Tool, ToolContext, ToolOutput } from "../../src/tools/tool.js";
import { parseObject } from "../../src/tools/tool.js";

export const AT = "2026-07-18T03:10:22.123Z";

export const callOf = (name: string, args: unknown, id = "call_1") =>
  toolCall(AT, { name, arguments: typeof args === "string" ? args : JSON.stringify(args), tool_call_id: id });

export interface Ran {
  messages: OmniMessage[];
  deltas: string[];
  /** The complete output's payload. */
  result: ToolCallOutputPayload;
}

export interface RunOptions {
  signal?: AbortSignal;
  onProgress?: ToolExecution["onProgress"];
  /** Sees each delta as it comes, before the next is pulled. */
  onDelta?: (delta: string, soFar: string) => void | Promise<void>;
}

/** Executes one call to its end. */
export async function execute(
  environment: Environment,
  name: string,
  args: unknown,
  options: RunOptions = {},
): Promise<Ran> {
  const { signal = new AbortController().signal, onProgress = () => {}, onDelta } = options;
  const call = callOf(name, args);
  const messages: OmniMessage[] = [];
  const deltas: string[] = [];
  for await (const batch of environment.execute({ call, signal, onProgress, pointTo: async () => {} })) {
    expect(batch.length).toBeGreaterThan(0);
    for (const message of batch) {
      messages.push(message);
      if (!isPayload(message, "partial_tool_call_output") || message.payload.output === "") continue;
      deltas.push(message.payload.output);
      await onDelta?.(message.payload.output, deltas.join(""));
    }
  }
  const violations = validateStream([call, ...messages], { mode: "stream" });
  expect(violations.filter(({ rule }) => rule === "segments")).toEqual([]);
  const outputs = messages.filter((message) => isPayload(message, "tool_call_output"));
  expect(outputs).toHaveLength(1);
  const last = messages.at(-1);
  if (last === undefined || !isPayload(last, "tool_call_output")) throw new Error("the output is not last");
  expect(deltas.join("")).toBe(last.payload.output);
  expect(last.payload.output).not.toBe("");
  return { messages, deltas, result: last.payload };
}

/** A Clock that stands still until it is told to go on. */
export class HandClock implements Clock {
  #now = Date.parse(AT);
  #due: { at: number; run: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.now();
  }

  iso(): string {
    return new Date(this.#now).toISOString();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        cancel();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const cancel = this.after(ms, done);
      signal?.addEventListener("abort", done, { once: true });
    });
  }

  after(ms: number, run: () => void): () => void {
    const entry = { at: this.#now + ms, run };
    this.#due.push(entry);
    return () => {
      this.#due = this.#due.filter((one) => one !== entry);
    };
  }

  get waiting(): number {
    return this.#due.length;
  }

  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const [next] = this.#due.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#due = this.#due.filter((one) => one !== next);
      this.#now = next.at;
      next.run();
    }
    this.#now = end;
  }
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "omnid-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** An environment of the built-in tools over a fresh Workspace. */
export async function inWorkspace(
  options: { allowOutside?: boolean; clock?: Clock; environment?: Record<string, string> } = {},
): Promise<{ folder: string; environment: Environment }> {
  const folder = await temporaryFolder();
  const tools = builtInTools({
    workspace: folder,
    allowOutsideWorkspace: options.allowOutside ?? false,
    // A home without a profile: what a developer's own shell prints at login is no part of these tests.
    environment: options.environment ?? { PATH: process.env.PATH ?? "/usr/bin:/bin", HOME: folder },
  });
  return { folder, environment: createEnvironment({ tools, clock: options.clock ?? systemClock() }) };
}

/** Resolves when told to. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** A tool made of one generator. */
export const toolOf = (
  run: (args: unknown, context: ToolContext) => AsyncGenerator<string, ToolOutput, void>,
  name = "tool",
): Tool => ({
  definition: { name, description: "A tool of a test.", parameters: { type: "object" } },
  mayWrite: false,
  parse: (json) => parseObject(name, json),
  run,
});

/** The living processes of a group; what is dead and not yet collected does not count. */
export async function livingInGroup(group: number): Promise<string[]> {
  const { stdout } = await promisify(execFile)("ps", ["-A", "-o", "pgid=,stat=,args="]);
  return stdout.split("\n").filter((line) => {
    const [pgid, state] = line.trim().split(/\s+/);
    return Number(pgid) === group && !state?.startsWith("Z");
  });
}
