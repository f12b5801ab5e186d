// Where the records of a Trace stand in its files, sparsely: a mark at least every 64 records and about every 64 KiB,
// so that reading a window costs the window. Plain data, grown by the writer's commits or by a scan of a file.
//
// Invariant: a mark's record is the one whose line begins at the mark's offset, and `bytes` is the end of the last good
// line, so everything behind it is a torn end that nobody was told about.

import { parseRecord, readLines } from "./jsonl-reader.js";
import type { TraceFile } from "./trace-fs.js";

const MARK_RECORDS = 64;
const MARK_BYTES = 64 * 1024;

export interface FileIndex {
  readonly name: string;
  /** Good records in this file. */
  records: number;
  /** Up to where the file counts. */
  bytes: number;
  /** True when the last record stands there whole but without its line feed. */
  isOpen: boolean;
  /** The newest `session_meta`, as a record number in this file, or -1. */
  newestMeta: number;
  /** Pairs: record number in this file, offset of its line. */
  marks: number[];
}

/** A part of one file: records are numbered within the file. */
export interface FileWindow {
  readonly file: FileIndex;
  /** Ordinal of the file's first record. */
  readonly firstOrdinal: number;
  /** The wanted records, `to` excluded. */
  readonly from: number;
  readonly to: number;
  /** The place in `marks` of the pair to begin reading at. */
  readonly mark: number;
  /** Up to where to read. */
  readonly endOffset: number;
}

export const emptyFileIndex = (name: string): FileIndex => ({
  name,
  records: 0,
  bytes: 0,
  isOpen: false,
  newestMeta: -1,
  marks: [],
});

/** Notes the next record of a file: its line begins at `offset`. */
export function addRecord(file: FileIndex, offset: number, isMeta: boolean): void {
  const { marks } = file;
  const isDue =
    marks.length === 0 ||
    file.records - marks[marks.length - 2]! >= MARK_RECORDS ||
    offset - marks[marks.length - 1]! >= MARK_BYTES;
  if (isDue) marks.push(file.records, offset);
  if (isMeta) file.newestMeta = file.records;
  file.records++;
}

/** Notes a group that was just written at `offset`. */
export function addGroup(
  file: FileIndex,
  offset: number,
  lines: readonly string[],
  sizes: readonly number[],
  isMeta: (line: string) => boolean = isMetaLine,
): void {
  let at = offset;
  for (const [i, line] of lines.entries()) {
    addRecord(file, at, isMeta(line));
    at += sizes[i]!;
  }
  file.bytes = at;
  file.isOpen = false;
}

/** Only a line that has the words of a `session_meta` in it is looked at closer. */
export function isMetaLine(line: string): boolean {
  return line.includes("session_meta") && parseRecord(Buffer.from(line))?.message.type === "session_meta";
}

/** As every line of our own begins; none of those names a member twice. */
const OWN_OTHER = /^\{"timestamp":"[^"\\]*","type":"(?:model_msg|event_msg)"/;

/** As `isMetaLine`, for a line that is not somebody else's: its beginning tells, however long it is. */
export const isOwnMetaLine = (line: string): boolean => !OWN_OTHER.test(line) && isMetaLine(line);

/** What a scan found besides records. */
export interface Damage {
  /** Lines that hold no record, and where the first of them begins. */
  skipped: number;
  firstAt: number | undefined;
  /** Bytes of a torn last line, which nobody was told about. */
  tornBytes: number;
}

/** Reads a file from where its index ends to `size` and adds what stands there. */
export async function extendIndex(index: FileIndex, file: TraceFile, size: number): Promise<Damage> {
  const damage: Damage = { skipped: 0, firstAt: undefined, tornBytes: 0 };
  for await (const lines of readLines(file, index.bytes, size)) {
    for (const line of lines) {
      const record = parseRecord(line.bytes);
      if (record !== undefined) {
        addRecord(index, line.offset, record.message.type === "session_meta");
      } else if (line.isOpen) {
        damage.tornBytes = size - line.offset;
        return damage;
      } else {
        damage.skipped++;
        damage.firstAt ??= line.offset;
      }
      index.bytes = line.end;
      index.isOpen = line.isOpen;
    }
  }
  return damage;
}

export const countOf = (files: readonly FileIndex[]): number => files.reduce((sum, file) => sum + file.records, 0);

/**
 * @returns the ordinal at which the current context begins: the newest `session_meta`, or the newest file's first good
 * record where its `session_meta` was damaged.
 */
export function contextStartOf(files: readonly FileIndex[]): number {
  let first = countOf(files);
  for (let i = files.length - 1; i >= 0; i--) {
    const file = files[i]!;
    first -= file.records;
    if (file.records > 0) return first + Math.max(0, file.newestMeta);
  }
  return 0;
}

/** @returns the parts of files that hold the records `[from, to)` of the whole Trace. */
export function locate(files: readonly FileIndex[], from: number, to: number): FileWindow[] {
  const windows: FileWindow[] = [];
  let firstOrdinal = 0;
  for (const file of files) {
    const wanted = { from: Math.max(0, from - firstOrdinal), to: Math.min(file.records, to - firstOrdinal) };
    if (wanted.from < wanted.to) {
      const after = lastMarkUpTo(file.marks, wanted.to - 1) + 2;
      windows.push({
        file,
        firstOrdinal,
        ...wanted,
        mark: lastMarkUpTo(file.marks, wanted.from),
        endOffset: file.marks[after + 1] ?? file.bytes,
      });
    }
    firstOrdinal += file.records;
  }
  return windows;
}

/** @returns the place in `marks` of the last pair whose record is not above `record`. */
function lastMarkUpTo(marks: readonly number[], record: number): number {
  let low = 0;
  let high = marks.length / 2 - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (marks[middle * 2]! <= record) low = middle;
    else high = middle - 1;
  }
  return low * 2;
}
