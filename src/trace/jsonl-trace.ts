// One Trace on disk: the writer, the index that its commits grow, and readers that go by the index.
//
// A reader takes the index as it stands in one tick and opens the files itself, so appends go on beside it: what was
// acknowledged never moves, and nothing behind it is read.

import { basename, dirname, join } from "node:path";
import { Readable } from "node:stream";
import type { Clock } from "../clock.js";
import { loadIndex, saveIndex, traceFileName, traceFileNumber } from "./index-sidecar.js";
import { CHUNK_BYTES } from "./jsonl-reader.js";
import { type Committed, JsonlWriter } from "./jsonl-writer.js";
import { onDisk, StorageError } from "./storage-error.js";
import type { FsyncPolicy, TraceFs } from "./trace-fs.js";
import {
  addGroup,
  contextStartOf,
  countOf,
  emptyFileIndex,
  type FileIndex,
  isOwnMetaLine,
  locate,
} from "./trace-index.js";
import type { OrdinalRange, StoredRecord, Trace, TraceLog, TraceRecord } from "./trace-store.js";
import { asRecord, asStored, type Form, IndexMismatch, readWindow } from "./window-reader.js";

/** After this many new bytes the sidecar is written again, so that a crash costs the next opening a bounded scan. */
const SAVE_BYTES = 8 * 1024 * 1024;

const NOBODY_LEAVES = new AbortController().signal;

export interface JsonlTraceOptions {
  fs: TraceFs;
  clock: Clock;
  fsync: FsyncPolicy;
  log: TraceLog;
  sessionId: string;
  folder: string;
  /** Never empty. */
  files: FileIndex[];
  /** True for a Trace whose folder's own name is not forced to the disk yet. */
  isNew: boolean;
  /** Bytes that the sidecar does not tell of. */
  unsavedBytes: number;
  /** Called once, when closing begins. */
  onClosing(closed: Promise<void>): void;
}

export class JsonlTrace implements Trace {
  readonly sessionId: string;
  readonly #options: JsonlTraceOptions;
  readonly #writer: JsonlWriter;
  #files: FileIndex[];
  #count: number;
  #unsavedBytes: number;
  #closed: Promise<void> | undefined;

