// The one writer of a Trace. Everything that touches the files passes one serial queue.
//
// - A group of records is one write(2): a crash between two would glue the next record onto half of this one.
// - `length` is the end of what was acknowledged. Whatever goes wrong, the file is cut back to it before anything else
//   is written; where the cut fails too, the debt is remembered and the next call pays it first.
// - A record that stands at the end whole but without its line feed is kept (a prefix of a JSON object is never an
//   object, so it is not half of anything, and a power failure may have cost only the last byte of an acknowledged
//   one): the missing line feed goes out in front of the next group, in the same write.
// - The file is opened at the first write and let go after a while without one: Sessions are many, descriptors are not.

import { dirname } from "node:path";
import type { Clock } from "../clock.js";
import { Durability } from "./durability.js";
import { encodeLines } from "./encode-lines.js";
import { StorageError, storageError } from "./storage-error.js";
import type { FsyncPolicy, TraceFile, TraceFs } from "./trace-fs.js";
import type { TraceLog } from "./trace-store.js";

const IDLE_MS = 30_000;

/** What became durable, told in the same tick and before anything later is written. */
export interface Committed {
  readonly path: string;
  /** Where the first line of the group begins. */
  readonly offset: number;
  readonly lines: readonly string[];
  /** Bytes of each line, its line feed included. */
  readonly sizes: readonly number[];
  readonly isNewFile: boolean;
}

export interface JsonlWriterOptions {
  fs: TraceFs;
  clock: Clock;
  fsync: FsyncPolicy;
  log: TraceLog;
  path: string;
  /** The end of the last good record in the file. */
  length: number;
  /** True when that record has no line feed. */
  isOpen: boolean;
  /** Folders whose entries are not yet forced to the disk. */
  unsyncedFolders?: readonly string[];
  onCommit(committed: Committed): void;
  /** Takes its turn in the queue after a while without writes. Must not throw. */
  onIdle(): Promise<void>;
}

export class JsonlWriter {
  readonly #options: JsonlWriterOptions;
  readonly #durability: Durability;
  #path: string;
  #length: number;
  #isOpen: boolean;
  #file: TraceFile | undefined;
  /** False until the file is known to end at `#length`. */
  #isSound = false;
  /** A new file of a rotation that was refused, which must not be there when the next record is written. */
  #unwanted: string | undefined;
  #tail: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  #isClosed = false;
  #usedAt = 0;
  #cancelIdle: (() => void) | undefined;

  constructor(options: JsonlWriterOptions) {
    this.#options = options;
    this.#durability = new Durability({ ...options, folders: options.unsyncedFolders ?? [] });
    this.#path = options.path;
    this.#length = options.length;
    this.#isOpen = options.isOpen;
  }

