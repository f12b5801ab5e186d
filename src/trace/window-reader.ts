// Reads a window of one Trace file by its index, and finds out when the index does not fit the file.

import { isUtf8 } from "node:buffer";
import { hasForeignPlace, spansWithoutPlace, withoutPlace } from "./foreign-place.js";
import { CHUNK_BYTES, type Line, type ParsedRecord, parseRecord, readLines, recordRange } from "./jsonl-reader.js";
import type { Span } from "./meta-rewrite.js";
import { StorageError } from "./storage-error.js";
import type { TraceFile, TraceFs } from "./trace-fs.js";
import type { FileWindow } from "./trace-index.js";
import type { StoredRecord, TraceRecord } from "./trace-store.js";

/** The file is not what its index says: somebody changed it. The index must be built again. */
export class IndexMismatch extends Error {
  constructor(fileName: string, offset: number) {
    super(`index of ${fileName} does not fit at offset ${offset}`);
    this.name = "IndexMismatch";
  }
}

/** A record that was found, before anybody decided what to keep of it. */
interface Found {
  readonly ordinal: number;
  readonly parsed: ParsedRecord;
  readonly line: Line;
  readonly file: TraceFile;
}

/** What `readWindow` yields of a record. `line.bytes` are not for keeping. */
export type Form<T> = (found: Found) => T;

export const asRecord: Form<TraceRecord> = ({ ordinal, parsed }) => ({ ordinal, ...parsed });

/** Records longer than this are not kept in memory for whoever takes them slowly, but read again. */
const LONG_BYTES = CHUNK_BYTES;

/** The text as it is stored, but for a place that it had in another Trace. */
export const asStored: Form<StoredRecord> = ({ ordinal, parsed, line, file }) => {
  const { bytes } = line;
  const { json } = parsed;
  const hasPlace = hasForeignPlace(parsed);
  // What stands in for bytes that are no UTF-8 is in the text alone.
  if (bytes.length <= LONG_BYTES || !isUtf8(bytes)) return { ordinal, json: hasPlace ? withoutPlace(json) : json };
  // The line's first bytes may be missing in `bytes`, its last are not.
  const first = line.end - (line.isOpen ? 0 : 1) - bytes.length;
  const { from, to } = recordRange(bytes);
  const byteAt = (place: number) => first + from + Buffer.byteLength(json.slice(0, place));
  const ranges = hasPlace
    ? spansWithoutPlace(json).map((span) => ({ from: byteAt(span.from), to: byteAt(span.to) }))
    : [{ from: first + from, to: first + to }];
  return { ordinal, json: readPieces(file, ranges) };
};

async function* readPieces(file: TraceFile, ranges: readonly Span[]): AsyncGenerator<Buffer, void, void> {
  for (const { from, to } of ranges) {
    for (let position = from; position < to; ) {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, to - position));
      const got = await file.read(buffer, position);
      if (got === 0) throw new StorageError("read_failed", `file ends at ${position}, expected ${to}`);
      position += got;
      yield buffer.subarray(0, got);
    }
  }
}

/**
 * Yields the records of a window, a batch for each chunk of the file.
 * @param gone as for `readLines`
 * @throws IndexMismatch, possibly after some batches; those were right by everything that could be checked.
 */
export async function* readWindow<T>(
  fs: TraceFs,
  path: string,
  window: FileWindow,
  form: Form<T>,
  gone?: AbortSignal,
): AsyncGenerator<readonly T[], void, void> {
  const file = await fs.openToRead(path);
  try {
    // Every byte that is read was recorded, so a shorter file is a mismatch and no fault of the disk.
    const { size } = await file.stat();
    if (size < window.endOffset) throw new IndexMismatch(window.file.name, size);
    const cursor = new WindowCursor(window);
    for await (const lines of readLines(file, cursor.startOffset, window.endOffset, gone)) {
      const records = take(lines, cursor, window, (found) => form({ ...found, file }));
      if (records.length > 0) yield records;
    }
    if (cursor.record < window.to && !gone?.aborted) throw new IndexMismatch(window.file.name, window.endOffset);
  } finally {
    await file.close();
  }
}

/** Takes the wanted records out of the lines of one chunk, which is empty then: while they are looked at, no bytes wait. */
function take<T>(
  lines: Line[],
  cursor: WindowCursor,
  window: FileWindow,
  form: (found: Omit<Found, "file">) => T,
): T[] {
  const records: T[] = [];
  for (const line of lines) {
    if (line.offset < cursor.firstLine) {
      if (line.end !== cursor.firstLine) throw new IndexMismatch(window.file.name, line.offset);
      continue;
    }
    if (cursor.record >= window.to) break;
    const parsed = parseRecord(line.bytes);
    if (parsed === undefined) continue;
    const ordinal = cursor.take(line.offset);
    if (ordinal !== undefined) records.push(form({ ordinal, parsed, line }));
  }
  lines.length = 0;
  return records;
}

/** Counts records from a mark on and holds them against every mark on the way. */
class WindowCursor {
  record: number;
  readonly firstLine: number;
  /** One byte before the first line, which must be a line feed. */
  readonly startOffset: number;
  readonly #window: FileWindow;
  #mark: number;

  constructor(window: FileWindow) {
    const { marks } = window.file;
    this.#window = window;
    this.#mark = window.mark;
    this.record = marks[window.mark]!;
    this.firstLine = marks[window.mark + 1]!;
    this.startOffset = Math.max(0, this.firstLine - 1);
  }

  /** @returns the ordinal of the record whose line begins at `offset`, or undefined before the window. */
  take(offset: number): number | undefined {
    const { file, firstOrdinal, from } = this.#window;
    const markedRecord = file.marks[this.#mark];
    const markedOffset = file.marks[this.#mark + 1];
    if (markedRecord !== undefined && markedOffset !== undefined) {
      const isHere = markedOffset === offset;
      const isRight = isHere ? markedRecord === this.record : markedOffset > offset && markedRecord > this.record;
      if (!isRight) throw new IndexMismatch(file.name, offset);
      if (isHere) this.#mark += 2;
    }
    const record = this.record++;
    return record < from ? undefined : firstOrdinal + record;
  }
}
