// Where the log goes must hold nothing up, neither the server nor its end. On a stream, a pipe above all, the reader may
// stop reading: what goes there is written as the pipe takes it, waits up to a bound, and is dropped and counted above it.
// A reader that is gone is no reason to end.

import type { Writable } from "node:stream";
import type { DestinationStream } from "pino";
import type { Clock } from "../clock.js";

export interface LogOutput extends DestinationStream {
  /** Resolves when everything is written, or can not be, or after `ms`. */
  flushed(ms: number): Promise<void>;
}

/** What may wait for a reader, or for a disk. */
export const MAX_WAITING_BYTES = 1024 * 1024;

/** The log on a stream that may not take it. Lines are written whole or not at all. */
export function streamOutput(stream: Writable, clock: Clock): LogOutput {
  let dropped = 0;
  let isGone = false;
  /** Writes whose end has not been heard of; `drain` tells of a full queue only. */
  let pending = 0;
  let onDone = () => {};
  const settled = () => {
    pending -= 1;
    if (pending === 0) onDone();
  };
  const write = (line: string) => {
    pending += 1;
    stream.write(line, settled);
  };
  stream.on("error", () => {
    isGone = true;
    onDone();
  });
  return {
    write(line) {
      if (isGone) return;
      if (stream.writableLength > MAX_WAITING_BYTES) {
        dropped += 1;
        return;
      }
      if (dropped > 0) write(droppedLine(dropped, "nobody read standard error", clock));
      dropped = 0;
      write(line);
    },
    flushed: (ms) =>
      isGone || pending === 0
        ? Promise.resolve()
        : within(ms, clock, (done) => {
            const before = onDone;
            onDone = () => {
              before();
              done();
            };
          }),
  };
}

/** The line that says how many are missing, and why. */
export function droppedLine(count: number, why: string, clock: Clock): string {
  const msg = `${count} lines of the log were dropped: ${why}`;
  return `${JSON.stringify({ level: 40, time: clock.iso(), msg })}\n`;
}

/** Resolves when `begin` calls `done`, or after `ms`. */
export function within(ms: number, clock: Clock, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    begin(() => {
      cancel();
      resolve();
    });
  });
}
