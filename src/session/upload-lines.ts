// The lines of an uploaded Trace, as they come in. One that is longer than the limit is a fault of the file. Lines end at
// LF only.

import { UploadLine } from "./upload-line.js";

const LF = 0x0a;

export interface UploadedLine {
  /** From 1, as editors count. */
  readonly number: number;
  /** Undefined for one that is longer than the limit. */
  readonly bytes: Buffer | undefined;
  /** False for what stands after the last LF. */
  readonly isEnded: boolean;
}

export interface LineLimits {
  readonly maxLineBytes: number;
  /** Where a file can be made for a moment, for what does not fit into memory. */
  readonly scratch: string;
}

/**
 * Yields the lines that end in one chunk together; their bytes are the taker's until it asks for more, for which it must
 * not wait for anybody. Time is linear in the bytes.
 * @throws StorageError when the disk refuses to take a long line.
 */
export async function* uploadedLines(
  chunks: AsyncIterable<Uint8Array>,
  { maxLineBytes, scratch }: LineLimits,
): AsyncGenerator<UploadedLine[], void, void> {
  const line = new UploadLine(maxLineBytes, scratch);
  let number = 1;
  let done = () => {};
  const finish = async (isEnded: boolean): Promise<UploadedLine> => {
    const whole = await line.finish();
    done = whole.done;
    return { number: number++, bytes: whole.bytes, isEnded };
  };
  try {
    for await (const chunk of chunks) {
      const lines: UploadedLine[] = [];
      let start = 0;
      for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
        const piece = chunk.subarray(start, end);
        start = end + 1;
        if (line.size === 0) {
          const bytes = piece.length > maxLineBytes ? undefined : viewOf(piece);
          lines.push({ number: number++, bytes, isEnded: true });
          continue;
        }
        await line.add(piece);
        lines.push(await finish(true));
      }
      await line.add(chunk.subarray(start));
      if (lines.length > 0) yield lines;
      // Not while the client is waited for.
      done();
    }
    if (line.size > 0) yield [await finish(false)];
  } finally {
    done();
    await line.close();
  }
}

const viewOf = ({ buffer, byteOffset, length }: Uint8Array) => Buffer.from(buffer, byteOffset, length);
