// What the benchmarks of storage measure with: medians, CPU, and children that are asked and answer.

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] as number;
}

/** @returns microseconds of CPU that this process, all its threads, took for `work`. */
export async function cpuOf(work: () => unknown): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** Starts this program again in another role. */
export const startRole = (self: string, ...args: string[]): ChildProcess => fork(self, args);

/** Resolves with the next message of that type. */
export function answer<T>(child: ChildProcess, type: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (end: () => void) => {
      child.off("message", onMessage);
      child.off("exit", onExit);
      end();
    };
    const onMessage = (message: { type: string } & T) => {
      if (message.type === type) settle(() => resolve(message));
    };
    const onExit = (code: number | null) =>
      settle(() => reject(new Error(`a bench process ended with ${code} before it said ${type}`)));
    child.on("message", onMessage);
    child.on("exit", onExit);
  });
}

/** Ends a child and waits until it is gone. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** A folder that is gone when the process is. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "omnid-bench-"));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A row of a table says whether its bar holds, and by how much it does not. */
export const holds = (value: number, bar: number, digits = 2): string =>
  value <= bar ? "yes" : `no, ${(value - bar).toFixed(digits)} over`;

/** Prints a section of RESULTS.md; a bar that does not hold makes the run fail. */
export function report(lines: readonly string[], areHeld: boolean): void {
  process.stdout.write(`${lines.join("\n")}\n`);
  process.exitCode = areHeld ? 0 : 1;
}
