// The lines of an uploaded Trace, as they come in. A line is held until it ends, and never more of it than the limit:
// one that is longer is a fault of the file. Lines end at LF only.

const LF = 0x0a;

export interface UploadedLine {
  /** From 1, as editors count. */
  readonly number: number;
  /** Undefined for one that is longer than the limit. */
  readonly bytes: Buffer | undefined;
  /** False for what stands after the last LF. */
  readonly isEnded: boolean;
}

/** Yields the lines that end in one chunk together. Time is linear in the bytes. */
export async function* uploadedLines(
  chunks: AsyncIterable<Uint8Array>,
  maxLineBytes: number,
): AsyncGenerator<UploadedLine[], void, void> {
  let pieces: Uint8Array[] = [];
  let size = 0;
  let number = 1;
  const add = (piece: Uint8Array) => {
    size += piece.length;
    if (size > maxLineBytes) pieces = [];
    else if (piece.length > 0) pieces.push(piece);
  };
  const finish = (isEnded: boolean): UploadedLine => {
    const line = { number, bytes: size > maxLineBytes ? undefined : Buffer.concat(pieces, size), isEnded };
    pieces = [];
    size = 0;
    number += 1;
    return line;
  };
  for await (const chunk of chunks) {
    const lines: UploadedLine[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LF); end >= 0; end = chunk.indexOf(LF, start)) {
      add(chunk.subarray(start, end));
      lines.push(finish(true));
      start = end + 1;
    }
    add(chunk.subarray(start));
    if (lines.length > 0) yield lines;
  }
  if (size > 0) yield [finish(false)];
}
