// Reads JSON Lines that a crash, a full disk or a person may have damaged. Nothing here throws for what a line holds:
// a line that is no record is left out, and all others are kept (a torn end must not hide what comes before, nor a bad
// block what comes after).
//
// Lines end at LF only. U+2028 and its kind stand inside JSON strings and split nothing. Time is linear in the bytes.

import type { OmniMessage } from "../protocol/message.js";
import { StorageError } from "./storage-error.js";
import type { TraceFile } from "./trace-fs.js";
import { Turns } from "./turns.js";

/** Bytes taken at a time. Each is one turn of the event loop, and parsing it takes a few milliseconds. */
export const CHUNK_BYTES = 256 * 1024;
/** Lines from this on are put together one at a time for all who may leave: many of them cost the memory of one. */
const LONG_LINE_BYTES = 1024 * 1024;
/** Longer than a string of ours can be; such a line is damage, and is not kept in memory to find that out. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

const LF = 0x0a;
const LEFT_BRACE = 0x7b;
const RIGHT_BRACE = 0x7d;
const TYPES: ReadonlySet<unknown> = new Set(["session_meta", "model_msg", "event_msg"]);

export interface Line {
  /** Where the line begins in its file. */
  readonly offset: number;
  /** Where the next one begins. */
  readonly end: number;
  readonly bytes: Buffer;
  /** True for what stands after the last LF. */
  readonly isOpen: boolean;
}

export interface ParsedRecord {
  readonly json: string;
  readonly message: OmniMessage;
}

/**
 * Yields the lines between two offsets, all of one chunk together. The array is the taker's: emptied, it holds no bytes
 * in memory that are not wanted any more.
 * @param gone given for somebody who may leave: then nothing more is read for him, and until then he waits for his turn
 */
export async function* readLines(
  file: TraceFile,
  from: number,
  to: number,
  gone?: AbortSignal,
): AsyncGenerator<Line[], void, void> {
  const line = new OpenLine(from);
  let position = from;
  let endTurn: (() => void) | undefined;
  try {
    while (position < to) {
      if (gone !== undefined && line.kept >= LONG_LINE_BYTES) endTurn ??= await longLines.turn();
      if (gone?.aborted) return;
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, to - position));
      const got = await file.read(buffer, position);
      if (got === 0) throw new StorageError("read_failed", `file ends at ${position}, expected ${to}`);
      const chunk = buffer.subarray(0, got);
      const lines: Line[] = [];
      let start = 0;
      for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
        line.add(chunk.subarray(start, end));
        start = end + 1;
        lines.push(line.finish(position + start, false));
      }
      line.add(chunk.subarray(start));
      position += got;
      if (lines.length === 0) continue;
      // Never held across a yield: whoever takes the lines may take their time.
      endTurn?.();
      endTurn = undefined;
      yield lines;
    }
  } finally {
    endTurn?.();
  }
  if (line.size > 0) yield [line.finish(to, true)];
}

const longLines = new Turns();

/**
 * @returns the record that a line holds, or undefined when it holds none. NUL bytes around it (what a power failure
 * leaves of a block that was never written) are no part of it.
 */
export function parseRecord(bytes: Buffer): ParsedRecord | undefined {
  // JSON never has a raw NUL, so what follows the last one is the only text here that can be whole.
  const end = lastIndexOfOther(bytes, 0);
  const nul = end > 0 ? bytes.lastIndexOf(0, end - 1) : -1;
  const text = bytes.toString("utf8", nul + 1, end).trim();
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined; // Damage is an expected content of a line; the caller counts it.
  }
  return isRecord(value) ? { json: text, message: value } : undefined;
}

/** @returns where the text of a line's record begins and ends in its bytes. */
export function recordRange(bytes: Buffer): { from: number; to: number } {
  const to = bytes.lastIndexOf(RIGHT_BRACE) + 1;
  const nul = to > 0 ? bytes.lastIndexOf(0, to - 1) : -1;
  return { from: bytes.indexOf(LEFT_BRACE, nul + 1), to };
}

function isRecord(value: unknown): value is OmniMessage {
  if (typeof value !== "object" || value === null) return false;
  const { type, payload } = value as { type?: unknown; payload?: unknown };
  return TYPES.has(type) && typeof payload === "object" && payload !== null && !Array.isArray(payload);
}

/** @returns one more than the index of the last byte that is not `byte`. */
function lastIndexOfOther(bytes: Buffer, byte: number): number {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === byte) end--;
  return end;
}

/** A line that grows over chunks; joined once, so that a long one costs linear time. */
class OpenLine {
  size = 0;
  /** Bytes of it in memory. */
  kept = 0;
  #offset: number;
  #pieces: Buffer[] = [];
  #isTooLong = false;

  constructor(offset: number) {
    this.#offset = offset;
  }

  add(piece: Buffer): void {
    if (piece.length === 0) return;
    this.size += piece.length;
    if (this.#isTooLong) return;
    // A run of NULs may be as long as the disk, and whatever follows it is read without it anyway.
    if (this.kept === 0 && lastIndexOfOther(piece, 0) === 0) return;
    this.#isTooLong = this.kept + piece.length > MAX_LINE_BYTES;
    if (this.#isTooLong) {
      this.#pieces = [];
      this.kept = 0;
      return;
    }
    this.#pieces.push(piece);
    this.kept += piece.length;
  }

  finish(end: number, isOpen: boolean): Line {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces, this.kept);
    const line = { offset: this.#offset, end, bytes, isOpen };
    this.#offset = end;
    this.size = 0;
    this.#pieces = [];
    this.kept = 0;
    this.#isTooLong = false;
    return line;
  }
}
