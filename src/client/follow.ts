// Following a Session, as a caller sees it: a View that keeps itself current, and an async iterable of what comes.

import { Follower } from "./follower.js";
import type { OnError } from "./listeners.js";
import type { Backoff } from "./retrying.js";
import type { Transport } from "./transport.js";
import type { FollowStep } from "./view-store.js";
import type { View } from "./view-types.js";

export interface FollowOptions {
  /** Ends it, as `close` does. */
  signal?: AbortSignal;
  /** Records of the first history, and of each earlier page; 400 unless asked otherwise. */
  pageSize?: number;
  /** Without a byte for this long a connection counts as dead; 60 s, four of the server's usual heartbeats. */
  silenceMs?: number;
  backoff?: Backoff;
  /** Given what a subscriber throws, which ends nothing; the console has it otherwise. */
  onError?: OnError;
  /**
   * Asked before each stream, for a browser that shares few connections among many tabs: how to give the place back, or
   * undefined where there is none. Then the Session is looked at every `pollMs` (2 s) instead.
   */
  takeStreamSlot?: () => Promise<(() => void) | undefined>;
  pollMs?: number;
}

export interface Following extends AsyncIterable<FollowStep> {
  /** How things stand now. Immutable: another object after each change. */
  readonly view: View;
  /** Calls `listener` after changes, once for all that came together. @returns how to stop. */
  readonly subscribe: (listener: () => void) => () => void;
  /** Reads a page of older records, while `view.nextBefore` says that there are some. @throws OmnidError */
  readonly loadEarlier: () => Promise<void>;
  /** Reads again what waits: steering that was accepted is announced to nobody. @throws OmnidError */
  readonly refreshQueue: () => Promise<void>;
  /** Ends the wait for the next try; to be called when the network or the reader is back. */
  readonly retryNow: () => void;
  readonly close: () => void;
  /** Resolves when it is over: closed, or the Session is gone. Never rejects. */
  readonly closed: Promise<void>;
}

/**
 * Follows a Session from now on. Iterate from the start and no step is missed; the stream then waits for the one who
 * iterates, so that one must go on or return.
 */
export function follow(sessionId: string, transport: Transport, options: FollowOptions = {}): Following {
  const follower = new Follower(sessionId, transport, options);
  const closed = follower.run();
  return {
    get view() {
      return follower.view;
    },
    subscribe: follower.subscribe,
    loadEarlier: follower.loadEarlier,
    refreshQueue: follower.refreshQueue,
    retryNow: follower.retryNow,
    close: follower.close,
    closed,
    [Symbol.asyncIterator]: follower.steps,
  };
}
