// Server-sent events out of an answer's body, and what the events of a Session's stream say. A frame that the connection
// cut is dropped: the reader comes back with the last id that it has.

import { createParser, type EventSourceMessage } from "eventsource-parser";
import type { OmniMessage } from "../protocol/message.js";
import type { Silence } from "./silence.js";
import type { ChannelEvent, ServerEvent } from "./wire.js";

/** One event; `id` only where this event carried one. */
export type RawEvent = EventSourceMessage;

/**
 * The events of a body until it ends or breaks, one array for each read that completes any. Memory: one event.
 * @param silence ends the connection when nothing comes, heartbeats included; while the caller works it does not run.
 */
export async function* eventsOf(
  body: ReadableStream<Uint8Array>,
  silence?: Silence,
): AsyncGenerator<readonly RawEvent[], void, void> {
  let found: RawEvent[] = [];
  const parser = createParser({ onEvent: (event) => void found.push(event) });
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    for (;;) {
      const { done, value } = await (silence === undefined ? reader.read() : silence.during(reader.read()));
      if (done) return;
      parser.feed(decoder.decode(value, { stream: true }));
      if (found.length === 0) continue;
      const events = found;
      found = [];
      yield events;
    }
  } finally {
    // Closed or broken already when the stream ended by itself; nothing is left to say then.
    await reader.cancel().catch(() => {});
  }
}

/**
 * What an event of a Session's stream says.
 * @returns undefined for an event of a name that is not known here, `unreadable` for one that no server of ours sent.
 */
export function channelEventOf({ event, id, data }: RawEvent): ChannelEvent | "unreadable" | undefined {
  const value = objectOf(data);
  if (value === undefined) return "unreadable";
  if (event === "server_event") {
    return typeof value.type === "string"
      ? { kind: "server_event", id, event: value as unknown as ServerEvent }
      : "unreadable";
  }
  if (event !== undefined && event !== "message") return undefined;
  if (typeof value.type !== "string" || typeof value.payload !== "object" || value.payload === null) {
    return "unreadable";
  }
  return { kind: "message", id, message: value as unknown as OmniMessage };
}

/** The object in an event's data, or undefined. */
export function objectOf(data: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(data);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined; // a proxy's own words, or half of ours
  }
}
