// A Session as a server shows it, reduced to what a reader can see of it: a Trace, a stream with ids, histories that fit
// it, children. Steps are taken one by one, so that a test can cut anywhere.

import type { RawEvent } from "../../src/client/event-stream.js";
import type { History, HistoryRecord } from "../../src/client/index.js";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";

export type Step =
  /** A message of the stream, recorded too unless it is a fragment or a child's. */
  | { kind: "say"; message: OmniMessage }
  /** A Trace-only record, announced by a `task_state`. */
  | { kind: "record"; message: OmniMessage }
  /** A child's Trace-only record. */
  | { kind: "child-record"; child: string; message: OmniMessage }
  | { kind: "ask"; call: OmniMessage }
  | { kind: "state"; state: "running" | "idle" };

interface Numbered {
  seq: number;
  event: RawEvent;
}

export class ModelServer {
  readonly records: OmniMessage[];
  readonly #children = new Map<string, OmniMessage[]>();
  readonly #carried = new Set<string>();
  /** Children with a record that the stream left out, and no Request after it. */
  readonly #ahead = new Set<string>();
  readonly #fragments = new PartialAggregator();
  #ring: Numbered[] = [];
  #epoch = 1_785_000_000_000;
  #seq = 0;
  #state: "running" | "idle" = "idle";
  #asked: OmniMessage[] = [];
  /** Segments that have stopped and whose complete message is still to come. */
  readonly #closing = new Set<string>();
  readonly sessionId = "session-1";

  constructor(meta: OmniMessage) {
    this.records = [meta];
  }

  /** @returns what a connected reader is sent for it. */
  take(step: Step): RawEvent[] {
    switch (step.kind) {
      case "say":
        return this.#say(step.message);
      case "record":
        this.records.push(step.message);
        return [this.#taskState()];
      case "child-record":
        this.#childRecords(step.child).push(step.message);
        this.#ahead.add(step.child);
        return [];
      case "ask":
        this.#asked.push(step.call);
        return [this.#taskState(), this.#request(step.call)];
      case "state":
        this.#state = step.state;
        return [this.#taskState()];
    }
  }

  #say(message: OmniMessage): RawEvent[] {
    const child = message.origin?.at(-1);
    const { type, tool_call_id } = message.payload as { type?: string; tool_call_id?: string };
    const segment = JSON.stringify([message.origin, type?.replace("partial_", ""), tool_call_id]);
    if (!isPartial(message)) this.#closing.delete(segment);
    else if (message.payload.event_type === "stop") this.#closing.add(segment);
    if (isPartial(message)) this.#fragments.push(message);
    else if (child === undefined) this.records.push(message);
    else this.#childRecords(child).push(message);
    if (child !== undefined) this.#carried.add(child);
    if (child !== undefined && isPayload(message, "request_begin")) this.#ahead.delete(child);
    this.#seq += 1;
    const event: RawEvent = { data: JSON.stringify(message), id: this.#id() };
    this.#ring.push({ seq: this.#seq, event });
    const isSettled = (call: OmniMessage) =>
      isPayload(message, "approval_decision") &&
      isPayload(call, "tool_call") &&
      call.payload.tool_call_id === message.payload.tool_call_id;
    const before = this.#asked.length;
    this.#asked = this.#asked.filter((call) => !isSettled(call));
    return before === this.#asked.length ? [event] : [event, this.#taskState()];
  }

  /**
   * True while a segment is over as a fragment and not yet there as a message: no history shows it for that moment. And
   * while a child's record that the stream left out is behind all that it brought: no follower knows of it yet.
   */
  get isBetween(): boolean {
    return this.#closing.size > 0 || this.#ahead.size > 0;
  }

  /** The process was restarted: another epoch, an empty ring. */
  restart(): void {
    this.#epoch += 1;
    this.#seq = 0;
    this.#ring = [];
  }

  /** Forgets all but the newest `keep` messages. */
  evict(keep: number): void {
    this.#ring = keep === 0 ? [] : this.#ring.slice(-keep);
  }

  /** What comes first on a connection. */
  connect(cursor: string): RawEvent[] {
    const [epoch, seq] = cursor.split("-").map(Number) as [number, number];
    const oldest = this.#seq - this.#ring.length;
    if (epoch !== this.#epoch || seq < oldest || seq > this.#seq) {
      const reason = epoch === this.#epoch ? "evicted" : "other_epoch";
      const resync = {
        event: "server_event",
        data: JSON.stringify({ type: "resync_required", reason }),
        id: this.#id(),
      };
      return [resync, ...this.#snapshot()];
    }
    const replay = this.#ring.filter((entry) => entry.seq > seq).map((entry) => entry.event);
    const [first, ...others] = this.#snapshot();
    if (first === undefined) return replay;
    return [...replay, replay.length === 0 ? { ...first, id: this.#id() } : first, ...others];
  }

  history(options: { limit?: number; after?: number; before?: number } = {}): History {
    const { limit, after = -1, before = this.records.length } = options;
    const all = this.records.map((message, ordinal) => ({ ...message, ordinal })) as unknown as HistoryRecord[];
    const wanted = all.slice(after + 1, before);
    const messages = limit === undefined ? wanted : wanted.slice(-limit);
    const first = messages[0]?.ordinal ?? 0;
    const fragments = this.#fragments.fragments();
    const children = Object.fromEntries([...this.#carried].map((id) => [id, this.#childRecords(id).length]));
    return {
      messages,
      cursor: this.#id(),
      ...(fragments.length > 0 ? { live: { fragments } } : {}),
      ...(this.#carried.size > 0 ? { children } : {}),
      ...(first > 0 ? { nextBefore: first } : {}),
    };
  }

  childHistory(id: string, from: number): HistoryRecord[] {
    const own = this.#childRecords(id).map(({ origin: _, ...message }, ordinal) => ({ ...message, ordinal }));
    return own.slice(from) as unknown as HistoryRecord[];
  }

  #childRecords(id: string): OmniMessage[] {
    const found = this.#children.get(id) ?? [];
    this.#children.set(id, found);
    return found;
  }

  #id(): string {
    return `${this.#epoch}-${this.#seq}`;
  }

  #snapshot(): RawEvent[] {
    return [this.#taskState(), ...this.#asked.map((call) => this.#request(call))];
  }

  #taskState(): RawEvent {
    const pendingApprovals = this.#asked.length;
    const facts = { type: "task_state", state: this.#state, queued: 0, pendingApprovals, records: this.records.length };
    return { event: "server_event", data: JSON.stringify(facts) };
  }

  #request(call: OmniMessage): RawEvent {
    const sessionId = call.origin?.at(-1) ?? this.sessionId;
    const request = { type: "approval_request", sessionId, toolCall: call, requestedAt: call.timestamp };
    return { event: "server_event", data: JSON.stringify(request) };
  }
}
