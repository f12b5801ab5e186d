// What following a Session asks of the server. No call hangs: silence ends it.

import type { Transport } from "./transport.js";
import { readJson, type WatchedBody, type WatchOptions, withBody } from "./watched.js";
import type { Approval, History, HistoryQuery, HistoryRecord, QueueItem, Session } from "./wire.js";

export const pathOf = (sessionId: string): string => `/sessions/${encodeURIComponent(sessionId)}`;

export class SessionReads {
  readonly #path: string;
  readonly #transport: Transport;
  readonly #options: WatchOptions;

  constructor(sessionId: string, transport: Transport, options: WatchOptions) {
    this.#path = pathOf(sessionId);
    this.#transport = transport;
    this.#options = options;
  }

  session(): Promise<Session> {
    return this.#json(this.#path);
  }

  history(query: HistoryQuery): Promise<History> {
    return this.#json(`${this.#path}/messages`, { ...query });
  }

  /** Those from the ordinal `from` on. */
  async childRecords(sessionId: string, from: number): Promise<HistoryRecord[]> {
    const query: HistoryQuery = from > 0 ? { after: from - 1 } : {};
    return (await this.#json<History>(`${pathOf(sessionId)}/messages`, { ...query })).messages;
  }

  async approvals(): Promise<Approval[]> {
    return (await this.#json<{ approvals: Approval[] }>(`${this.#path}/approvals`)).approvals;
  }

  async queue(): Promise<QueueItem[]> {
    return (await this.#json<{ items: QueueItem[] }>(`${this.#path}/queue`)).items;
  }

  /** Opens the stream behind `cursor` and gives it to `use`. */
  stream<T>(cursor: string | null, signal: AbortSignal, use: (watched: WatchedBody) => Promise<T>): Promise<T> {
    const headers = { accept: "text/event-stream", "last-event-id": cursor ?? undefined };
    return withBody(this.#transport, { path: `${this.#path}/stream`, headers }, { ...this.#options, signal }, use);
  }

  #json<T>(path: string, query: Record<string, string | number> = {}): Promise<T> {
    return readJson<T>(this.#transport, { path, query }, this.#options);
  }
}
