// The disk as Traces need it: few calls, each of which may fail. Everything that is written below the data directory
// by `trace` and `session` passes here, so that a test can fail any one call or end the process between two.
//
// Files are 0600 and folders 0700 whatever the umask, hence the chmod after each creation.

import { constants, readFile, write } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { makeFolder } from "./make-folder.js";
import { StorageError } from "./storage-error.js";

/** When written bytes are forced to the disk: with each record, once a second, or when the system likes. */
export type FsyncPolicy = "always" | "interval" | "off";

export interface FileStat {
  size: number;
  mtimeMs: number;
}

export interface TraceFile {
  /** One write(2) at the end of the file. @returns the number of bytes taken, which may be fewer than given. */
  write(bytes: Uint8Array): Promise<number>;
  /** @returns the number of bytes read into `into`, 0 at the end of the file. */
  read(into: Uint8Array, position: number): Promise<number>;
  truncate(length: number): Promise<void>;
  sync(): Promise<void>;
  stat(): Promise<FileStat>;
  close(): Promise<void>;
}

export interface TraceFs {
  openToRead(path: string): Promise<TraceFile>;
  /** Opens a file that exists: nothing that was deleted comes back because somebody still wanted to write. */
  openToAppend(path: string): Promise<TraceFile>;
  /** A new file, or an emptied one. */
  create(path: string): Promise<TraceFile>;
  readFile(path: string): Promise<Buffer>;
  stat(path: string): Promise<FileStat>;
  /** The names in a folder, in no order. */
  list(folder: string): Promise<string[]>;
  /** Makes the folder and the missing ones above it; one that is there is left as it is. */
  makeFolder(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /** Removes a file or a folder with all in it; one that is not there is no error. */
  remove(path: string): Promise<void>;
  /** Forces a folder's entries (creations, renames) to the disk. */
  syncFolder(path: string): Promise<void>;
}

const APPEND = constants.O_RDWR | constants.O_APPEND;
const CREATE = APPEND | constants.O_CREAT | constants.O_TRUNC;

/** The machine's own file system. */
export const diskFs: TraceFs = {
  openToRead: async (path) => fileOf(await open(path, "r")),
  openToAppend: async (path) => fileOf(await open(path, APPEND)),
  create: async (path) => {
    const handle = await open(path, CREATE, 0o600);
    try {
      await handle.chmod(0o600);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return fileOf(handle);
  },
  // Half the time of the one in fs/promises, which counts when the records of all Sessions are read at start.
  readFile: promisify(readFile),
  stat: (path) => stat(path),
  list: (folder) => readdir(folder),
  makeFolder,
  rename: (from, to) => rename(from, to),
  // Retries: a command that is just being killed may still put a scratch file into the folder.
  remove: (path) => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 20 }),
  syncFolder: async (path) => {
    const handle = await open(path, "r");
    try {
      await handle.sync();
    } finally {
      await handle.close();
    }
  },
};

/**
 * Puts `text` in the place of a file in one step: after a crash at any instant it is the old text or the new one. The
 * bytes are forced to the disk before they get the name (a rename may overtake them and leave an empty file after a
 * power failure), the name only with `always`.
 */
export async function replaceFile(fs: TraceFs, path: string, text: string, fsync: FsyncPolicy): Promise<void> {
  const staged = `${path}.tmp`;
  const bytes = Buffer.from(text);
  const file = await fs.create(staged);
  try {
    const written = await file.write(bytes);
    if (written < bytes.length) throw new StorageError("write_failed", `wrote ${written} of ${bytes.length} bytes`);
    if (fsync !== "off") await file.sync();
  } finally {
    await file.close();
  }
  await fs.rename(staged, path);
  if (fsync === "always") await fs.syncFolder(dirname(path));
}

function fileOf(handle: FileHandle): TraceFile {
  return {
    // By the number, at two thirds of the cost: nobody closes a file while it is written to.
    write: (bytes) =>
      new Promise((resolve, reject) => {
        write(handle.fd, bytes, 0, bytes.length, null, (error, written) => {
          if (error === null) resolve(written);
          else reject(error);
        });
      }),
    read: async (into, position) => (await handle.read(into, 0, into.length, position)).bytesRead,
    truncate: (length) => handle.truncate(length),
    sync: () => handle.sync(),
    stat: () => handle.stat(),
    close: () => handle.close(),
  };
}
