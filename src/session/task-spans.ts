// Which part of what the Channel carries belongs to which Task: Tasks run one at a time, so it is one piece.

import type { Channel } from "../channel/channel.js";
import type { Place } from "../channel/subscription.js";

/** Tasks whose part is known; of older ones the Channel has seldom anything left. */
const KEPT = 256;

export class TaskSpans {
  readonly #channel: Channel;
  /** In the order of their beginnings. */
  readonly #spans = new Map<string, { begin: Place; last?: number }>();

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  /** What comes now is of this Task. */
  begin(taskId: string): void {
    this.#spans.set(taskId, { begin: this.#channel.head });
    const [oldest] = this.#spans.keys();
    if (this.#spans.size > KEPT && oldest !== undefined) this.#spans.delete(oldest);
  }

  /** What comes now is not. */
  end(taskId: string): void {
    const span = this.#spans.get(taskId);
    if (span !== undefined) span.last = this.#channel.lastSeq;
  }

  /** @returns an empty one of a Task that has not begun, or that is not known (any more) */
  of(taskId: string): { begin?: Place; last?: number } {
    return this.#spans.get(taskId) ?? {};
  }
}
