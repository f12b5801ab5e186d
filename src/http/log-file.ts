// The log in a file. Lines are written in the background, those that come meanwhile together. A disk that is full or gone
// holds nothing up: lines that it does not take are dropped and counted, the next line is the next try, and the first
// one that goes through has in front of it how many are missing.

import { write, writeSync } from "node:fs";
import type { Clock } from "../clock.js";
import { droppedLine, type LogOutput, MAX_WAITING_BYTES, within } from "./log-output.js";

/** What `fs.write` is for this: it may write a part. */
export type WriteToFile = (
  fd: number,
  bytes: Uint8Array,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void;

/** A piece of the log that is written whole or not at all. */
interface Piece {
  bytes: Buffer;
  /** How many lines are missing if it is not written. */
  lines: number;
}

export class FileOutput implements LogOutput {
  readonly #fd: number;
  readonly #clock: Clock;
  readonly #write: WriteToFile;
  #waiting: Piece[] = [];
  #waitingBytes = 0;
  #isWriting = false;
  #dropped = 0;
  /** Why the last ones were dropped. */
  #reason = "";
  /** The end of a line whose beginning is in the file: it goes first whenever something goes again. */
  #torn: Buffer = Buffer.alloc(0);
  #onIdle: (() => void)[] = [];

  constructor(fd: number, clock: Clock, writeToFile: WriteToFile = write) {
    this.#fd = fd;
    this.#clock = clock;
    this.#write = writeToFile;
  }

  write(line: string): void {
    const bytes = Buffer.from(line);
    if (this.#waitingBytes + bytes.length > MAX_WAITING_BYTES) {
      this.#drop(1, "the disk is too slow");
      return;
    }
    this.#waiting.push({ bytes, lines: 1 });
    this.#waitingBytes += bytes.length;
    if (!this.#isWriting) this.#writeWaiting();
  }

  flushed(ms: number): Promise<void> {
    if (!this.#isWriting) return Promise.resolve();
    return within(ms, this.#clock, (done) => this.#onIdle.push(done));
  }

  /** Tries once to write what waits behind a write. For the exit of the process, which waits for nothing. */
  writeAtExit(): void {
    const pieces = this.#take();
    if (pieces.length === 0) return;
    try {
      writeSync(this.#fd, Buffer.concat(pieces.map(({ bytes }) => bytes)));
    } catch {
      // There is nowhere left to say so.
    }
  }

  #writeWaiting(): void {
    const pieces = this.#take();
    if (pieces.length === 0) {
      this.#isWriting = false;
      for (const done of this.#onIdle.splice(0)) done();
      return;
    }
    this.#isWriting = true;
    const torn = this.#torn.length;
    const bytes = Buffer.concat([this.#torn, ...pieces.map((piece) => piece.bytes)]);
    this.#writeAll(bytes, 0, (error, written) => {
      this.#torn = this.#torn.subarray(written);
      if (error) this.#dropUnwritten(pieces, written - torn, error);
      this.#writeWaiting();
    });
  }

  #writeAll(bytes: Buffer, from: number, done: (error: NodeJS.ErrnoException | null, written: number) => void): void {
    this.#write(this.#fd, bytes.subarray(from), (error, count) => {
      const written = from + (error ? 0 : count);
      if (error || written === bytes.length) done(error, written);
      else this.#writeAll(bytes, written, done);
    });
  }

  /** Drops all of `pieces` that is behind the first `written` bytes, but for the rest of one that is in the file. */
  #dropUnwritten(pieces: readonly Piece[], written: number, error: NodeJS.ErrnoException): void {
    let start = 0;
    for (const { bytes, lines } of pieces) {
      const end = start + bytes.length;
      if (start >= written) this.#drop(lines, error.code ?? error.message);
      else if (end > written) this.#torn = bytes.subarray(written - start);
      start = end;
    }
  }

  #drop(lines: number, reason: string): void {
    this.#dropped += lines;
    this.#reason = reason;
  }

  /** What waits, behind the line that says what is missing in front of it. */
  #take(): Piece[] {
    const pieces = this.#waiting;
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#dropped === 0 || pieces.length === 0) return pieces;
    const why = `standard error could not be written (${this.#reason})`;
    const told = { bytes: Buffer.from(droppedLine(this.#dropped, why, this.#clock)), lines: this.#dropped };
    this.#dropped = 0;
    return [told, ...pieces];
  }
}
