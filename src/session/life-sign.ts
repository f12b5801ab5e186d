// A sign of life for processes that cannot see each other's pid, as in two containers on one volume: a socket in the
// directory. The kernel answers for it exactly as long as its process lives, in whatever namespace who asks is.
// Other machines on a network volume have a kernel of their own, and hear nothing.

import { chmod } from "node:fs/promises";
import { connect, createServer } from "node:net";

/** What fits into an address of the system; longer paths would be cut. */
const MAX_PATH_BYTES = 103;

export interface LifeSign {
  /** Takes it back, with its file. */
  close(): Promise<void>;
}

/** Gives a sign of life at `path` until it is closed or the process ends. @returns undefined where none can be given */
export async function giveLifeSign(path: string): Promise<LifeSign | undefined> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return undefined;
  const server = createServer((socket) => socket.destroy());
  // It keeps no process from ending.
  server.unref();
  try {
    await new Promise<void>((resolve, reject) => server.once("error", reject).listen(path, resolve));
    server.on("error", () => {}); // One who asked has no answer: that is "in doubt" there.
    await chmod(path, 0o600);
  } catch {
    server.close();
    return undefined; // Not every file system takes a socket.
  }
  return { close: () => new Promise((resolve) => server.close(() => resolve())) };
}

/** Whether somebody gives a sign of life at `path`. */
export function hasLifeSign(path: string): Promise<boolean> {
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) return Promise.resolve(false);
  return new Promise((resolve) => {
    const socket = connect(path);
    const answer = (isThere: boolean) => {
      socket.destroy();
      resolve(isThere);
    };
    socket.once("connect", () => answer(true));
    // So many ask at once that there is no room: there is somebody to ask.
    socket.once("error", (error: NodeJS.ErrnoException) => answer(error.code === "EAGAIN"));
  });
}
