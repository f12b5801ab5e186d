// A group of records as the bytes of one write. A few buffers are used again and again for it: what is written is not
// needed any more when it is, and a buffer of its own for each record costs as much as the encoding, and its collection
// more.

/** Room of a buffer that is used again. */
const SHARED_BYTES = 64 * 1024;
/** As many as the system writes at once. */
const SHARED_COUNT = 4;
/** Below this Node has a pool of its own. */
const MIN_BYTES = 2 * 1024;
/** A UTF-16 unit is at most so many bytes of UTF-8. */
const MAX_BYTES_PER_UNIT = 3;

const free = Array.from({ length: SHARED_COUNT }, () => undefined as Buffer | undefined);

export interface EncodedLines {
  readonly data: Buffer;
  /** Bytes of each line, its line feed included. */
  readonly sizes: readonly number[];
  /** To be called once when `data` is not read any more. */
  release(): void;
}

/** Encodes a group for one write; `prefix` goes in front. */
export function encodeLines(lines: readonly string[], prefix: string): EncodedLines {
  let units = prefix.length;
  for (const line of lines) {
    if (line.includes("\n")) throw new Error("a trace record must be one line");
    units += line.length + 1;
  }
  const shared = units >= MIN_BYTES && units * MAX_BYTES_PER_UNIT <= SHARED_BYTES ? take() : undefined;
  const buffer = shared ?? Buffer.allocUnsafe(bytesOf(lines, prefix));
  let end = buffer.write(prefix);
  const sizes = lines.map((line) => {
    const begin = end;
    end += buffer.write(line, end);
    buffer[end++] = 0x0a;
    return end - begin;
  });
  return {
    data: buffer.subarray(0, end),
    sizes,
    release: () => {
      if (shared !== undefined) free.push(shared);
    },
  };
}

/** @returns a buffer that nobody uses, unless all are in use. */
function take(): Buffer | undefined {
  if (free.length === 0) return undefined;
  return free.pop() ?? Buffer.allocUnsafeSlow(SHARED_BYTES);
}

function bytesOf(lines: readonly string[], prefix: string): number {
  return lines.reduce((sum, line) => sum + Buffer.byteLength(line) + 1, prefix.length);
}
