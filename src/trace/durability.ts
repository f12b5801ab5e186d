// What was written but is not yet forced to the disk, and when it will be. With `interval` that happens beside the
// writer's queue, at most a second after the first unforced byte: no record waits for the ones before it to be forced.
// What the disk refuses to force is tried again each second, whatever has become of the handle that wrote it.

import type { Clock } from "../clock.js";
import { errnoOf } from "./storage-error.js";
import type { FsyncPolicy, TraceFile, TraceFs } from "./trace-fs.js";
import type { TraceLog } from "./trace-store.js";

const INTERVAL_MS = 1000;

export class Durability {
  readonly #fs: TraceFs;
  readonly #clock: Clock;
  readonly #log: TraceLog;
  readonly #policy: FsyncPolicy;
  /** Paths of files with bytes that are not forced yet, each with the handle that wrote them while it is open. */
  readonly #files = new Map<string, TraceFile | undefined>();
  /** Folders whose entries are not forced yet. */
  readonly #folders: Set<string>;
  #running: Promise<void> | undefined;
  #cancelTimer: (() => void) | undefined;
  /** Since a failure that was told: a disk that goes on failing does not fill the log. */
  #isFailing = false;

  constructor(options: { fs: TraceFs; clock: Clock; log: TraceLog; fsync: FsyncPolicy; folders: readonly string[] }) {
    this.#fs = options.fs;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#policy = options.fsync;
    this.#folders = new Set(options.fsync === "interval" ? options.folders : []);
    this.#watch();
  }

  /**
   * The file took bytes. With `always` there is something to wait for: it resolves when they are on the disk, and rejects
   * when that failed.
   */
  wrote(path: string, file: TraceFile): Promise<void> | undefined {
    if (this.#policy === "always") return file.sync();
    if (this.#policy === "off") return undefined;
    this.#files.set(path, file);
    this.#watch();
    return undefined;
  }

  /** A name was given in `folder`. With `always` whoever gave it has forced it. */
  named(folder: string): void {
    if (this.#policy !== "interval") return;
    this.#folders.add(folder);
    this.#watch();
  }

  /** The handle that wrote is about to be closed: what is still due is forced by the name. */
  closing(): void {
    for (const path of this.#files.keys()) this.#files.set(path, undefined);
  }

  /** Forces what is due. Never throws: all of it was acknowledged under a policy that allows the loss. */
  async flush(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
    this.stop();
    if (!this.#isDue) return;
    this.#running = this.#force().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  stop(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
  }

  get #isDue(): boolean {
    return this.#files.size > 0 || this.#folders.size > 0;
  }

  #watch(): void {
    if (!this.#isDue) return;
    this.#cancelTimer ??= this.#clock.after(INTERVAL_MS, () => {
      this.#cancelTimer = undefined;
      void this.flush();
    });
  }

  async #force(): Promise<void> {
    try {
      for (const [path, file] of [...this.#files]) await this.#forceFile(path, file);
      for (const folder of [...this.#folders]) await this.#forceFolder(folder);
      if (this.#isFailing) this.#log.warn({}, "what a trace was owed is forced to the disk now");
      this.#isFailing = false;
    } catch (error) {
      if (!this.#isFailing)
        this.#log.warn({ err: error }, "forcing a trace to the disk failed; tried again each second");
      this.#isFailing = true;
      this.#watch();
    }
  }

  async #forceFile(path: string, file: TraceFile | undefined): Promise<void> {
    // What is written from here on is due anew.
    this.#files.delete(path);
    try {
      if (file !== undefined) await file.sync();
      else await this.#forceByName(path);
    } catch (error) {
      if (!this.#files.has(path)) this.#files.set(path, undefined);
      throw error;
    }
  }

  async #forceByName(path: string): Promise<void> {
    const file = await unlessGone(this.#fs.openToRead(path));
    if (file === undefined) return;
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }

  async #forceFolder(folder: string): Promise<void> {
    this.#folders.delete(folder);
    try {
      await unlessGone(this.#fs.syncFolder(folder));
    } catch (error) {
      this.#folders.add(folder);
      throw error;
    }
  }
}

/** @returns undefined where it was deleted: nobody is owed it any more. */
async function unlessGone<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw error;
  }
}
