// What a Channel delivers and replays: the latest OmniMessages by their numbers, and between them the server events,
// which have no number. Both live in one order; a reader is a Place in it.
//
// Invariants: numbers have no holes; the newest message is always kept, whatever its size; at most `maxEvents` messages
// and as many notes, `maxBytes` UTF-8 bytes of frames in all, a message that is alone not counted; an entry of the current
// loop turn is never evicted before the readers that keep up have it (`trim` says when they must be served first). What
// all rings of the process hold together is bounded elsewhere, which then asks for a `release`.

import type { ChannelFigures } from "./channel-figures.js";
import { type FramedBytes, framed } from "./frame.js";
import { releaseFrame } from "./frame-memory.js";
import { SlidingWindow } from "./sliding-window.js";
import type { Place } from "./subscription.js";

/** Consecutive entries as they go out in one write. */
export interface Batch {
  readonly bytes: FramedBytes;
  readonly from: Place;
  readonly to: Place;
  /** How many entries. */
  readonly count: number;
  /** The last entry is the one after which the reader's stream ends. */
  readonly isLast: boolean;
}

/** A server event in its place. */
interface Note {
  readonly frame: Uint8Array;
  readonly tag: string | undefined;
  /** The number of the message it comes after. */
  readonly after: number;
}

/** A reader that catches up gets pieces of this size: enough to be cheap, little enough to hold per reader. */
const BATCH_BYTES = 65_536;
/**
 * So many messages, from a number that is a multiple of it, are joined once for all readers that catch up: after a lost
 * connection of many, each has the same to read.
 */
const BLOCK = 256;
/** Larger ones are joined for each reader, in pieces. */
const MAX_BLOCK_BYTES = 131_072;

export class EventRing {
  readonly #messages: SlidingWindow<Uint8Array>;
  readonly #notes = new SlidingWindow<Note>(0);
  /** Joined blocks by their first number; the frames in the window are windows on them then. */
  readonly #blocks = new Map<number, FramedBytes>();
  /** The same of single large messages. No block holds one. */
  readonly #large = new Map<number, FramedBytes>();
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  readonly #figures: ChannelFigures;
  #bytes = 0;

  /** @param limits the first message is numbered `lastSeq + 1` */
  constructor(limits: { maxEvents: number; maxBytes: number; lastSeq?: number }, figures: ChannelFigures) {
    this.#messages = new SlidingWindow((limits.lastSeq ?? 0) + 1);
    this.#maxEvents = Math.max(1, limits.maxEvents);
    this.#maxBytes = limits.maxBytes;
    this.#figures = figures;
  }

  /** UTF-8 bytes of the frames that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The number of the newest message, 0 before the first. */
  get lastSeq(): number {
    return this.#messages.end - 1;
  }

