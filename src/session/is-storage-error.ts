// The disk's refusals as the layers above the Traces see them.

import { StorageError } from "../trace/storage-error.js";

/** True for what the disk refused; anything else that is thrown is a bug of ours. */
export const isStorageError = (error: unknown): error is StorageError => error instanceof StorageError;
