// The Workspace rule: file tools stay inside one folder, whatever the path says and whatever its links do.
//
// A path is resolved to where it really leads, that place is checked, and then it is walked to again, folder by folder,
// through open descriptors that follow no link: a link that was swapped in between check and use is met as a link and
// refused. On Linux `/proc/self/fd/N/name` is `openat`; elsewhere the folder's real path is compared again after the
// walk, which leaves a window of microseconds. A hard link to an outside file cannot be told from a file.

import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, mkdir, open, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { explain, isErrno } from "./file-errors.js";
import { ToolFailure } from "./tool.js";

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;
const IS_LINUX = process.platform === "linux";
// The longest path that systems take; a longer one would be looked for folder by folder first.
const MAX_PATH_BYTES = 4_096;
// Names a folder without the right to list it, which a folder on the way need not give.
const O_PATH = IS_LINUX ? 0o10000000 : 0;

/** A place for a file: its folder is open, so `path` means the same file until `close`, whatever is renamed meanwhile. */
export interface Place {
  /** For system calls. */
  readonly path: string;
  /** For people: relative to the Workspace when inside, else absolute. */
  readonly shown: string;
  /** The real path; equal for all names of one file. */
  readonly key: string;
  /** A path for another name in the same folder. */
  sibling(name: string): string;
  close(): Promise<void>;
}

export interface OpenFile {
  readonly handle: FileHandle;
  readonly stats: Stats;
  readonly shown: string;
}

interface Location {
  /** Where the walk starts: the real Workspace, or the root when outside is allowed. */
  base: string;
  folders: string[];
  /** Empty when the location is `base` itself. */
  name: string;
  real: string;
  shown: string;
}

/** One folder and whether tools may leave it. All methods throw `ToolFailure` with a text for the model. */
export class Workspace {
  readonly #root: string;
  readonly #allowOutside: boolean;

  /** @param root an absolute path; it may lead through links. */
  constructor(root: string, allowOutside: boolean) {
    this.#root = root;
    this.#allowOutside = allowOutside;
  }

  /** The real path of an existing folder. */
  async folder(path: string): Promise<string> {
    const { real, shown } = await this.#locate(path);
    try {
      if ((await stat(real)).isDirectory()) return real;
    } catch (error) {
      throw explain(error, shown);
    }
    throw new ToolFailure(`${shown} is not a folder.`);
  }

  /** Opens a regular file for reading, and nothing else: no FIFO is waited for, no device touched. */
  async openFile(path: string): Promise<OpenFile> {
    const place = await this.place(path);
    let handle: FileHandle | undefined;
    try {
      refuseIrregular(await lstat(place.path), place.shown);
      handle = await open(place.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
      const stats = await handle.stat();
      refuseIrregular(stats, place.shown);
      return { handle, stats, shown: place.shown };
    } catch (error) {
      await handle?.close();
      throw explain(error, place.shown);
    } finally {
      await place.close();
    }
  }

  /** The place of a file that may not exist yet. With `makeFolders`, missing folders on the way are made. */
  async place(path: string, options: { makeFolders?: boolean } = {}): Promise<Place> {
    const at = await this.#locate(path);
    if (at.name === "") throw new ToolFailure(`${at.shown} is a folder.`);
    const folder = await walk(at, options.makeFolders ?? false);
    const sibling = (name: string) => join(folder.path, name);
    return {
      path: sibling(at.name),
      shown: at.shown,
      key: at.real,
      sibling,
      close: () => folder.handle.close(),
    };
  }

  async #locate(path: string): Promise<Location> {
    if (path === "") throw new ToolFailure("The path is empty.");
    if (path.includes("\0")) throw new ToolFailure("The path holds a NUL character, which no file name can.");
    const size = Buffer.byteLength(path);
    if (size >= MAX_PATH_BYTES) throw new ToolFailure(`The path is ${size} bytes, limit ${MAX_PATH_BYTES - 1}.`);
    let root: string;
    let real: string;
    try {
      root = await realpath(this.#root);
    } catch (error) {
      throw explain(error, `The Workspace ${this.#root}`);
    }
    try {
      real = await realpathOfWhatIs(resolve(this.#root, path));
    } catch (error) {
      throw explain(error, path);
    }
    const inside = isWithin(root, real);
    if (!inside && !this.#allowOutside) {
      throw new ToolFailure(`${path} leads outside the Workspace ${this.#root}. Only paths inside it are allowed.`);
    }
    const base = inside ? root : "/";
    const names = relative(base, real).split(sep);
    const name = names.pop() ?? "";
    return { base, folders: names, name, real, shown: inside ? relative(root, real) || "." : real };
  }
}

/** Throws for everything that is not a regular file. */
export function refuseIrregular(stats: Stats, shown: string): void {
  if (stats.isFile()) return;
  if (stats.isDirectory()) throw new ToolFailure(`${shown} is a folder. exec_command can list it.`);
  if (stats.isSymbolicLink()) throw new ToolFailure(`${shown} is a symbolic link that changed or leads nowhere.`);
  throw new ToolFailure(`${shown} is not a regular file (a FIFO, socket or device).`);
}

function isWithin(root: string, path: string): boolean {
  const way = relative(root, path);
  return way === "" || (way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}

/** The real path of as much as exists, and the rest as it was written. */
async function realpathOfWhatIs(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    if (!isErrno(error, "ENOENT") && !isErrno(error, "ENOTDIR")) throw error;
    const dangling = await lstat(path).then(
      () => true,
      () => false,
    );
    if (dangling) throw new ToolFailure(`${path} is a symbolic link that leads nowhere.`);
    return join(await realpathOfWhatIs(dirname(path)), basename(path));
  }
}

async function walk(at: Location, makeFolders: boolean): Promise<{ handle: FileHandle; path: string }> {
  const flags = O_RDONLY | O_PATH | O_DIRECTORY | O_NOFOLLOW;
  let real = at.base;
  let handle: FileHandle | undefined;
  try {
    handle = await open(real, flags);
    for (const name of at.folders) {
      const step = join(IS_LINUX ? `/proc/self/fd/${handle.fd}` : real, name);
      const next = await open(step, flags).catch(async (error: unknown) => {
        if (!makeFolders || !isErrno(error, "ENOENT")) throw error;
        await mkdir(step).catch((failed: unknown) => {
          // Another call made it at the same time.
          if (!isErrno(failed, "EEXIST")) throw failed;
        });
        return open(step, flags);
      });
      await handle.close();
      handle = next;
      real = join(real, name);
    }
    if (!IS_LINUX && (await realpath(real)) !== real)
      throw new ToolFailure(`${at.shown}: its folder changed meanwhile.`);
    return { handle, path: IS_LINUX ? `/proc/self/fd/${handle.fd}` : real };
  } catch (error) {
    await handle?.close();
    throw explain(error, at.shown);
  }
}
