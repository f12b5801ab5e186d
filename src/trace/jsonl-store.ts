// All Traces below one data directory: `sessions/<sessionId>/trace-000001.jsonl` and so on.
//
// A Session's folder appears and disappears by one rename each, so that no crash leaves half of it to be listed. What
// was staged or taken away when the process ended begins with a dot and is left to the sweep of the next one. What goes
// with a Session elsewhere is made after such a folder and removed before it: so the next process knows of it.

import { join } from "node:path";
import type { Clock } from "../clock.js";
import { loadIndex } from "./index-sidecar.js";
import { JsonlTrace } from "./jsonl-trace.js";
import { writeNewTrace } from "./new-trace.js";
import { errnoOf, onDisk, StorageError } from "./storage-error.js";
import { diskFs, type FsyncPolicy, replaceFile, type TraceFs } from "./trace-fs.js";
import type { FileIndex } from "./trace-index.js";
import type { BesideFiles, Leftover, Trace, TraceLog, TraceStore } from "./trace-store.js";

// An id is a folder's name and comes from URLs: no separator, no dot in front.
const SESSION_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const PROBE = ".probe";
const LEFTOVER = /^\.(new|gone)-/;

export interface TraceStoreOptions {
  /** The data directory. */
  dir: string;
  fs?: TraceFs;
  fsync: FsyncPolicy;
  clock: Clock;
  log: TraceLog;
}

/** Makes the folders that are missing. */
export async function createTraceStore(options: TraceStoreOptions): Promise<TraceStore> {
  const store = new JsonlStore({ fs: diskFs, ...options });
  await store.prepare();
  return store;
}

class JsonlStore implements TraceStore {
  readonly #options: Required<TraceStoreOptions>;
  readonly #fs: TraceFs;
  readonly #root: string;
  /** One object for each open Trace: two writers on one file would tear each other's records. */
  readonly #open = new Map<string, Promise<JsonlTrace | undefined>>();
  readonly #closing = new Map<string, Promise<void>>();
  readonly #leftovers: string[] = [];
  /** One at a time: all who ask meanwhile have the same answer. */
  #probing: Promise<boolean> | undefined;

  constructor(options: Required<TraceStoreOptions>) {
    this.#options = options;
    this.#fs = options.fs;
    this.#root = join(options.dir, "sessions");
  }

