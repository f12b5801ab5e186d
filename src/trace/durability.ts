// What was written but is not yet forced to the disk, and when it will be. With `interval` that happens beside the
// writer's queue, at most a second after the first unforced byte: no record waits for the ones before it to be forced.

import type { Clock } from "../clock.js";
import type { FsyncPolicy, TraceFile, TraceFs } from "./trace-fs.js";
import type { TraceLog } from "./trace-store.js";

const INTERVAL_MS = 1000;

export class Durability {
  readonly #fs: TraceFs;
  readonly #clock: Clock;
  readonly #log: TraceLog;
  readonly #policy: FsyncPolicy;
  /** Folders whose entries are not forced yet. */
  readonly #folders: Set<string>;
  #file: TraceFile | undefined;
  #isDirty = false;
  #running: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;

  constructor(options: { fs: TraceFs; clock: Clock; log: TraceLog; fsync: FsyncPolicy; folders: readonly string[] }) {
    this.#fs = options.fs;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#policy = options.fsync;
    this.#folders = new Set(options.folders);
    if (this.#folders.size > 0) this.#soil();
  }

  /**
   * `file` took bytes. With `always` there is something to wait for: it resolves when they are on the disk, and rejects
   * when that failed.
   */
  wrote(file: TraceFile): Promise<void> | undefined {
    if (this.#policy === "always") return file.sync();
    this.#file = file;
    this.#soil();
    return undefined;
  }

  /** A name was given in `folder`. With `always` whoever gave it has forced it. */
  named(folder: string): void {
    if (this.#policy !== "interval") return;
    this.#folders.add(folder);
    this.#soil();
  }

  /** Forces what is due, before `file` is closed. Never throws: all of it was acknowledged under a policy that allows the loss. */
  async release(): Promise<void> {
    await this.#flush();
    this.#file = undefined;
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  #soil(): void {
    if (this.#policy !== "interval") return;
    this.#isDirty = true;
    this.#cancelTimer ??= this.#clock.after(INTERVAL_MS, () => {
      this.#cancelTimer = undefined;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.stop();
    if (!this.#isDirty) return;
    this.#isDirty = false;
    this.#running = this.#force().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #force(): Promise<void> {
    try {
      await this.#file?.sync();
      for (const folder of this.#folders) {
        await this.#fs.syncFolder(folder);
        this.#folders.delete(folder);
      }
    } catch (error) {
      this.#log.warn({ err: error }, "forcing a trace to the disk failed; trying again");
      this.#soil();
    }
  }
}
