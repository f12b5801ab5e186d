// Idempotency keys that outlive the process: the journal in the data directory, and the Sessions that it is held
// against.

import type { Clock } from "../clock.js";
import type { Config } from "../config.js";
import { openKeyJournal } from "../session/key-journal.js";
import type { SessionHost } from "../session/types.js";
import { IdempotencyKeys } from "./idempotency.js";

export interface OpenKeys {
  keys: IdempotencyKeys;
  /** Once no request is answered any more. */
  close(): Promise<void>;
}

/** The keys of an earlier process are still to be recovered: that asks the Sessions. */
export async function openKeys(parts: {
  config: Pick<Config, "dataDir" | "fsync">;
  clock: Clock;
  log: { warn(details: object, message: string): void };
  host: Pick<SessionHost, "use">;
}): Promise<OpenKeys> {
  const { config, clock, log, host } = parts;
  const journal = await openKeyJournal({ dir: config.dataDir, fsync: config.fsync, clock, log });
  const keys = new IdempotencyKeys(clock, {
    durable: {
      journal,
      recall: ({ sessionId, owner, itemId }, answer) =>
        host.use(sessionId, owner, (session) => {
          if (itemId === undefined) return session?.view();
          return session?.holds(itemId) === true ? answer : undefined;
        }),
    },
  });
  return { keys, close: () => journal.close() };
}
