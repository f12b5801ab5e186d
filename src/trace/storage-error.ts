// A disk that refuses. Callers turn it into `error.kind: "storage"` or 507, so its message names no path: the path and
// the rest stand in `cause`, which goes to the log.

export type StorageFailure = "write_failed" | "read_failed" | "closed";

/** What was asked of the disk did not happen, and what was recorded before is as it was. */
export class StorageError extends Error {
  readonly code: StorageFailure;
  /** The system's own word where it has one, for example `ENOSPC`. */
  readonly errno: string | undefined;

  constructor(code: StorageFailure, message: string, cause?: unknown) {
    const errno = errnoOf(cause);
    super(errno === undefined ? message : `${message}: ${errno}`, { cause });
    this.name = "StorageError";
    this.code = code;
    this.errno = errno;
  }
}

/** @returns the `code` of a system error, for example `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return error instanceof Error && typeof code === "string" ? code : undefined;
}

/** @returns what a call to the disk threw, as a StorageError. */
export function storageError(code: StorageFailure, message: string, error: unknown): StorageError {
  return error instanceof StorageError ? error : new StorageError(code, message, error);
}

/** Runs calls to the disk; what they throw becomes a StorageError. */
export async function onDisk<T>(code: StorageFailure, message: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw storageError(code, message, error);
  }
}