  constructor(options: JsonlTraceOptions) {
    const { folder, files } = options;
    const newest = files.at(-1)!;
    this.sessionId = options.sessionId;
    this.#options = options;
    this.#files = files;
    this.#count = countOf(files);
    this.#unsavedBytes = options.unsavedBytes;
    this.#writer = new JsonlWriter({
      ...options,
      path: join(folder, newest.name),
      length: newest.bytes,
      isOpen: newest.isOpen,
      unsyncedFolders: options.isNew ? [dirname(folder)] : [],
      onCommit: (committed) => this.#commit(committed),
      onIdle: () => this.#saveIndex(1),
    });
  }

  get count(): number {
    return this.#count;
  }

  get contextStart(): number {
    return contextStartOf(this.#files);
  }

  append(lines: readonly string[]): Promise<void> {
    return this.#writer.append(lines);
  }

  async rotate(firstLines: readonly string[]): Promise<void> {
    if (firstLines.length === 0) throw new Error("a trace file begins with a record");
    // Numbers are taken in the queue's order: a rotation that waits sees the file of the one before.
    await this.#writer.rotate(() => this.#nextPath(), firstLines);
  }

  read(range: OrdinalRange = {}): AsyncGenerator<readonly TraceRecord[], void, void> {
    return this.#read(range, asRecord);
  }

  readStored(
    range: OrdinalRange = {},
    gone: AbortSignal = NOBODY_LEAVES,
  ): AsyncGenerator<readonly StoredRecord[], void, void> {
    return this.#read(range, asStored, gone);
  }

  async *#read<T extends { ordinal: number }>(
    range: OrdinalRange,
    form: Form<T>,
    gone?: AbortSignal,
  ): AsyncGenerator<readonly T[], void, void> {
    const { fs, folder, log } = this.#options;
    const to = Math.min(range.to ?? this.#count, this.#count);
    let from = Math.max(0, range.from ?? 0);
    let wasRebuilt = false;
    while (from < to && !gone?.aborted) {
      try {
        for (const window of locate(this.#files, from, to)) {
          for await (const records of readWindow(fs, join(folder, window.file.name), window, form, gone)) {
            from = records.at(-1)!.ordinal + 1;
            yield records;
          }
        }
        return;
      } catch (error) {
        if (!(error instanceof IndexMismatch) || wasRebuilt) throw readFailure(error);
        log.warn({ err: error, folder }, "trace was changed by somebody else; scanning it again");
        await this.#rebuild();
        wasRebuilt = true;
      }
    }
  }

  openTrace(): Readable {
    const { fs, folder } = this.#options;
    const parts = this.#files.map(({ name, bytes, isOpen }) => ({ path: join(folder, name), bytes, isOpen }));
    return Readable.from(readParts(fs, parts), { objectMode: false, highWaterMark: CHUNK_BYTES });
  }

  close(): Promise<void> {
    return this.#end(() => this.#saveIndex(1));
  }

  /** As `close`, for a Trace whose files are gone. */
  discard(): Promise<void> {
    return this.#end(async () => {});
  }

  #end(lastWork: () => Promise<void>): Promise<void> {
    if (this.#closed === undefined) {
      void this.#writer.enqueue(lastWork).catch(() => {}); // Neither work rejects.
      this.#closed = this.#writer.close();
      this.#options.onClosing(this.#closed);
    }
    return this.#closed;
  }

  #nextPath(): string {
    return join(this.#options.folder, traceFileName(traceFileNumber(this.#files.at(-1)!.name) + 1));
  }

  #commit({ path, offset, lines, sizes, isNewFile }: Committed): void {
    if (isNewFile) this.#files.push(emptyFileIndex(basename(path)));
    const newest = this.#files.at(-1)!;
    const before = newest.bytes;
    addGroup(newest, offset, lines, sizes, isOwnMetaLine);
    this.#count += lines.length;
    this.#unsavedBytes += newest.bytes - before;
    if (this.#unsavedBytes < SAVE_BYTES) return;
    void this.#writer.enqueue(() => this.#saveIndex(SAVE_BYTES)).catch(() => {}); // Closed meanwhile: saved by `close`.
  }

  /** Only inside the writer's queue. Never throws. */
  async #saveIndex(minUnsavedBytes: number): Promise<void> {
    if (this.#unsavedBytes < minUnsavedBytes) return;
    this.#unsavedBytes = 0;
    const { fs, folder, fsync, log } = this.#options;
    await saveIndex(fs, folder, this.#files, fsync, log);
  }

  #rebuild(): Promise<void> {
    const { fs, folder, log } = this.#options;
    return this.#writer.enqueue(() =>
      onDisk("read_failed", "the trace could not be scanned", async () => {
        const { files, scannedBytes } = await loadIndex(fs, folder, log, { trustSidecar: false });
        const newest = files.at(-1);
        if (newest?.name !== this.#files.at(-1)!.name) throw new Error("the newest trace file is another one");
        this.#files = files;
        this.#count = countOf(files);
        this.#unsavedBytes = scannedBytes;
        this.#writer.resume(newest.bytes, newest.isOpen);
      }),
    );
  }
}

function readFailure(error: unknown): unknown {
  return error instanceof StorageError ? error : new StorageError("read_failed", "the trace could not be read", error);
}

async function* readParts(
  fs: TraceFs,
  parts: readonly { path: string; bytes: number; isOpen: boolean }[],
): AsyncGenerator<Buffer, void, void> {
  for (const [i, part] of parts.entries()) {
    const file = await fs.openToRead(part.path);
    try {
      for (let position = 0; position < part.bytes; ) {
        const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, part.bytes - position));
        const got = await file.read(buffer, position);
        if (got === 0) throw new StorageError("read_failed", `trace file ends at ${position}, expected ${part.bytes}`);
        position += got;
        yield buffer.subarray(0, got);
      }
    } finally {
      await file.close();
    }
    // Two records never share a line, also where a file lost its last line feed.
    if (part.isOpen && i < parts.length - 1) yield Buffer.from("\n");
  }
}
