// One reader: a Place in the ring and a Sink. Replay, live tail, slow reader and gap are one loop over "what comes after
// this place"; there is no queue here. A reader that does not read holds its Place, what its Sink queued (64 KB and one
// batch at most), and nothing else.
//
// Invariant: outside its own calls, a Subscriber that is not blocked has everything up to the last flush.

import type { ChannelFigures } from "./channel-figures.js";
import { formatEventId, parseEventId } from "./event-id.js";
import type { Batch, EventRing } from "./event-ring.js";
import { type FramedBytes, framed, PING, RETRY, serverEventFrame } from "./frame.js";
import type { Heartbeat, HeartbeatWheel } from "./heartbeat.js";
import type { DropReason, Place, ResyncReason, Sink, Span, SubscribeOptions } from "./subscription.js";

/** What a Subscriber needs of its Channel. */
export interface Feed {
  readonly ring: EventRing;
  /** Undefined when the Channel gives out no ids. */
  readonly epoch: number | undefined;
  readonly heartbeat: HeartbeatWheel;
  readonly figures: ChannelFigures;
  /** True once nothing more will come: a reader at the head is done. */
  readonly isEnded: boolean;
  /** The Channel's last server event, for one who comes after it. */
  readonly farewell: Uint8Array | undefined;
  onResync(reason: ResyncReason): void;
  onDropped(reason: DropReason): void;
  onFailed(error: unknown): void;
  /** Called once, when the stream has no further use for the Channel. */
  onLeft(subscriber: Subscriber): void;
}

/** Batches of one flush by the number they start at. */
export type SharedBatches = Map<number, Batch>;

/** `open` → `ending` (the last bytes are with the Sink) → `closed`. */
type Phase = "open" | "ending" | "closed";

/** A reader may queue this much before it counts as slow. */
const QUEUE_BYTES = 65_536;
/** One that took nothing for this long may go. */
const STALLED_MS = 60_000;

export class Subscriber {
  readonly #feed: Feed;
  readonly #sink: Sink;
  readonly #options: SubscribeOptions;
  readonly #heartbeat: Heartbeat;
  /** What is still owed to one that came after the Channel's last event, or had to skip it. */
  #farewell: Uint8Array | undefined;
  #phase: Phase = "open";
  #place: Place;
  #isSnapshotDue = true;
  /** What it is to see has begun, as far as it has come. */
  #isInSpan: boolean;
  /** The first event on the connection is still to come. */
  #isFirst = true;
  /** Since when the Sink has been full, or ending. */
  #waitingSince: number | undefined;

  constructor(feed: Feed, sink: Sink, options: SubscribeOptions) {
    this.#feed = feed;
    this.#sink = sink;
    this.#options = options;
    this.#place = feed.ring.end;
    const span = options.span?.();
    this.#isInSpan = span === undefined || span.begin !== undefined || span.isOver;
    this.#farewell = feed.farewell;
    this.#heartbeat = feed.heartbeat.join(() => this.#beat());
    sink.onDrain(() => this.#resume());
    sink.onClose(() => this.#closed());
  }

  /** Writes the first bytes: the gap or `resync_required`, then the snapshot, as far as the Sink takes them. */
  open(): void {
    this.#guarded(() => {
      const start = this.#startingPlace();
      if (typeof start === "string") this.#resync(start);
      else this.#place = start;
      this.#pump();
    });
  }

  /** Delivers what is due. Readers at the same place share their buffers through `shared`. */
  deliver(shared: SharedBatches): void {
    if (this.#waitingSince !== undefined) return;
    // The hot path: once for each reader and turn, so without the closure that `#guarded` takes.
    try {
      this.#pump(shared);
    } catch (error) {
      this.#failed(error);
    }
  }

  #startingPlace(): Place | ResyncReason {
    const { ring, epoch } = this.#feed;
    const { lastEventId } = this.#options;
    if (!lastEventId || epoch === undefined) return ring.end;
    const id = parseEventId(lastEventId);
    if (!id) return "not_an_id";
    if (id.epoch !== epoch) return "other_epoch";
    const span = this.#options.span?.();
    const place = span === undefined ? ring.find(id.seq) : this.#placeIn(span, id.seq);
    if (typeof place !== "string") this.#feed.figures.replays += 1;
    return place;
  }

