// Reads a window of one Trace file by its index, and finds out when the index does not fit the file.

import { parseRecord, readLines } from "./jsonl-reader.js";
import type { TraceFs } from "./trace-fs.js";
import type { FileWindow } from "./trace-index.js";
import type { TraceRecord } from "./trace-store.js";

/** The file is not what its index says: somebody changed it. The index must be built again. */
export class IndexMismatch extends Error {
  constructor(fileName: string, offset: number) {
    super(`index of ${fileName} does not fit at offset ${offset}`);
    this.name = "IndexMismatch";
  }
}

/**
 * Yields the records of a window, a batch for each chunk of the file.
 * @throws IndexMismatch, possibly after some batches; those were right by everything that could be checked.
 */
export async function* readWindow(
  fs: TraceFs,
  path: string,
  window: FileWindow,
): AsyncGenerator<readonly TraceRecord[], void, void> {
  const file = await fs.openToRead(path);
  try {
    // Every byte that is read was recorded, so a shorter file is a mismatch and no fault of the disk.
    const { size } = await file.stat();
    if (size < window.endOffset) throw new IndexMismatch(window.file.name, size);
    const cursor = new WindowCursor(window);
    for await (const lines of readLines(file, cursor.startOffset, window.endOffset)) {
      const records: TraceRecord[] = [];
      for (const line of lines) {
        if (line.offset < cursor.firstLine) {
          if (line.end !== cursor.firstLine) throw new IndexMismatch(window.file.name, line.offset);
          continue;
        }
        if (cursor.record >= window.to) break;
        const parsed = parseRecord(line.bytes);
        if (parsed === undefined) continue;
        const ordinal = cursor.take(line.offset);
        if (ordinal !== undefined) records.push({ ordinal, ...parsed });
      }
      if (records.length > 0) yield records;
    }
    if (cursor.record < window.to) throw new IndexMismatch(window.file.name, window.endOffset);
  } finally {
    await file.close();
  }
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
