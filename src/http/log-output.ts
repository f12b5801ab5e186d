// Where the log goes: standard error. A reader that stops reading must hold nothing up, neither the server nor its end:
// what goes to a pipe is written as the pipe takes it, waits up to a bound, and is dropped and counted above it. A reader
// that is gone is no reason to end. Files never make anybody wait; they are written in the background.

import { fstatSync } from "node:fs";
import type { Writable } from "node:stream";
import pino, { type DestinationStream } from "pino";
import type { Clock } from "../clock.js";

export interface LogOutput extends DestinationStream {
  /** Resolves when everything is written, or after `ms`. */
  flushed(ms: number): Promise<void>;
}

/** What may wait for a reader. */
const MAX_WAITING_BYTES = 1024 * 1024;
const STANDARD_ERROR = 2;

let ofProcess: LogOutput | undefined;

/**
 * The one of the process, however often it is asked for.
 * @param clock stamps the line that says how many were dropped
 */
export function standardError(clock: Clock): LogOutput {
  ofProcess ??= open(clock);
  return ofProcess;
}

function open(clock: Clock): LogOutput {
  if (!isFile(STANDARD_ERROR)) return streamOutput(process.stderr, clock);
  const file = pino.destination({ dest: STANDARD_ERROR, sync: false });
  return {
    write: (line) => void file.write(line),
    flushed: (ms) => within(ms, clock, (done) => file.flush(done)),
  };
}

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
      if (dropped > 0) write(droppedLine(dropped, clock));
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

function droppedLine(count: number, clock: Clock): string {
  const msg = `${count} lines of the log were dropped: nobody read standard error`;
  return `${JSON.stringify({ level: 40, time: clock.iso(), msg })}\n`;
}

function within(ms: number, clock: Clock, begin: (done: () => void) => void): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(ms, resolve);
    begin(() => {
      cancel();
      resolve();
    });
  });
}

function isFile(fd: number): boolean {
  try {
    return fstatSync(fd).isFile();
  } catch {
    return false; // Closed: writing to it says so, and that is heard.
  }
}
