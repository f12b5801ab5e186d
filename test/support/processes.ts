// Processes that a command started, looked at from outside.

import { readFileSync } from "node:fs";

/** Whether a process is still there. A zombie that nobody has reaped yet is not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false; // no such process
  }
}

/** A killed process takes its leave when the kernel next comes by; one that was not killed fails the test by its time-out. */
export async function allGone(pids: readonly number[]): Promise<void> {
  while (pids.some(isAlive)) await new Promise((resolve) => setImmediate(resolve));
}

/** The processes that said `pid N` in a command's output. */
export const pidsIn = (text: string): number[] => [...text.matchAll(/pid (\d+)/g)].map((match) => Number(match[1]));
