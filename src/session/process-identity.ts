// Who a process is, so that another can tell later whether that very process still lives: a pid alone is reused.

import { readFile, readlink } from "node:fs/promises";
import { uptime } from "node:os";

export interface ProcessIdentity {
  readonly pid: number;
  /** When the process started, in the kernel's ticks since boot; null where the system does not say. */
  readonly startedAtTicks: string | null;
  /** Which boot of the machine this is; null where the system does not say. */
  readonly bootId: string | null;
  /** Whose pids these are; null where the system does not say. Left out by earlier versions. */
  readonly pidNamespace?: string | null | undefined;
}

/** @returns this process. */
export async function ownIdentity(): Promise<ProcessIdentity> {
  return {
    pid: process.pid,
    startedAtTicks: await startedAtTicks(process.pid),
    bootId: await bootId(),
    pidNamespace: await pidNamespace(),
  };
}

/** Whether its pid means nothing here: it is a process of another container. In doubt no. */
export async function isElsewhere({ pidNamespace: its }: ProcessIdentity): Promise<boolean> {
  const ours = await pidNamespace();
  return ours !== null && typeof its === "string" && its !== ours;
}

/**
 * Whether a process that was running at `sinceMs` still is. In doubt yes.
 * Processes that cannot see each other are beyond it: other machines on one shared folder, other containers.
 */
export async function isAlive(identity: ProcessIdentity, sinceMs: number, nowMs: number): Promise<boolean> {
  const boot = await bootId();
  if (boot !== null && identity.bootId !== null) {
    if (boot !== identity.bootId) return false;
  } else if (sinceMs < nowMs - uptime() * 1000 - BOOT_SLACK_MS) {
    return false; // Older than this boot of the machine.
  }
  if (!isRunning(identity.pid)) return false;
  if (identity.startedAtTicks === null) return true;
  const ticks = await startedAtTicks(identity.pid);
  return ticks === null || ticks === identity.startedAtTicks;
}

/** How far the wall clock may have been set since boot. */
const BOOT_SLACK_MS = 60_000;

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM"; // Somebody else's process lives too.
  }
}

const pidNamespace = (): Promise<string | null> => readlink("/proc/self/ns/pid").catch(() => null);

const bootId = (): Promise<string | null> => readOrNull("/proc/sys/kernel/random/boot_id");

async function startedAtTicks(pid: number): Promise<string | null> {
  const stat = await readOrNull(`/proc/${pid}/stat`);
  if (stat === null) return null;
  // The second field is the command's name in parentheses and may hold anything; the 22nd is the start time.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie holds nothing any more: it has ended and only waits for its parent to notice.
  return fields[0] === "Z" || fields[0] === "X" ? "ended" : (fields[19] ?? null);
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return (await readFile(path, "utf8")).trim();
  } catch {
    return null; // No /proc here, or the process is gone.
  }
}
