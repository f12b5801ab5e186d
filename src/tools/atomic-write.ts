// A file is replaced whole or not at all: a full disk or a crash leaves the old one.

import { constants, type Stats } from "node:fs";
import { access, lstat, open, rename, unlink } from "node:fs/promises";
import { explain, isErrno } from "./file-errors.js";
import { type Place, refuseIrregular } from "./workspace.js";

const { O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, W_OK } = constants;
const PERMISSIONS = 0o777;

let written = 0;

/**
 * Puts `content` at `place` by way of a temporary file beside it. An existing file keeps its permissions.
 * @returns whether there was a file before. Throws `ToolFailure`.
 */
export async function replaceFile(place: Place, content: string): Promise<"replaced" | "created"> {
  const before = await existing(place);
  // The name says nothing of the file's, which may be as long as names can be.
  const temporary = place.sibling(`.omnid-${process.pid}-${++written}.tmp`);
  try {
    // What a process of the same number left behind in a crash.
    await unlink(temporary).catch(() => {});
    const handle = await open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o666);
    try {
      await handle.writeFile(content);
      if (before !== undefined) await handle.chmod(before.mode & PERMISSIONS);
    } finally {
      await handle.close();
    }
    await rename(temporary, place.path);
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw explain(error, place.shown);
  }
  return before === undefined ? "created" : "replaced";
}

/** What is there now; refuses what must not be replaced. A rename would not ask whether the file may be written. */
async function existing(place: Place): Promise<Stats | undefined> {
  try {
    const stats = await lstat(place.path);
    refuseIrregular(stats, place.shown);
    await access(place.path, W_OK);
    return stats;
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw explain(error, place.shown);
  }
}
