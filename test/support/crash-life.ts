// The life of a process that ends at one call that changes its disk, and what is left of it.

import type { LLMClient } from "../../src/engine/ports.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { type Fault, MemoryFs } from "../trace/support.js";
import { Dead, faultAt, hurriedClock } from "./crash-world.js";
import { hostOn, type ListReader } from "./sessions.js";

/** The data directory on a disk in memory. */
export const DATA = "/data";
/** The number of a change that never comes. */
export const NEVER = -1;

export interface Life<T> {
  /** What a kill leaves of it. */
  disk: MemoryFs;
  told: T;
  /** The call at which it ended; empty when it lived to its end. */
  op: string;
  /** The calls that changed the disk. */
  changes: number;
}

/**
 * A process that ends at the change `at` of its disk.
 * @param live what goes on in it; `dead` rejects at that change, and nobody hears anything from there on
 */
export async function lifeUntil<T extends { reader: ListReader }>(
  at: number,
  fault: Fault,
  {
    model,
    told,
    live,
  }: {
    model: LLMClient;
    told: T;
    live: (host: SessionManager, dead: Promise<never>, isDead: () => boolean) => Promise<void>;
  },
): Promise<Life<T>> {
  const disk = new MemoryFs();
  let die: (error: Dead) => void = () => {};
  const dead = new Promise<never>((_, reject) => {
    die = reject;
  });
  dead.catch(() => {});
  let op = "";
  const changes = faultAt(disk, at, fault, (name) => {
    op = name;
    told.reader.write = () => true;
    die(new Dead());
  });
  const host = await hostOn({ model, fs: disk, dataDir: DATA, clock: hurriedClock() }).catch(() => undefined);
  if (host !== undefined) {
    await live(host, dead, () => op !== "").catch((error) => {
      if (!(error instanceof Dead)) throw error;
    });
  }
  const life = { disk: disk.afterKill(), told, op, changes: changes() };
  await host?.drain(0);
  return life;
}
