// Folders of the data directory: 0700 whatever the umask, made one by one from the first that is missing. (Node's own
// recursive mkdir never comes back from a place where nothing can be made, /proc for one.)

import { chmod, mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { errnoOf } from "./storage-error.js";

const MODE = 0o700;

/**
 * Makes the folder and the missing ones above it; one that is there is left as it is.
 * @throws the system's own error when there cannot be a folder, for example ENOTDIR, EACCES, EROFS or ENOENT.
 */
export async function makeFolder(path: string): Promise<void> {
  if (await isFolder(path)) return;
  const parent = dirname(path);
  if (parent !== path) await makeFolder(parent);
  try {
    await mkdir(path, { mode: MODE });
  } catch (error) {
    // Somebody else was faster.
    if (errnoOf(error) === "EEXIST" && (await isFolder(path))) return;
    throw error;
  }
  await chmod(path, MODE);
}

async function isFolder(path: string): Promise<boolean> {
  try {
    if ((await stat(path)).isDirectory()) return true;
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
  throw Object.assign(new Error(`${path} is not a folder`), { code: "ENOTDIR" });
}
