// Reads the records of children that a view owes: what they had before the history's position, and what the stream leaves
// out of them. For one connection; what fails is read again until it is there.

import { childOf, isOwed } from "./children.js";
import { OmnidError } from "./omnid-error.js";
import type { View, ViewAction } from "./view-types.js";
import type { HistoryRecord } from "./wire.js";

export interface ChildReaderOptions {
  /** Ends with the connection: what is read for one position is nothing for the next. */
  signal: AbortSignal;
  view: () => View;
  take: (action: ViewAction) => void;
  /** Its records from an ordinal on. */
  read: (sessionId: string, from: number) => Promise<HistoryRecord[]>;
  /** Resolves when what failed may be tried again. */
  pause: () => Promise<void>;
}

export class ChildReader {
  readonly #options: ChildReaderOptions;
  /** Looked for and not there any more: the stream's messages are all there is. */
  readonly #gone = new Set<string>();
  #children: View["children"] | undefined;
  #isReading = false;

  constructor(options: ChildReaderOptions) {
    this.#options = options;
  }

  /** Looks at what is owed now. Returns at once. */
  look(): void {
    const { children } = this.#options.view();
    if (children === this.#children || this.#isReading) return;
    this.#children = children;
    if (this.#owed().length === 0) return;
    this.#isReading = true;
    void this.#readAll();
  }

  #owed(): string[] {
    return Object.entries(this.#options.view().children)
      .filter(([id, child]) => isOwed(child) && !this.#gone.has(id))
      .map(([id]) => id);
  }

  /** Until nothing is owed. Never rejects. */
  async #readAll(): Promise<void> {
    const { signal, pause } = this.#options;
    for (let owed = this.#owed(); owed.length > 0 && !signal.aborted; owed = this.#owed()) {
      let isWhole = true;
      for (const id of owed) if (!signal.aborted) isWhole = (await this.#readOne(id)) && isWhole;
      if (!isWhole) await pause();
    }
    this.#isReading = false;
  }

  /** @returns false when it is to be read again, later. */
  async #readOne(sessionId: string): Promise<boolean> {
    const { signal, view, take, read } = this.#options;
    const known = childOf(view(), sessionId);
    let records: HistoryRecord[] = [];
    try {
      records = await read(sessionId, known?.isRead ? known.count : 0);
    } catch (error) {
      if (!(error instanceof OmnidError) || error.code !== "session_not_found") return false;
      this.#gone.add(sessionId);
    }
    if (signal.aborted) return false;
    const before = childOf(view(), sessionId);
    take({ type: "child_records", sessionId, records });
    return childOf(view(), sessionId) !== before || this.#gone.has(sessionId);
  }
}
