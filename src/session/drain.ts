// The end of all Sessions in memory, when the server stops.

import type { Held } from "./room.js";

/** Ends every stream and interrupts what runs, but for what only waits for a person. Resolves when it has ended. */
export async function drainSessions(held: readonly Held[], farewell: string): Promise<void> {
  const ends = held.map(({ session }) => {
    if (session === undefined) return undefined;
    session.endStreams(farewell);
    if (session.waitsForPerson) return undefined;
    session.stop("shutdown");
    return session.settled();
  });
  await Promise.all(ends);
}