  /** @see Trace.append */
  append(lines: readonly string[]): Promise<void> {
    if (lines.length === 0) return Promise.resolve();
    return this.enqueue(() => this.#append(lines));
  }

  /** Begins a new file with these lines; it gets its name, asked for when its turn has come, only when they are in it. */
  rotate(nextPath: () => string, lines: readonly string[]): Promise<void> {
    return this.enqueue(async () => {
      const path = nextPath();
      const { data, sizes, release } = encodeLines(lines, "");
      const begun = this.#begin(path, data).catch((error: unknown) => {
        throw this.#reported("a new trace file could not be begun", error);
      });
      const file = await begun.finally(release);
      await this.#letGo();
      this.#path = path;
      this.#file = file;
      this.#isSound = true;
      this.#length = data.length;
      this.#isOpen = false;
      this.#durability.named(dirname(path));
      this.#options.onCommit({ path, offset: 0, lines, sizes, isNewFile: true });
    });
  }

  /** Runs `work` when everything that was called before has ended; nothing is written meanwhile. */
  enqueue<T>(work: () => Promise<T>): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StorageError("closed", "the trace is closed"));
    this.#waiting++;
    const run = this.#tail.then(work);
    this.#tail = run.then(this.#done, this.#done); // The caller has the same rejection.
    return run;
  }

  readonly #done = (): void => {
    this.#waiting--;
    this.#watchIdle();
  };

  /** Goes on at another length, since the file was looked at again. Only inside `enqueue`. */
  resume(length: number, isOpen: boolean): void {
    this.#length = length;
    this.#isOpen = isOpen;
    this.#isSound = false;
  }

  /** Ends what was called before, forces it to the disk as the policy says, and closes the file. */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      void this.enqueue(() => this.#letGo()).catch(() => {}); // It never rejects.
      this.#isClosed = true;
    }
    await this.#tail;
    this.#cancelIdle?.();
    this.#durability.stop();
  }

  async #append(lines: readonly string[]): Promise<void> {
    const { data, sizes, release } = encodeLines(lines, this.#isOpen ? "\n" : "");
    const offset = this.#length + (this.#isOpen ? 1 : 0);
    try {
      await this.#write(data);
    } catch (error) {
      throw this.#reported("a trace record could not be written", error);
    } finally {
      release();
    }
    this.#length += data.length;
    this.#isOpen = false;
    this.#options.onCommit({ path: this.#path, offset, lines, sizes, isNewFile: false });
  }

  async #write(data: Buffer): Promise<void> {
    const isReady = this.#isSound && this.#unwanted === undefined;
    const file = (isReady ? this.#file : undefined) ?? (await this.#prepare());
    this.#isSound = false;
    try {
      let written = await file.write(data);
      if (written < data.length) {
        // Mostly a disk that is just full. Never the rest alone: the whole again, so that the system says why.
        await file.truncate(this.#length);
        written = await file.write(data);
      }
      mustBeWhole(written, data);
      const forced = this.#durability.wrote(this.#path, file);
      if (forced !== undefined) await forced;
      this.#isSound = true;
    } catch (error) {
      await this.#cutBack(file);
      throw error;
    }
  }

  /** @returns the open file, which ends at `#length`, with nothing unwanted beside it. */
  async #prepare(): Promise<TraceFile> {
    await this.#removeUnwanted();
    this.#file ??= await this.#options.fs.openToAppend(this.#path);
    if (this.#isSound) return this.#file;
    const { size } = await this.#file.stat();
    if (size < this.#length) throw new Error(`trace file has ${size} bytes, expected ${this.#length}`);
    if (size > this.#length) {
      await this.#file.truncate(this.#length);
      this.#options.log.warn({ path: this.#path, bytes: size - this.#length }, "cut a torn end off a trace");
    }
    this.#isSound = true;
    return this.#file;
  }

  async #removeUnwanted(): Promise<void> {
    if (this.#unwanted === undefined) return;
    const { fs, fsync } = this.#options;
    await fs.remove(this.#unwanted);
    if (fsync === "always") await fs.syncFolder(dirname(this.#unwanted));
    this.#unwanted = undefined;
  }

  async #cutBack(file: TraceFile): Promise<void> {
    try {
      await file.truncate(this.#length);
      this.#isSound = true;
    } catch (error) {
      this.#options.log.warn({ err: error, path: this.#path }, "torn end not cut yet; the next write tries again");
      await this.#close(file);
    }
  }

  async #begin(path: string, data: Buffer): Promise<TraceFile> {
    const { fs, fsync } = this.#options;
    const old = await this.#prepare();
    // Also what was cut off it: a refused record must not come back after a power failure in front of this file.
    if (fsync !== "off") await old.sync();
    const staged = `${path}.tmp`;
    let file: TraceFile | undefined;
    try {
      file = await fs.create(staged);
      mustBeWhole(await file.write(data), data);
      // The bytes before the name, so that a power failure never leaves a file that begins with nothing.
      if (fsync !== "off") await file.sync();
      // An error does not say whether the name was given, so from here on it must be taken back.
      this.#unwanted = path;
      await fs.rename(staged, path);
      if (fsync === "always") await fs.syncFolder(dirname(path));
      this.#unwanted = undefined;
      return file;
    } catch (error) {
      if (file !== undefined) await this.#close(file);
      await this.#takeBack(staged);
      throw error;
    }
  }

  async #takeBack(staged: string): Promise<void> {
    const { fs, log } = this.#options;
    try {
      await fs.remove(staged);
      await this.#removeUnwanted();
    } catch (error) {
      log.warn({ err: error, path: staged }, "an unfinished trace file stays; the next write removes it");
    }
  }

  async #letGo(): Promise<void> {
    await this.#durability.flush();
    if (this.#file !== undefined) await this.#close(this.#file);
  }

  async #close(file: TraceFile): Promise<void> {
    if (this.#file === file) {
      this.#file = undefined;
      this.#durability.closing();
    }
    try {
      await file.close();
    } catch (error) {
      this.#options.log.warn({ err: error, path: this.#path }, "closing a trace file failed");
    }
  }

  /** One timer, which is set again where the file was used meanwhile: a record must not cost one of its own. */
  #watchIdle(): void {
    if (this.#waiting > 0 || this.#file === undefined || this.#isClosed) return;
    this.#usedAt = this.#options.clock.monotonic();
    this.#cancelIdle ??= this.#options.clock.after(IDLE_MS, this.#letGoIfIdle);
  }

  readonly #letGoIfIdle = (): void => {
    this.#cancelIdle = undefined;
    // Whatever is under way sets the next timer.
    if (this.#waiting > 0 || this.#isClosed) return;
    const { clock, onIdle } = this.#options;
    const restMs = this.#usedAt + IDLE_MS - clock.monotonic();
    if (restMs > 0) {
      this.#cancelIdle = clock.after(Math.ceil(restMs), this.#letGoIfIdle);
      return;
    }
    void this.enqueue(async () => {
      await this.#letGo();
      await onIdle();
    }).catch(() => {}); // Neither rejects, and a closed writer has nothing to let go.
  };

  #reported(message: string, error: unknown): StorageError {
    this.#options.log.warn({ err: error, path: this.#path }, message);
    return storageError("write_failed", message, error);
  }
}

export function mustBeWhole(written: number, data: Uint8Array): void {
  if (written < data.length) throw new StorageError("write_failed", `wrote ${written} of ${data.length} bytes`);
}
