// A shell command that leaves nothing behind. It runs in a session and process group of its own; when it ends, however
// it ends, the whole group is killed. Only what moved itself to another group (`setsid`, `set -m`) can escape.
//
// This process may be killed too, with no time to clean up. So a watcher sits in each group and reads a pipe that only
// this process holds open (the lifeline): its end means that we are gone, and the watcher kills the group. The watcher
// also keeps the group alive until we kill it, so its number cannot have passed to strangers.

import { type ChildProcess, spawn } from "node:child_process";
import { constants, tmpdir } from "node:os";
import { Readable } from "node:stream";
import type { Clock } from "../clock.js";
import { type OutputPipe, type OutputReader, openOutputPipe } from "./output-pipe.js";

/** From SIGTERM to SIGKILL. */
export const TERM_GRACE_MS = 2_000;
/** From SIGKILL to giving up on a process that the kernel cannot end (a dead network disk). */
const KILL_GRACE_MS = 1_000;
// Once the command is over and its group killed, what it wrote is in the pipe already. An escaped process may hold the
// pipe open, or go on writing, for ever: so the rest is what comes without such a pause, and no more than this. What is
// measured is how long we waited for it: a reader that takes its time loses nothing of what is in the pipe.
const REST_SILENCE_MS = 200;
const REST_WAIT_MS = 1_000;
const REST_BYTES = 1_048_576;

/**
 * Starts the watcher of the process group that runs this, and lets go of the lifeline, descriptor 3. It is forked twice,
 * so that what is started next has no child that it does not know, and ignores the signals that end a command. POSIX sh:
 * it must not read what a user configured for bash.
 */
export const START_WATCHER = `( ( trap '' HUP INT QUIT TERM; read -r _ <&3; kill -s KILL 0 ) </dev/null >/dev/null 2>&1 & )
exec 3<&-`;

const LAUNCHER = `exec 2>&1
${START_WATCHER}
exec bash -lc "$1"`;

export type CommandEnd =
  | { kind: "exited"; exitCode: number; signal?: NodeJS.Signals }
  | { kind: "not_started"; error: Error };

export interface CommandOptions {
  cmd: string;
  cwd: string;
  environment: Readonly<Record<string, string>>;
  clock: Clock;
}

/** Starts `bash -lc cmd`, its input closed, its output and errors in one pipe in order of arrival. */
export async function startCommand(options: CommandOptions): Promise<ProcessGroup> {
  const { cmd, cwd, environment, clock } = options;
  const pipe = await openOutputPipe(tmpdir());
  try {
    const output = pipe?.writeFd ?? "pipe";
    const child = spawn("sh", ["-c", LAUNCHER, "omnid", cmd], {
      cwd,
      env: { ...environment },
      detached: true,
      stdio: ["ignore", output, "ignore", "pipe"],
    });
    return new ProcessGroup(child, pipe?.reader ?? child.stdout ?? Readable.from([]), clock);
  } catch (error) {
    pipe?.reader.destroy();
    throw error;
  } finally {
    await closeWriter(pipe);
  }
}

/** A running command and its descendants. Own it: call `dispose` in a `finally`. */
export class ProcessGroup {
  /** Resolves when the command is over and its group was killed. Never rejects. */
  readonly ended: Promise<CommandEnd>;
  readonly #child: ChildProcess;
  readonly #reader: OutputReader;
  readonly #clock: Clock;
  #finish!: (end: CommandEnd) => void;
  #over = false;
  #killed = false;
  #restWaitMs = REST_WAIT_MS;
  #cancelEscalation: (() => void) | undefined;
  #wake: (() => void) | undefined;

  constructor(child: ChildProcess, reader: OutputReader, clock: Clock) {
    this.#child = child;
    this.#reader = reader;
    this.#clock = clock;
    // Where no descriptor was to be had the child has no streams at all, whatever its type says; `error` follows.
    const lifeline = (child.stdio as ChildProcess["stdio"] | undefined)?.[3];
    this.ended = new Promise((resolve) => {
      this.#finish = (end) => {
        if (this.#over) return;
        this.#over = true;
        this.#signalGroup("SIGKILL");
        this.#cancelEscalation?.();
        lifeline?.destroy();
        resolve(end);
        this.#wake?.();
      };
    });
    child.once("error", (error) => this.#finish({ kind: "not_started", error }));
    child.once("exit", (code, signal) => this.#finish(exitOf(code, signal)));
    // The watcher may be killed before we hang up.
    lifeline?.on("error", () => {});
    for (const event of ["readable", "end", "error", "close"] as const) reader.on(event, () => this.#wake?.());
  }

  /** The output as it comes, to its end, each piece good until the next is pulled. The command waits while nobody pulls. */
  async *output(): AsyncGenerator<Buffer, void, void> {
    let rest = REST_BYTES;
    while (rest > 0) {
      const bytes: Buffer | null = this.#reader.read();
      if (bytes !== null) {
        if (this.#over) rest -= bytes.length;
        yield bytes;
      } else if (this.#reader.readableEnded || this.#reader.destroyed || !(await this.#life())) {
        return;
      }
    }
  }

  /** Asks the group to end; after 2 s it is killed. When the command is over already, so is its output. */
  terminate(): void {
    if (this.#over) {
      this.#restWaitMs = 0;
      this.#wake?.();
      return;
    }
    if (this.#cancelEscalation !== undefined) return;
    this.#signalGroup("SIGTERM");
    // A stopped process takes no SIGTERM before it goes on.
    this.#signalGroup("SIGCONT");
    this.#cancelEscalation = this.#clock.after(TERM_GRACE_MS, () => this.#kill());
  }

  dispose(): void {
    if (!this.#over) this.#kill();
    this.#reader.destroy();
  }

  #kill(): void {
    if (this.#over || this.#killed) return;
    this.#killed = true;
    this.#cancelEscalation?.();
    this.#signalGroup("SIGKILL");
    this.#cancelEscalation = this.#clock.after(KILL_GRACE_MS, () => this.#finish(exitOf(null, "SIGKILL")));
  }

  #signalGroup(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // ESRCH: the group is gone, watcher and all. EPERM: what is left of it changed its user, and is out of reach.
    }
  }

  /** Waits for the reader. False when the command is over and its output silent, or waited for, long enough. */
  #life(): Promise<boolean> {
    if (this.#over && this.#restWaitMs <= 0) return Promise.resolve(false);
    return new Promise((resolve) => {
      const wasOver = this.#over;
      const since = this.#clock.monotonic();
      let cancel: (() => void) | undefined;
      const settle = (alive: boolean) => {
        this.#wake = undefined;
        cancel?.();
        if (wasOver) this.#restWaitMs -= this.#clock.monotonic() - since;
        resolve(alive);
      };
      if (wasOver) cancel = this.#clock.after(Math.min(REST_SILENCE_MS, this.#restWaitMs), () => settle(false));
      // Looks again: at bytes, at an end, or at the command being over, which starts the silence.
      this.#wake = () => settle(true);
    });
  }
}

async function closeWriter(pipe: OutputPipe | undefined): Promise<void> {
  try {
    await pipe?.closeWriter();
  } catch {
    // A descriptor that cannot be closed is not ours any more.
  }
}

function exitOf(code: number | null, signal: NodeJS.Signals | null): CommandEnd {
  if (signal === null) return { kind: "exited", exitCode: code ?? 0 };
  return { kind: "exited", exitCode: 128 + constants.signals[signal], signal };
}
