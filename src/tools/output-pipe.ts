// A kernel pipe for a command's output. Node gives a child a socket, and a socket cannot be opened by name: under one,
// `echo oops > /dev/stderr` fails. Node cannot make a pipe, so a FIFO is made, opened at both ends and unlinked at once.

import { execFile } from "node:child_process";
import { close, constants, fstat, open, unlink } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { promisify } from "node:util";

const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat);
const unlinkPath = promisify(unlink);
const run = promisify(execFile);

export interface OutputPipe {
  readonly reader: Readable;
  /** For the child's stdio. Close it here once the child has it, or the reader never ends. */
  readonly writeFd: number;
  closeWriter(): Promise<void>;
}

let made = 0;

/** @returns a pipe, or undefined where FIFOs cannot be made; the caller then takes what Node gives. */
export async function openOutputPipe(folder: string): Promise<OutputPipe | undefined> {
  const path = join(folder, `output-${process.pid}-${++made}`);
  const fds: number[] = [];
  try {
    // What a process of the same number left behind in a crash.
    await unlinkPath(path).catch(() => {});
    await run("mkfifo", ["-m", "600", path]);
    // The read end first and without waiting, else each end would wait for the other.
    fds.push(await openFd(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW));
    fds.push(await openFd(path, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW));
    const [readFd, writeFd] = fds as [number, number];
    if (!(await statFd(readFd)).isFIFO() || !(await statFd(writeFd)).isFIFO()) throw new Error(`${path} is no FIFO`);
    const reader = new Socket({ fd: readFd, readable: true, writable: false });
    return { reader, writeFd, closeWriter: () => closeFd(writeFd) };
  } catch {
    // No mkfifo, a full disk, a file system without FIFOs: the command still runs, on a socket.
    for (const fd of fds) await closeFd(fd).catch(() => {});
    return undefined;
  } finally {
    await unlinkPath(path).catch(() => {});
  }
}