  /** Where a reader that has message `seq` goes on with a part of the whole. */
  #placeIn({ begin, last, isOver }: Span, seq: number): Place | ResyncReason {
    const { ring } = this.#feed;
    if (seq >= ring.lastSeq) return ring.find(seq);
    if (begin === undefined && !isOver) return ring.end;
    if (last !== undefined && seq >= last) return ring.end;
    // What came between is not known to be its own.
    if (isOver && last === undefined) return "evicted";
    return ring.find(Math.max(seq, (begin?.seq ?? 0) - 1));
  }

  #pump(shared?: SharedBatches): void {
    const { ring } = this.#feed;
    while (this.#phase === "open" && this.#waitingSince === undefined) {
      // How things stood in mid-replay is nothing to a reader whose snapshot is still to come.
      if (this.#isSnapshotDue) this.#skipTo({ seq: this.#place.seq, note: ring.end.note });
      else if (!this.#isInSpan && !this.#comesToSpan()) return;
      if (ring.hasPassed(this.#place)) {
        this.#resync("slow_reader");
        continue;
      }
      const batch = this.#nextBatch(shared);
      if (batch) {
        this.#writeBatch(batch);
      } else if (this.#isSnapshotDue) {
        this.#writeSnapshot([], this.#isFirst ? this.#headId() : undefined);
      } else if (this.#feed.isEnded) {
        if (this.#farewell) this.#write(framed([this.#farewell]));
        this.#end();
      } else {
        return;
      }
    }
  }

  /** Goes to the beginning of what it is to see, if it is there. @returns false when there is nothing to do for now */
  #comesToSpan(): boolean {
    const { begin, isOver } = this.#options.span?.() ?? { isOver: false };
    if (begin !== undefined) {
      this.#place = begin;
      this.#isInSpan = true;
      return true;
    }
    this.#skipTo(this.#feed.ring.end);
    // It never began: how it ended is all there is of it.
    if (isOver) this.#writeSnapshot([], undefined);
    return this.#feed.isEnded && !isOver;
  }

  #nextBatch(shared: SharedBatches | undefined): Batch | undefined {
    const { endsAt, span } = this.#options;
    // A stream with an end of its own may have to be cut where the others go on.
    if (!shared || endsAt)
      return this.#feed.ring.batchFrom(this.#place, endsAt, this.#isSnapshotDue ? span?.().last : undefined);
    const known = shared.get(this.#place.seq);
    if (known?.from.note === this.#place.note) return known;
    const batch = this.#feed.ring.batchFrom(this.#place);
    if (batch) shared.set(this.#place.seq, batch);
    return batch;
  }

  #writeBatch(batch: Batch): void {
    this.#place = batch.to;
    this.#feed.figures.delivered += batch.count;
    // A line of the first event, in bytes of its own: the batch is shared.
    if (this.#isFirst) this.#write(framed([RETRY]));
    this.#write(batch.bytes);
    if (batch.isLast) this.#end();
  }

  /** Says that entries are gone and goes on from the head, with how things stand there. */
  #resync(reason: ResyncReason): void {
    this.#skipTo(this.#feed.ring.end);
    // Without ids there is nothing that it could go on from: it comes again, and asks how things stand.
    if (this.#feed.epoch === undefined) {
      this.#feed.onDropped("fell_behind");
      this.#end();
      return;
    }
    const notice = serverEventFrame(JSON.stringify({ type: "resync_required", reason }), this.#headId());
    this.#feed.onResync(reason);
    this.#writeSnapshot([notice], undefined);
  }

  #writeSnapshot(before: readonly Uint8Array[], id: string | undefined): void {
    const { events, over } = this.#options.snapshot();
    this.#isSnapshotDue = false;
    const frames = [...before, ...events.map((json, index) => serverEventFrame(json, index === 0 ? id : undefined))];
    if (this.#isFirst) frames.unshift(RETRY);
    // With no event to carry it, `retry:` stands alone, without the blank line that would make an empty event of it.
    if (frames.length === 1 && this.#isFirst) frames.unshift(Buffer.from(": ok\n"));
    if (frames.length > 0) this.#write(framed(frames));
    this.#feed.figures.delivered += before.length + events.length;
    if (over) this.#end();
  }

  /** Past the Channel's last event, too, which is then written at the end. */
  #skipTo(place: Place): void {
    this.#place = place;
    this.#farewell = this.#feed.farewell;
  }

  #headId(): string | undefined {
    const { epoch, ring } = this.#feed;
    return epoch === undefined ? undefined : formatEventId(epoch, ring.lastSeq);
  }

  #write(bytes: FramedBytes): void {
    this.#isFirst = false;
    this.#heartbeat.touch();
    const { figures } = this.#feed;
    const out = this.#sink.framing === "chunked" ? bytes.chunked : bytes.plain;
    figures.deliveredBytes += out.length;
    // `false` alone only means that the kernel did not take all of it at once.
    if (this.#sink.write(out) || this.#sink.queuedBytes <= QUEUE_BYTES) return;
    if (this.#waitingSince === undefined) figures.blocked += 1;
    this.#waitingSince = this.#feed.heartbeat.monotonic();
  }

  #resume(): void {
    if (!this.#unblock()) return;
    this.#guarded(() => this.#pump());
  }

  /** Nothing was written for one heartbeat interval. */
  #beat(): void {
    if (this.#waitingSince === undefined) {
      this.#guarded(() => this.#write(PING));
      return;
    }
    const isStalled = this.#feed.heartbeat.monotonic() - this.#waitingSince >= STALLED_MS;
    // Of an ended Channel nothing passes it by any more: it would keep the ring for ever.
    const isLost = this.#phase === "ending" || this.#feed.isEnded || this.#feed.ring.hasPassed(this.#place);
    if (!isStalled || !isLost) return;
    this.#feed.onDropped("does_not_read");
    this.#sink.destroy();
    this.#closed();
  }

  #end(): void {
    if (this.#phase !== "open") return;
    this.#unblock();
    this.#phase = "ending";
    this.#waitingSince = this.#feed.heartbeat.monotonic();
    this.#sink.end();
    this.#feed.onLeft(this);
  }

  #closed(): void {
    if (this.#phase === "closed") return;
    this.#unblock();
    if (this.#phase === "open") this.#feed.onLeft(this);
    this.#phase = "closed";
    this.#heartbeat.leave();
  }

  /** @returns false when it was not blocked. */
  #unblock(): boolean {
    if (this.#phase !== "open" || this.#waitingSince === undefined) return false;
    this.#waitingSince = undefined;
    this.#feed.figures.blocked -= 1;
    return true;
  }

  /** What fails for one reader ends that reader's connection and nothing else. */
  #guarded(step: () => void): void {
    try {
      step();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    this.#sink.destroy();
    this.#closed();
    this.#feed.onFailed(error);
  }
}
