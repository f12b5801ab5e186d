// A Trace that tells how long its writes take, as those who wait for them see it: the time in the queue is part of it.

import type { RecordSink } from "./journal.js";

/** @param onWrite gets the time in ms of each write that was done. Must not throw. */
export function timedSink(sink: RecordSink, clock: { monotonic(): number }, onWrite: (ms: number) => void): RecordSink {
  const timed = async (write: Promise<void>, since: number): Promise<void> => {
    await write;
    onWrite(clock.monotonic() - since);
  };
  return {
    append: (lines) => {
      const since = clock.monotonic();
      return timed(sink.append(lines), since);
    },
    rotate: (lines) => {
      const since = clock.monotonic();
      return timed(sink.rotate(lines), since);
    },
  };
}
