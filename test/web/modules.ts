// The page's modules are plain JavaScript, whose own types are checked with src/web/tsconfig.json. Tests take them by
// address and say here what they take them for.

import type { HistoryPage, HistoryRecord, Item, LinkState, Session, StreamEvent, View } from "../../src/web/types.d.ts";

interface Modules {
  "sse.js": {
    sseParser(): (text: string) => StreamEvent[];
    eventsOf(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<StreamEvent[], void, void>;
  };
  "view.js": {
    emptyView(): View;
    connected(view: View): View;
    withHistory(view: View, page: HistoryPage): View;
    withEarlier(view: View, page: HistoryPage): View;
    withRecords(view: View, records: HistoryRecord[]): View;
    withChildRecords(view: View, id: string, records: HistoryRecord[]): View;
    withEvent(view: View, event: StreamEvent): View;
  };
  "items.js": { itemsOf(view: View): Item[] };
  "markdown.js": { blocksOf(text: string): MarkdownBlock[]; spansOf(text: string): MarkdownSpan[] };
  "session-list.js": {
    withListEvent(sessions: Session[], event: { type: string; session?: Session; sessionId?: string }): Session[];
  };
  "tool-card.js": {
    readArguments(json: string): { telling: string; others: { name: string; value: string }[]; raw: string };
  };
  "standing.js": { linkText(link: LinkState, now: number): { text: string; tone: string; more: string } };
  "waiting.js": { backoffMs(failures: number, random?: () => number): number };
}

export interface MarkdownBlock {
  kind: string;
  source: string;
  [more: string]: unknown;
}

export interface MarkdownSpan {
  kind: string;
  text?: string;
  href?: string;
  spans?: MarkdownSpan[];
}

export async function load<K extends keyof Modules>(name: K): Promise<Modules[K]> {
  return (await import(new URL(`../../src/web/${name}`, import.meta.url).href)) as Modules[K];
}
