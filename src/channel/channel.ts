// A Session's stream: one publisher, any number of readers, each at its own place in one ring.
//
// Invariants: publishing never waits for a reader; a message is framed once; what is due in one flush (one a turn of the
// event loop at most) goes out as one buffer, shared by all readers at the same place; ids have no holes.

import { ChannelFigures } from "./channel-figures.js";
import { formatEventId } from "./event-id.js";
import { EventRing } from "./event-ring.js";
import { EACH_TURN, type FlushPace } from "./flush-pacer.js";
import { messageFrame, serverEventFrame } from "./frame.js";
import type { HeartbeatWheel } from "./heartbeat.js";
import type { BudgetShare, ReplayBudget } from "./replay-budget.js";
import { type Feed, type SharedBatches, Subscriber } from "./subscriber.js";
import type { DropReason, Place, ResyncReason, Sink, SubscribeOptions } from "./subscription.js";

/** What an operator may want to count or log. */
export type ChannelStat =
  | { readonly name: "resync_required"; readonly reason: ResyncReason }
  /** A reader was disconnected: it took nothing for a minute, or missed events that have no ids to go on from. */
  | { readonly name: "reader_dropped"; readonly reason: DropReason }
  /** A reader's stream was cut off by a fault on our side. */
  | { readonly name: "reader_failed"; readonly error: unknown };

export interface ChannelOptions {
  /** This life of the Channel. Without it there are no ids and no messages, only announcements. */
  readonly epoch?: number;
  /** The newest number that was given out in this epoch already; 0 unless given. */
  readonly lastSeq?: number;
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** What all rings of the process may hold together; no bound unless given. */
  readonly budget?: ReplayBudget;
  /** Where this Channel counts; one for the whole process. */
  readonly figures?: ChannelFigures;
  /** One for the whole process. */
  readonly heartbeat: HeartbeatWheel;
  /** When what was published is delivered; at the end of each turn unless given. */
  readonly pace?: FlushPace;
  /** Must not throw. */
  readonly onStat?: (stat: ChannelStat) => void;
}