  /** The place after everything. */
  get end(): Place {
    return { seq: this.#messages.end, note: this.#notes.end };
  }

  /** Appends the frame of the message `lastSeq + 1`. Follow with `trim`. */
  append(frame: Uint8Array): void {
    this.#messages.push(frame);
    this.#bytes += frame.length;
  }

  /** Appends the frame of a server event. Follow with `trim`. */
  note(frame: Uint8Array, tag?: string): void {
    this.#notes.push({ frame, tag, after: this.lastSeq });
    this.#bytes += frame.length;
  }

  /**
   * Evicts the oldest entries until the bounds hold.
   * @returns false when that would take entries at or after `served`; nothing of those is touched.
   */
  trim(served: Place): boolean {
    while (this.#isOver()) {
      if (this.#isNoteOldest()) {
        // The newest entry stays even when it alone is too large: it has not been shown to anyone yet.
        if (this.#isNewestEntry(this.#notes.first) && this.#messages.size <= 1) break;
        if (this.#notes.first >= served.note) return false;
        this.#free(this.#notes.shift().frame);
      } else {
        if (this.#messages.size <= 1) break;
        if (this.#messages.first >= served.seq) return false;
        this.#evictMessage();
        this.#figures.evicted += 1;
      }
    }
    return true;
  }

  /**
   * Evicts the oldest entries until `bytes` are free; none at or after `served`, and never the newest message.
   * @returns false when it is for `served` that less was freed.
   */
  release(bytes: number, served: Place): boolean {
    const target = this.#bytes - bytes;
    while (this.#bytes > target) {
      if (this.#isNoteOldest()) {
        if (this.#notes.first >= served.note) return false;
        this.#free(this.#notes.shift().frame);
      } else {
        if (this.#messages.size <= 1) return true;
        if (this.#messages.first >= served.seq) return false;
        this.#evictMessage();
        this.#figures.evictedByBudget += 1;
      }
    }
    return true;
  }

  /** The place from which a reader that has message `seq` goes on. Notes that are older than this call are skipped. */
  find(seq: number): Place | "evicted" | "not_reached" {
    if (seq > this.lastSeq) return "not_reached";
    if (seq + 1 < this.#messages.first) return "evicted";
    return { seq: seq + 1, note: this.#notes.end };
  }

  /** True when entries that this place still had before it are gone. */
  hasPassed(place: Place): boolean {
    return place.seq < this.#messages.first || place.note < this.#notes.first;
  }

  /**
   * The entries from `place` on, at most 64 KB of them (one at least) or a block, as one buffer.
   * @param endsAt cuts the batch after the first note whose tag it accepts.
   * @param last the number of the last message that may be in it
   * @returns undefined when nothing comes after `place`.
   */
  batchFrom(place: Place, endsAt?: (tag: string) => boolean, last = this.lastSeq): Batch | undefined {
    if (place.seq > last && last < this.lastSeq) return undefined;
    const block = place.seq + BLOCK - 1 <= last ? this.#blockAt(place) : undefined;
    if (block) {
      const to = { seq: place.seq + BLOCK, note: place.note };
      return { bytes: block, from: place, to, count: BLOCK, isLast: false };
    }
    const large = this.#largeAt(place);
    if (large)
      return { bytes: large, from: place, to: { seq: place.seq + 1, note: place.note }, count: 1, isLast: false };
    const frames: Uint8Array[] = [];
    let { seq, note } = place;
    let bytes = 0;
    let isLast = false;
    while (!isLast) {
      const next = note < this.#notes.end ? this.#notes.at(note) : undefined;
      const isNote = next !== undefined && next.after < seq;
      if (!isNote && seq > last) break;
      const frame = isNote ? next.frame : this.#messages.at(seq);
      if (frames.length > 0 && (bytes + frame.length > BATCH_BYTES || this.#isBlock(seq))) break;
      frames.push(frame);
      bytes += frame.length;
      if (isNote) note += 1;
      else seq += 1;
      isLast = isNote && next.tag !== undefined && endsAt?.(next.tag) === true;
    }
    if (frames.length === 0) return undefined;
    return { bytes: framed(frames), from: place, to: { seq, note }, count: frames.length, isLast };
  }

  /** True where a whole block begins. */
  #isBlock(seq: number): boolean {
    return seq % BLOCK === 0 && seq + BLOCK <= this.#messages.end;
  }

  #blockAt({ seq, note }: Place): FramedBytes | undefined {
    if (!this.#isBlock(seq)) return undefined;
    // A note between its messages has to come at its place.
    if (note < this.#notes.end && this.#notes.at(note).after < seq + BLOCK - 1) return undefined;
    return this.#blocks.get(seq) ?? this.#joinBlock(seq);
  }

  #joinBlock(first: number): FramedBytes | undefined {
    const frames = Array.from({ length: BLOCK }, (_, index) => this.#messages.at(first + index));
    if (frames.reduce((sum, { length }) => sum + length, 0) > MAX_BLOCK_BYTES) return undefined;
    if (frames.some(({ length }) => length > BATCH_BYTES)) return undefined;
    const block = this.#hold(first, frames);
    this.#blocks.set(first, block);
    return block;
  }

  /**
   * A message that fills a batch alone is framed once for all readers too: those that do not read would each keep a copy
   * of it for as long as they stay.
   */
  #largeAt({ seq, note }: Place): FramedBytes | undefined {
    if (seq >= this.#messages.end || (note < this.#notes.end && this.#notes.at(note).after < seq)) return undefined;
    const frame = this.#messages.at(seq);
    if (frame.length <= BATCH_BYTES) return undefined;
    const known = this.#large.get(seq);
    if (known) return known;
    const large = this.#hold(seq, [frame]);
    this.#large.set(seq, large);
    return large;
  }

  /** Joins consecutive messages into bytes that are sent as they are, and held once: the window has windows on them. */
  #hold(first: number, frames: readonly Uint8Array[]): FramedBytes {
    const joined = framed(frames);
    const { plain } = joined;
    let at = 0;
    for (const [index, frame] of frames.entries()) {
      this.#messages.replace(first + index, plain.subarray(at, at + frame.length));
      releaseFrame(frame);
      at += frame.length;
    }
    return joined;
  }

  #evictMessage(): void {
    this.#blocks.delete(this.#messages.first);
    this.#large.delete(this.#messages.first);
    this.#free(this.#messages.shift());
  }

  #free(frame: Uint8Array): void {
    this.#bytes -= frame.length;
    releaseFrame(frame);
  }

  #isOver(): boolean {
    return (
      this.#bytes - this.#pinnedBytes() > this.#maxBytes ||
      this.#messages.size > this.#maxEvents ||
      this.#notes.size > this.#maxEvents
    );
  }

  /** What is kept in any case does not push out what comes after it. */
  #pinnedBytes(): number {
    return this.#messages.size === 1 ? this.#messages.at(this.#messages.first).length : 0;
  }

  #isNewestEntry(note: number): boolean {
    return note === this.#notes.end - 1 && this.#notes.at(note).after === this.lastSeq;
  }

  /** Which kind goes next: the older of the two, or the one that is too many. */
  #isNoteOldest(): boolean {
    if (this.#notes.size === 0) return false;
    if (this.#messages.size <= 1 || this.#notes.size > this.#maxEvents) return true;
    return this.#notes.at(this.#notes.first).after < this.#messages.first;
  }
}
