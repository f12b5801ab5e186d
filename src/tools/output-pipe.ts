// A kernel pipe for a command's output. Node gives a child a socket, and a socket cannot be opened by name: under one,
// `echo oops > /dev/stderr` fails. Node cannot make a pipe, so a FIFO is made, opened at both ends and unlinked at once.

import { execFile } from "node:child_process";
import { close, constants, fstat, open, unlink } from "node:fs";
import { type OnReadOpts, Socket, type SocketConstructorOpts } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const openFd = promisify(open);
const closeFd = promisify(close);
const statFd = promisify(fstat);
const unlinkPath = promisify(unlink);
const run = promisify(execFile);

/** One read of a command's output at most. */
const READ_BYTES = 65_536;

/** A command's output, pulled. Any Readable of bytes is one. */
export interface OutputReader {
  /** What came, good until the next call; null when nothing is here, then `readable` tells of more. */
  read(): Buffer | null;
  readonly readableEnded: boolean;
  readonly destroyed: boolean;
  on(event: "readable" | "end" | "error" | "close", listener: () => void): unknown;
  destroy(): unknown;
}

export interface OutputPipe {
  readonly reader: OutputReader;
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
    const reader = new PipeReader(readFd);
    return { reader, writeFd, closeWriter: () => closeFd(writeFd) };
  } catch {
    // No mkfifo, a full disk, a file system without FIFOs: the command still runs, on a socket.
    for (const fd of fds) await closeFd(fd).catch(() => {});
    return undefined;
  } finally {
    await unlinkPath(path).catch(() => {});
  }
}

/**
 * Reads into one buffer all the time, and only once what was in it has been used: memory made for each read lives outside
 * of the collector's heap, and a command that floods would fill hundreds of megabytes before it is collected.
 */
class PipeReader implements OutputReader {
  readonly #socket: Socket;
  #held: Buffer | null = null;
  #isStopped = false;
  #onReadable: () => void = () => {};

  constructor(fd: number) {
    const onread: OnReadOpts = {
      buffer: Buffer.allocUnsafeSlow(READ_BYTES),
      callback: (length, { buffer }) => {
        this.#held = Buffer.from(buffer, 0, length);
        this.#isStopped = true;
        this.#onReadable();
        return false;
      },
    };
    // The option is Node's own; only its types leave it out here.
    const options: SocketConstructorOpts & { onread: OnReadOpts } = { fd, readable: true, writable: false, onread };
    this.#socket = new Socket(options);
  }

  read(): Buffer | null {
    const held = this.#held;
    this.#held = null;
    if (held === null && this.#isStopped) {
      this.#isStopped = false;
      this.#socket.resume();
    }
    return held;
  }

  get readableEnded(): boolean {
    return this.#socket.readableEnded;
  }

  get destroyed(): boolean {
    return this.#socket.destroyed;
  }

  on(event: "readable" | "end" | "error" | "close", listener: () => void): void {
    if (event === "readable") this.#onReadable = listener;
    else this.#socket.on(event, listener);
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
