// A reader of a Channel.

/** Where a Subscription writes: one HTTP response, or a test's list. */
export interface Sink {
  /** `chunked`: chunks arrive already framed for HTTP/1.1; `plain`: the bare event bytes. */
  readonly framing: "chunked" | "plain";
  /** @returns false when the reader is behind and `onDrain` should be awaited; the bytes are taken either way. */
  write(bytes: Uint8Array): boolean;
  /** Bytes handed over that the kernel has not taken. */
  readonly queuedBytes: number;
  onDrain(resume: () => void): void;
  /** Called once, when the reader is gone for whatever cause. */
  onClose(closed: () => void): void;
  /** Ends the stream in order. */
  end(): void;
  /** Drops the connection. */
  destroy(): void;
}

export interface Subscription {
  /** Ends the stream from this side; safe to call twice. */
  close(): void;
}
