// What a failed system call means, in words a model can act on.

import { ToolFailure } from "./tool.js";

const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist.",
  ENOTDIR: "cannot be reached: a part of its path is not a folder, or became a link.",
  EISDIR: "is a folder.",
  EACCES: "may not be accessed: permission denied.",
  EPERM: "may not be changed: operation not permitted.",
  EROFS: "is on a read-only file system.",
  ENOSPC: "could not be written: the disk is full.",
  EDQUOT: "could not be written: the disk quota is used up.",
  EFBIG: "could not be written: it would be too large.",
  ENAMETOOLONG: "has a name that is too long.",
  ELOOP: "leads through symbolic links that are circular or changed meanwhile.",
  EBUSY: "is in use by the system.",
  ENXIO: "is not a regular file.",
  EMFILE: "could not be opened: the server has too many files open. Try again.",
  ENFILE: "could not be opened: the machine has too many files open. Try again.",
};

export const isErrno = (error: unknown, code: string): boolean =>
  error instanceof Error && (error as NodeJS.ErrnoException).code === code;

/** @returns the error as a `ToolFailure` about `shown`; what is none of the file system's stays as it is. */
export function explain(error: unknown, shown: string): unknown {
  if (error instanceof ToolFailure || !(error instanceof Error)) return error;
  const { code } = error as NodeJS.ErrnoException;
  if (code === undefined) return error;
  return new ToolFailure(`${shorten(shown)} ${MEANINGS[code] ?? `could not be used: ${code}.`}`, { cause: error });
}

const shorten = (path: string): string =>
  path.length <= 300 ? path : `${path.slice(0, 200)}... (${path.length} characters)`;
