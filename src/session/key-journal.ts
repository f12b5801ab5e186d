// The journal of idempotency keys: `keys/000001.jsonl` and so on in the data directory. What a request with a key is
// about to become is a line before any of it is recorded, its answer another one behind it. The last line of a name
// counts; a file that has grown begins anew with those that do.
//
// Names and bodies are digests: a key that somebody took for a secret is nowhere to be read.

import { join } from "node:path";
import { z } from "zod";
import type { Clock } from "../clock.js";
import { toLine } from "../protocol/message.js";
import { readLines } from "../trace/jsonl-reader.js";
import { JsonlWriter } from "../trace/jsonl-writer.js";
import { errnoOf, onDisk } from "../trace/storage-error.js";
import { diskFs, type FsyncPolicy, type TraceFs } from "../trace/trace-fs.js";
import type { TraceLog } from "../trace/trace-store.js";

const FILE = /^(\d{6,})\.jsonl$/;
/** How long a key is kept after its answer. */
export const KEY_KEPT_MS = 24 * 60 * 60 * 1000;
/** Below this a file is not worth beginning anew. */
const MIN_BYTES = 1024 * 1024;

const promisedSchema = z.object({
  sessionId: z.string(),
  owner: z.string().nullable(),
  /** A Task or a steering message of that Session; absent for the Session itself. */
  itemId: z.string().optional(),
});
/** What a request becomes, if it was recorded. */
export type Promised = z.infer<typeof promisedSchema>;

const lineSchema = z.object({
  name: z.string(),
  body: z.string(),
  /** Milliseconds since 1970. */
  at: z.number(),
  promised: promisedSchema.optional(),
  /** With `promised` what will be answered once that is known to be recorded; else the answer. */
  answer: z.unknown().optional(),
  /** Nothing came of it: the next request with the key is the first. */
  isGone: z.literal(true).optional(),
});
export type KeyLine = z.infer<typeof lineSchema>;

export interface KeyJournal {
  /** What earlier processes left, the last line of each name, the oldest first. */
  readonly left: readonly KeyLine[];
  /**
   * Resolves when the line would survive a crash of this process; rejects with StorageError. `live` gives the lines that
   * count, this one among them, for a file that begins anew.
   */
  append(line: KeyLine, live: () => Iterable<KeyLine>): Promise<void>;
  close(): Promise<void>;
}

export interface KeyJournalOptions {
  /** The data directory. */
  dir: string;
  fs?: TraceFs;
  fsync: FsyncPolicy;
  clock: Clock;
  log: TraceLog;
}

/** Reads the newest file and removes those that it took the place of. @throws StorageError when it cannot be read. */
export async function openKeyJournal(options: KeyJournalOptions): Promise<KeyJournal> {
  const fs = orCreated(options.fs ?? diskFs);
  const folder = join(options.dir, "keys");
  return onDisk("read_failed", "the idempotency keys could not be read", async () => {
    await fs.makeFolder(folder);
    const names = await fs.list(folder);
    const numbers = names.flatMap((name) => FILE.exec(name)?.[1] ?? []).sort((a, b) => Number(a) - Number(b));
    const newest = numbers.at(-1);
    const found = newest === undefined ? undefined : await readFile(fs, join(folder, `${newest}.jsonl`));
    for (const name of names) if (name !== `${newest}.jsonl`) await removed(fs, join(folder, name), options.log);
    return new JournalFile(folder, Number(newest ?? 1), found ?? { left: [], length: 0, isOpen: false }, {
      ...options,
      fs,
    });
  });
}

interface Found {
  left: KeyLine[];
  /** The end of the last line that counts. */
  length: number;
  isOpen: boolean;
}

async function readFile(fs: TraceFs, path: string): Promise<Found> {
  const lines = new Map<string, KeyLine>();
  const found: Found = { left: [], length: 0, isOpen: false };
  const file = await fs.openToRead(path);
  try {
    const { size } = await file.stat();
    for await (const batch of readLines(file, 0, size)) {
      for (const { bytes, end, isOpen } of batch) {
        const line = parsed(bytes.toString());
        // A torn end was answered to nobody; a damaged line costs its own key.
        if (line === undefined && isOpen) continue;
        found.length = end;
        found.isOpen = isOpen;
        if (line === undefined) continue;
        lines.delete(line.name);
        if (line.isGone !== true) lines.set(line.name, line);
      }
    }
  } finally {
    await file.close();
  }
  return { ...found, left: [...lines.values()] };
}

function parsed(text: string): KeyLine | undefined {
  try {
    return lineSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined; // Damage is an expected content of a file.
  }
}

class JournalFile implements KeyJournal {
  readonly left: readonly KeyLine[];
  readonly #folder: string;
  readonly #fs: TraceFs;
  readonly #log: TraceLog;
  readonly #writer: JsonlWriter;
  #number: number;
  #bytes: number;
  /** From this size on the file begins anew. */
  #limit = MIN_BYTES;
  #isRotating = false;

  constructor(folder: string, number: number, found: Found, options: KeyJournalOptions & { fs: TraceFs }) {
    this.left = found.left;
    this.#folder = folder;
    this.#fs = options.fs;
    this.#log = options.log;
    this.#number = number;
    this.#bytes = found.length;
    this.#writer = new JsonlWriter({
      ...options,
      path: this.#path(),
      length: found.length,
      isOpen: found.isOpen,
      unsyncedFolders: [folder],
      onCommit: ({ sizes, isNewFile }) => {
        const written = sizes.reduce((sum, size) => sum + size, 0);
        this.#bytes = isNewFile ? written : this.#bytes + written;
      },
      onIdle: async () => {},
    });
  }

  async append(line: KeyLine, live: () => Iterable<KeyLine>): Promise<void> {
    await this.#writer.append([toLine(line)]);
    if (this.#bytes >= this.#limit && !this.#isRotating) await this.#beginAnew([...live()]);
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  /** Never rejects: the old file says the same, at greater length. */
  async #beginAnew(live: readonly KeyLine[]): Promise<void> {
    if (live.length === 0) return;
    this.#isRotating = true;
    const old = this.#path();
    this.#number += 1;
    try {
      await this.#writer.rotate(() => this.#path(), live.map(toLine));
      this.#limit = Math.max(MIN_BYTES, 2 * this.#bytes);
      await removed(this.#fs, old, this.#log);
    } catch (error) {
      this.#number -= 1;
      this.#limit = 2 * this.#bytes;
      this.#log.warn({ err: error }, "the idempotency keys could not be written anew");
    } finally {
      this.#isRotating = false;
    }
  }

  #path(): string {
    return join(this.#folder, `${String(this.#number).padStart(6, "0")}.jsonl`);
  }
}

async function removed(fs: TraceFs, path: string, log: TraceLog): Promise<void> {
  try {
    await fs.remove(path);
  } catch (error) {
    log.warn({ err: error, path }, "an old file of idempotency keys stays");
  }
}

/** The first file comes with the first key. */
const orCreated = (fs: TraceFs): TraceFs => ({
  openToRead: (path) => fs.openToRead(path),
  openToAppend: async (path) => {
    try {
      return await fs.openToAppend(path);
    } catch (error) {
      if (errnoOf(error) !== "ENOENT") throw error;
      return fs.create(path);
    }
  },
  create: (path) => fs.create(path),
  readFile: (path) => fs.readFile(path),
  stat: (path) => fs.stat(path),
  list: (folder) => fs.list(folder),
  makeFolder: (path) => fs.makeFolder(path),
  rename: (from, to) => fs.rename(from, to),
  remove: (path) => fs.remove(path),
  syncFolder: (path) => fs.syncFolder(path),
});
