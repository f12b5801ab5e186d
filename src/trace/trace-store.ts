// What the rest asks of Traces. `jsonl-store` is the implementation on local disk.
//
// A record is a JSON object with a known `type` and an object as `payload`, one line of a file. Its ordinal is its
// place among the good records of the whole Trace, from 0, across the files that compactions begin.

import type { Readable } from "node:stream";
import type { OmniMessage } from "../protocol/message.js";

export interface TraceRecord {
  readonly ordinal: number;
  /** The record as stored, without its line feed: it can be spliced into an answer, byte for byte. */
  readonly json: string;
  /** The same, parsed. Only the envelope has been looked at: the payload may be of a type that we do not know. */
  readonly message: OmniMessage;
}

/** A record for whoever passes it on: nothing of it is kept parsed. */
export interface StoredRecord {
  readonly ordinal: number;
  /**
   * The record as stored, without its line feed. Of a long one the bytes, in pieces that are read as they are taken: all
   * of them before the next batch is asked for.
   */
  readonly json: string | AsyncIterable<Buffer>;
}

/** A range of ordinals, `to` excluded. */
export interface OrdinalRange {
  from?: number;
  to?: number;
}

/** The append-only record of one Session. */
export interface Trace {
  readonly sessionId: string;
  /** Records that would survive a crash of this process. Grows in the tick in which an append is done. */
  readonly count: number;
  /** The ordinal at which the current context begins: its `session_meta`. */
  readonly contextStart: number;
  /**
   * Records a group of lines, each one JSON record without line feed, with a single write: all or none.
   * Groups are written in the order of the calls. The queue has no bound of its own: whoever has something to say waits.
   * Rejects with StorageError; what was recorded before is then as it was, and the next call tries again.
   */
  append(lines: readonly string[]): Promise<void>;
  /** Begins a new file, the first of which lines is the `session_meta` of a new context. Takes its turn among appends; all or none. */
  rotate(firstLines: readonly string[]): Promise<void>;
  /**
   * Reads records in order, in batches that hold the event loop for a few milliseconds each. The range is cut to what
   * is recorded at the time of the first `next`; later appends are not part of it.
   */
  read(range?: OrdinalRange): AsyncGenerator<readonly TraceRecord[], void, void>;
  /**
   * As `read`. However slowly records are taken, and however long they are, little of them is in memory meanwhile.
   * @param gone aborts when whoever wanted them has left: what is still to come is not read any more
   */
  readStored(range?: OrdinalRange, gone?: AbortSignal): AsyncGenerator<readonly StoredRecord[], void, void>;
  /** The bytes of all files in order, up to what is recorded now. */
  openTrace(): Readable;
  /** Ends what is queued, then lets go of the files. Later appends reject. */
  close(): Promise<void>;
}

/** What a process left of a Session that it was making or deleting when it ended. */
export interface Leftover {
  sessionId: string;
  folder: string;
}

/** Names to texts. */
export type BesideFiles = Readonly<Record<string, string>>;

export interface TraceStore {
  /** The folder of one Session. Never created by asking. */
  folder(sessionId: string): string;
  /**
   * Makes a new Session's folder with its first records and the files that belong beside them (name to text) in one
   * step: after a crash at any instant all of it is there or nothing. A `session_meta` after the first record begins
   * a new file. Batches are taken one at a time, so that a large import costs the memory of one; what stands beside is
   * asked for when the last has been taken, unless it is given. Whatever the batches throw is thrown on, and nothing is
   * left then: `undo`, which must not reject, is done before what was staged goes.
   */
  create(
    sessionId: string,
    records: Iterable<readonly string[]> | AsyncIterable<readonly string[]>,
    beside?: BesideFiles | (() => BesideFiles),
    undo?: () => Promise<void>,
  ): Promise<Trace>;
  /** @returns the Trace (the same object while it is open), or undefined when there is none of that id. */
  open(sessionId: string): Promise<Trace | undefined>;
  /** The ids of all Sessions that have a folder, in no order. Opens none of them. */
  list(): Promise<string[]>;
  /**
   * Deletes a Session's folder. It is gone at once for every reader, and no write under way brings it back.
   * @param takeAlong removes what goes with it, before the last trace of the Session is gone. Must not reject.
   */
  remove(sessionId: string, takeAlong?: () => Promise<void>): Promise<void>;
  /** What earlier processes left, each once. It is removed when the next is asked for: what goes with it goes first. */
  sweep(): AsyncGenerator<Leftover, void, void>;
  /** @returns whether the data directory takes a write now. */
  isWritable(): Promise<boolean>;
  /** Closes every open Trace. */
  close(): Promise<void>;
}

/** The part of a logger that is used here; pino fits. */
export interface TraceLog {
  warn(details: object, message: string): void;
}
