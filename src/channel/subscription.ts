// A reader of a Channel, seen from both its sides: where the bytes go, and what whoever lets it follow says of it.

/** Where a Channel writes: one HTTP response, or a test's list. Its callbacks never run inside its own calls. */
export interface Sink {
  /** `chunked`: chunks arrive already framed for HTTP/1.1; `plain`: the bare event bytes. */
  readonly framing: "chunked" | "plain";
  /**
   * Takes whole frames. The buffer is shared between readers and must not be changed.
   * @returns false when the reader is behind; the bytes are taken either way, once.
   */
  write(bytes: Uint8Array): boolean;
  /** Bytes handed over that the kernel has not taken. */
  readonly queuedBytes: number;
  /** Sets what is called each time the queue has emptied after `write` returned false. */
  onDrain(resume: () => void): void;
  /** Sets what is called once, when the reader is gone for whatever cause, `end` and `destroy` included. */
  onClose(closed: () => void): void;
  /** Ends the stream in order, after what was written. */
  end(): void;
  /** Drops the connection. */
  destroy(): void;
}

/** How things stand at the head: JSON of server events, the `task_state` first, then the open approvals. */
export interface Snapshot {
  readonly events: readonly string[];
  /** What this reader follows is over: its stream ends after these. */
  readonly over?: boolean;
}

/** What comes next for a reader, in the order of messages and server events. Opaque outside of the Channel. */
export interface Place {
  readonly seq: number;
  readonly note: number;
}

/** A part of what a Channel carries. */
export interface Span {
  /** Where it begins; absent while it has not, and where that is not known any more. */
  readonly begin?: Place;
  /** The number of its last message; absent while it goes on, and where that is not known any more. */
  readonly last?: number;
  /** True when nothing more of it comes. */
  readonly isOver: boolean;
}

export interface SubscribeOptions {
  /** Where the reader was. Hostile input; empty or absent is a fresh connection. */
  readonly lastEventId?: string;
  /** Describes the head when it is called: at once, or later when the reader reaches the head. */
  readonly snapshot: () => Snapshot;
  /**
   * The reader sees this part alone: after the snapshot it waits for its beginning. Asked whenever something is due. Where
   * it ends for one that keeps up is for `endsAt` to say, which is needed with it; one that reads it later has the
   * snapshot at its end.
   */
  readonly span?: () => Span;
  /** The stream ends after an announced event with such a tag. */
  readonly endsAt?: (tag: string) => boolean;
}

/** Why a reader was disconnected. */
export type DropReason = "does_not_read" | "fell_behind";

export const RESYNC_REASONS = ["evicted", "other_epoch", "not_reached", "not_an_id", "slow_reader"] as const;
export type ResyncReason = (typeof RESYNC_REASONS)[number];