export class Channel {
  readonly #ring: EventRing;
  readonly #epoch: number | undefined;
  readonly #feed: Feed;
  readonly #figures: ChannelFigures;
  readonly #share: BudgetShare | undefined;
  readonly #pace: FlushPace;
  readonly #subscribers = new Set<Subscriber>();
  readonly #flush = () => {
    this.#isScheduled = false;
    this.#deliver();
  };
  readonly #serve = () => {
    const shared: SharedBatches = new Map();
    for (const subscriber of this.#subscribers) subscriber.deliver(shared);
  };
  /** Every reader that keeps up has what comes before. */
  #flushed: Place;
  #isScheduled = false;
  #isEnded = false;
  #farewell: Uint8Array | undefined;

  constructor(options: ChannelOptions) {
    this.#figures = options.figures ?? new ChannelFigures();
    this.#ring = new EventRing(options, this.#figures);
    this.#share = options.budget?.join((bytes) => {
      const isOwing = !this.#ring.release(bytes, this.#served);
      return { held: this.#ring.bytes, isOwing };
    });
    this.#epoch = options.epoch;
    this.#flushed = this.#ring.end;
    this.#pace = options.pace ?? EACH_TURN;
    const onStat = options.onStat ?? (() => {});
    const channel = this;
    this.#feed = {
      ring: this.#ring,
      epoch: options.epoch,
      heartbeat: options.heartbeat,
      figures: this.#figures,
      get isEnded() {
        return channel.#isEnded;
      },
      get farewell() {
        return channel.#farewell;
      },
      onResync: (reason) => onStat({ name: "resync_required", reason }),
      onDropped: (reason) => onStat({ name: "reader_dropped", reason }),
      onFailed: (error) => onStat({ name: "reader_failed", error }),
      onLeft: (subscriber) => this.#left(subscriber),
    };
  }

  /** The id of the newest message; `<epoch>-0` before the first. */
  get headId(): string {
    return this.#idOf(this.#ring.lastSeq);
  }

  /** The number of the newest message, 0 before the first. */
  get lastSeq(): number {
    return this.#ring.lastSeq;
  }

  /** The place of whatever comes next. */
  get head(): Place {
    return this.#ring.end;
  }

  get subscribers(): number {
    return this.#subscribers.size;
  }

  /**
   * Appends one OmniMessage, already one line of JSON.
   * @returns its id.
   */
  publish(json: string): string {
    const id = this.#idOf(this.#ring.lastSeq + 1);
    this.#ring.append(messageFrame(id, json));
    this.#figures.published += 1;
    this.#appended();
    return id;
  }

  /**
   * Appends one server event, already one line of JSON: without a number, delivered at its place to those who are
   * connected, never replayed to one who connects later. `tag` is what `endsAt` sees.
   */
  announce(json: string, tag?: string): void {
    this.#ring.note(serverEventFrame(json), tag);
    this.#figures.announced += 1;
    this.#appended();
  }

  /**
   * Lets a reader follow: the gap since `lastEventId` or `resync_required`, the snapshot, then whatever comes.
   * The first bytes are written before this returns. The caller's state must agree with what it has published, here and
   * whenever the event loop turns: that is when `snapshot` is asked. A fault in it ends this stream only.
   */
  subscribe(sink: Sink, options: SubscribeOptions): void {
    if (this.#subscribers.size === 0) this.#flushed = this.#ring.end;
    const subscriber = new Subscriber(this.#feed, sink, options);
    this.#subscribers.add(subscriber);
    this.#figures.readers += 1;
    this.#share?.touch();
    subscriber.open();
  }

  /**
   * Ends every stream once it has all there is, `final` (JSON of a server event) last. One who subscribes later gets
   * the gap, the snapshot and `final`, and the end.
   */
  end(final?: string): void {
    if (this.#isEnded) return;
    // First: a reader may be served, and have to skip it, while it is announced.
    this.#isEnded = true;
    this.#farewell = final === undefined ? undefined : serverEventFrame(final);
    if (final !== undefined) this.announce(final);
    this.#deliver();
    this.#leaveBudget();
  }

  /** The ring counts no longer among those of the process: nobody will follow or publish any more. */
  dispose(): void {
    this.#share?.leave();
  }

  /** Where every reader that keeps up has come to. Without readers nothing is due to anybody. */
  get #served(): Place {
    return this.#subscribers.size === 0 ? this.#ring.end : this.#flushed;
  }

  #left(subscriber: Subscriber): void {
    if (!this.#subscribers.delete(subscriber)) return;
    this.#figures.readers -= 1;
    this.#leaveBudget();
  }

  /** An ended Channel keeps its ring for the readers that have not got all of it yet. */
  #leaveBudget(): void {
    if (this.#isEnded && this.#subscribers.size === 0) this.dispose();
  }

  #idOf(seq: number): string {
    if (this.#epoch === undefined) throw new Error("a Channel without an epoch has no ids");
    return formatEventId(this.#epoch, seq);
  }

  #appended(): void {
    // A burst larger than the ring: those who keep up are served before it goes.
    if (!this.#ring.trim(this.#flushed)) {
      this.#deliver();
      this.#ring.trim(this.#flushed);
    }
    // The same where all rings hold too much together and the others had not enough to give.
    this.#share?.hold(this.#ring.bytes);
    if (this.#share?.isOwing) this.#deliver();
    if (this.#isScheduled || this.#subscribers.size === 0) return;
    this.#isScheduled = true;
    this.#pace.schedule(this.#flush);
  }

  #deliver(): void {
    this.#flushed = this.#ring.end;
    if (this.#subscribers.size > 0) this.#pace.run(this.#serve);
    this.#share?.settle();
  }
}
