// Memory for frames that are too large for Node's own pool. Such a frame lives outside of the collector's heap: made anew
// for each message, it costs page faults, and whole collections until it is given back. What rings evict is used again.
//
// Invariant: what is given out belongs to one frame until that frame is released, by the ring that evicts it.

/** Below this Node shares one buffer between many. */
const MIN_BYTES = 4 * 1024;
/** Larger frames are rare, and few would fill what is kept. */
const MAX_BYTES = 256 * 1024;
/** What is kept for later, of all sizes and for the whole process. */
const MAX_KEPT_BYTES = 2 * 1024 * 1024;

/** Tells what is ours to use again from every other buffer. */
class FrameMemory extends ArrayBuffer {}

/** By size: in steps of an eighth, so that a frame wastes little. */
const free = new Map<number, FrameMemory[]>();
let keptBytes = 0;

/** @returns so many bytes, with any content. */
export function allocateFrame(bytes: number): Buffer {
  if (bytes < MIN_BYTES || bytes > MAX_BYTES) return Buffer.allocUnsafe(bytes);
  const room = roomFor(bytes);
  const known = free.get(room)?.pop();
  if (known !== undefined) keptBytes -= room;
  return Buffer.from(known ?? new FrameMemory(room), 0, bytes);
}

/** Gives back what `allocateFrame` gave: nobody may read it from now on. Other bytes are left to the collector. */
export function releaseFrame({ buffer }: Uint8Array): void {
  if (!(buffer instanceof FrameMemory) || keptBytes + buffer.byteLength > MAX_KEPT_BYTES) return;
  keptBytes += buffer.byteLength;
  const same = free.get(buffer.byteLength);
  if (same === undefined) free.set(buffer.byteLength, [buffer]);
  else same.push(buffer);
}

/** The next of the eight steps between a power of two and its double. */
function roomFor(bytes: number): number {
  const step = 2 ** (31 - Math.clz32(bytes - 1)) / 8;
  return Math.ceil(bytes / step) * step;
}
