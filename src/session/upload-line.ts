// A line of an upload that has not ended yet. Its client decides when it does, and may never: so little of it is in
// memory until then, and the rest in a file without a name. Whole lines that are long are in memory one at a time in the
// whole process. Nobody waits for a client in that turn: the line is here, and what is done with it is the disk's work.

import { type FileHandle, open, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "../trace/make-folder.js";
import { onDisk, StorageError } from "../trace/storage-error.js";
import { Turns } from "../trace/turns.js";

/** What is in memory of a line that has not ended. */
const HELD_BYTES = 1024 * 1024;
const FIRST_BYTES = 4096;

const longLines = new Turns();

export interface WholeLine {
  /** Undefined for one that is longer than the limit. */
  readonly bytes: Buffer | undefined;
  /** To be called once the bytes are not wanted any more. */
  readonly done: () => void;
}

export class UploadLine {
  size = 0;
  readonly #maxBytes: number;
  readonly #path: string;
  /** The end of what came, copied: thousands of small pieces would weigh more than their bytes. */
  #held: Buffer = Buffer.alloc(0);
  #used = 0;
  /** What came before that. */
  #file: FileHandle | undefined;

  /** @param path where a file can be made for a moment; its folder is made if need be. */
  constructor(maxBytes: number, path: string) {
    this.#maxBytes = maxBytes;
    this.#path = path;
  }

  /** @throws StorageError */
  async add(piece: Uint8Array): Promise<void> {
    this.size += piece.length;
    if (this.size > this.#maxBytes) return this.close();
    for (let from = 0; from < piece.length; ) {
      if (this.#used === HELD_BYTES) await this.#putAway();
      const part = piece.subarray(from, from + HELD_BYTES - this.#used);
      this.#makeRoom(part.length);
      this.#held.set(part, this.#used);
      this.#used += part.length;
      from += part.length;
    }
  }

  /** The whole line; the next piece begins another one. @throws StorageError */
  async finish(): Promise<WholeLine> {
    const done = this.#file === undefined ? () => {} : await longLines.turn();
    try {
      return { bytes: this.size > this.#maxBytes ? undefined : await this.#whole(), done };
    } catch (error) {
      done();
      throw error;
    } finally {
      await this.close();
      this.size = 0;
    }
  }

  /** Lets go of what is kept of it. */
  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    this.#used = 0;
    this.#held = Buffer.alloc(0);
    await file?.close();
  }

  #makeRoom(bytes: number): void {
    const needed = this.#used + bytes;
    if (needed <= this.#held.length) return;
    const larger = Buffer.allocUnsafe(Math.min(HELD_BYTES, Math.max(FIRST_BYTES, needed, 2 * this.#held.length)));
    this.#held.copy(larger, 0, 0, this.#used);
    this.#held = larger;
  }

  #putAway(): Promise<void> {
    return onDisk("write_failed", "a long line could not be put away", async () => {
      this.#file ??= await openNameless(this.#path);
      await this.#file.appendFile(this.#held);
      this.#used = 0;
    });
  }

  async #whole(): Promise<Buffer> {
    if (this.#file === undefined) return Buffer.from(this.#held.subarray(0, this.#used));
    const file = this.#file;
    const bytes = Buffer.allocUnsafe(this.size);
    const end = this.size - this.#used;
    for (let at = 0; at < end; ) {
      const read = () => file.read(bytes, at, end - at, at);
      const { bytesRead } = await onDisk("read_failed", "a long line could not be read again", read);
      if (bytesRead === 0) throw new StorageError("read_failed", `a long line ends at ${at}, expected ${end}`);
      at += bytesRead;
    }
    this.#held.copy(bytes, end, 0, this.#used);
    return bytes;
  }
}

/** A file that is gone with its handle, also when this process is killed. */
async function openNameless(path: string): Promise<FileHandle> {
  await makeFolder(dirname(path));
  const file = await open(path, "wx+", 0o600);
  try {
    await unlink(path);
    return file;
  } catch (error) {
    await file.close();
    throw error;
  }
}