  prepare(): Promise<void> {
    return onDisk("write_failed", "the data directory could not be made ready", async () => {
      await this.#fs.makeFolder(this.#options.dir);
      await this.#fs.makeFolder(this.#root);
      if (this.#options.fsync !== "off") await this.#fs.syncFolder(this.#options.dir);
      for (const name of await this.#fs.list(this.#root)) {
        // Now, as long as none is this process's own.
        if (LEFTOVER.test(name)) this.#leftovers.push(name);
        else if (name.startsWith(PROBE)) await this.#fs.remove(join(this.#root, name));
      }
    });
  }

  folder(sessionId: string): string {
    if (!SESSION_ID.test(sessionId)) throw new Error("not a session id");
    return join(this.#root, sessionId);
  }

  async create(
    sessionId: string,
    records: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
    beside: BesideFiles | (() => BesideFiles) = {},
    undo?: () => Promise<void>,
  ): Promise<Trace> {
    const folder = this.folder(sessionId);
    const staged = join(this.#root, `.new-${sessionId}`);
    const { fsync } = this.#options;
    if (await this.#exists(folder)) throw new Error("a session of that id exists");
    // An error does not say whether the rename was done, so after it the name is taken back as well.
    let wasNamed = false;
    try {
      await onDisk("write_failed", "a session could not be created", async () => {
        await this.#fs.makeFolder(staged);
        if (typeof beside !== "function") await this.#putBeside(staged, beside);
      });
      const files = await writeNewTrace(this.#fs, staged, records, fsync);
      await onDisk("write_failed", "a session could not be created", async () => {
        if (typeof beside === "function") await this.#putBeside(staged, beside());
        if (fsync === "always") await this.#fs.syncFolder(staged);
        wasNamed = true;
        await this.#fs.rename(staged, folder);
        if (fsync === "always") await this.#fs.syncFolder(this.#root);
      });
      const trace = this.#traceOf(sessionId, files, bytesOf(files), true);
      this.#open.set(sessionId, Promise.resolve(trace));
      return trace;
    } catch (error) {
      if (wasNamed) await this.#clear(folder);
      await undo?.();
      await this.#clear(staged);
      throw error;
    }
  }

  async #putBeside(folder: string, files: BesideFiles): Promise<void> {
    for (const [name, text] of Object.entries(files)) {
      await replaceFile(this.#fs, join(folder, name), text, this.#options.fsync);
    }
  }

  open(sessionId: string): Promise<Trace | undefined> {
    if (!SESSION_ID.test(sessionId)) return Promise.resolve(undefined);
    const known = this.#open.get(sessionId);
    if (known !== undefined) return known;
    const opening = this.#load(sessionId);
    this.#open.set(sessionId, opening);
    const forget = () => {
      if (this.#open.get(sessionId) === opening) this.#open.delete(sessionId);
    };
    opening.then((trace) => trace === undefined && forget(), forget);
    return opening;
  }

  async list(): Promise<string[]> {
    const names = await onDisk("read_failed", "sessions could not be listed", () => this.#fs.list(this.#root));
    return names.filter((name) => SESSION_ID.test(name));
  }

  async remove(sessionId: string, takeAlong?: () => Promise<void>): Promise<void> {
    const folder = this.folder(sessionId);
    const gone = join(this.#root, `.gone-${sessionId}`);
    await onDisk("write_failed", "a session could not be removed", async () => {
      await this.#fs.remove(gone);
      try {
        await this.#fs.rename(folder, gone);
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") throw error;
      }
      // Writes under way now go to files without a name, and none can make a new one below a folder that is not there.
      const trace = await this.#open.get(sessionId)?.catch(() => undefined);
      await trace?.discard();
      await takeAlong?.();
      await this.#fs.remove(gone);
      if (this.#options.fsync === "always") await this.#fs.syncFolder(this.#root);
    });
  }

  async *sweep(): AsyncGenerator<Leftover, void, void> {
    for (const name of this.#leftovers.splice(0)) {
      const folder = join(this.#root, name);
      yield { sessionId: name.replace(LEFTOVER, ""), folder };
      await this.#clear(folder);
    }
  }

  isWritable(): Promise<boolean> {
    this.#probing ??= this.#probe().finally(() => {
      this.#probing = undefined;
    });
    return this.#probing;
  }

  async #probe(): Promise<boolean> {
    const path = join(this.#root, PROBE);
    try {
      await replaceFile(this.#fs, path, "omnid\n", "off");
      return true;
    } catch (error) {
      this.#options.log.warn({ err: error, path: this.#root }, "the data directory cannot be written");
      return false;
    } finally {
      // A disk that refuses this too has said so; the next start removes it.
      for (const left of [path, `${path}.tmp`]) await this.#fs.remove(left).catch(() => {});
    }
  }

  async close(): Promise<void> {
    const traces = await Promise.allSettled(this.#open.values());
    await Promise.all(traces.map((trace) => (trace.status === "fulfilled" ? trace.value?.close() : undefined)));
    await Promise.all(this.#closing.values());
  }

  async #load(sessionId: string): Promise<JsonlTrace | undefined> {
    await this.#closing.get(sessionId);
    const { log } = this.#options;
    try {
      const { files, scannedBytes } = await onDisk("read_failed", "the trace could not be opened", () =>
        loadIndex(this.#fs, this.folder(sessionId), log, { trustSidecar: true }),
      );
      return files.length === 0 ? undefined : this.#traceOf(sessionId, files, scannedBytes, false);
    } catch (error) {
      const errno = errnoOf((error as Error).cause);
      if (errno === "ENOENT" || errno === "ENOTDIR") return undefined;
      throw error;
    }
  }

  #traceOf(sessionId: string, files: FileIndex[], unsavedBytes: number, isNew: boolean): JsonlTrace {
    return new JsonlTrace({
      ...this.#options,
      sessionId,
      folder: this.folder(sessionId),
      files,
      isNew,
      unsavedBytes,
      onClosing: (closed) => {
        this.#open.delete(sessionId);
        this.#closing.set(sessionId, closed);
        const forget = () => {
          if (this.#closing.get(sessionId) === closed) this.#closing.delete(sessionId);
        };
        closed.then(forget, forget);
      },
    });
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#fs.stat(path);
      return true;
    } catch (error) {
      if (errnoOf(error) === "ENOENT") return false;
      throw new StorageError("read_failed", "a session could not be created", error);
    }
  }

  async #clear(path: string): Promise<void> {
    try {
      await this.#fs.remove(path);
    } catch (error) {
      this.#options.log.warn({ err: error, path }, "what is left of a session that is none stays until the next start");
    }
  }
}

const bytesOf = (files: readonly FileIndex[]): number => files.reduce((sum, file) => sum + file.bytes, 0);
