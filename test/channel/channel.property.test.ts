// Random histories against an array that never forgets. Each reader's events are checked one by one against that array:
// the next entry, or a skip that was announced; every snapshot describes exactly the place where it comes.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Channel } from "../../src/channel/channel.js";
import { EPOCH, manualChannel, ReaderSink, type SseEvent } from "./support.js";

type Entry = { seq: number; json: string } | { json: string };
const isMessage = (entry: Entry | undefined): entry is { seq: number; json: string } =>
  entry !== undefined && "seq" in entry;

interface Limits {
  maxEvents: number;
  maxBytes: number;
}

/** The array model: everything that was ever said, and what the bounds promise about it. */
class Model {
  readonly entries: Entry[] = [];
  readonly #limits: Limits;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get head(): number {
    return this.entries.filter(isMessage).length;
  }

  /** Everything from `index` on fits: the ring may not have passed it. */
  mustKeep(index: number): boolean {
    const due = this.entries.slice(index);
    const bytes = due.reduce((sum, entry) => sum + this.#frameBytes(entry), 0);
    const messages = due.filter(isMessage).length;
    const fits = messages <= this.#limits.maxEvents && due.length - messages <= this.#limits.maxEvents;
    return due.length <= 1 || (fits && bytes <= this.#limits.maxBytes);
  }

  /** More messages than the ring may hold come after `index`: it must have passed it. */
  mustPass(index: number): boolean {
    return this.entries.slice(index).filter(isMessage).length > this.#limits.maxEvents;
  }

  indexAfter(seq: number): number {
    return seq === 0 ? 0 : this.entries.findIndex((entry) => isMessage(entry) && entry.seq === seq) + 1;
  }

  #frameBytes(entry: Entry): number {
    const head = isMessage(entry) ? `id: ${EPOCH}-${entry.seq}\n` : "event: server_event\n";
    return Buffer.byteLength(`${head}data: ${entry.json}\n\n`);
  }
}

class CheckedReader {
  readonly sink: ReaderSink;
  readonly #model: Model;
  /** The next entry that is due. */
  #at: number;
  /** Server events before this index are older than the connection. */
  readonly #joinedAt: number;
  #isFirst = true;
  #isSnapshotDue = true;
  #mayResync: boolean;
  lastId: string | undefined;

  constructor(model: Model, lastEventId: string | undefined, framing: "chunked" | "plain") {
    this.#model = model;
    this.sink = new ReaderSink(framing);
    this.#joinedAt = model.entries.length;
    const seq = lastEventId?.startsWith(`${EPOCH}-`) ? Number(lastEventId.split("-")[1]) : undefined;
    const isKnown = seq !== undefined && seq <= model.head;
    this.#at = isKnown ? model.indexAfter(seq) : this.#joinedAt;
    this.#mayResync = lastEventId !== undefined && !isKnown;
    this.sink.onEvent = (event) => this.#check(event);
  }

  /** What the ring still owes this reader: until its snapshot, messages only. */
  #skipOlderNotes(): void {
    const { entries } = this.#model;
    const end = this.#isSnapshotDue ? entries.length : this.#joinedAt;
    while (this.#at < end && !isMessage(entries[this.#at])) this.#at += 1;
  }

  #check(event: SseEvent): void {
    const body = JSON.parse(event.data) as { type: string; at?: number; reason?: string };
    expect(event.retry).toBe(this.#isFirst ? "1000" : undefined);
    this.#skipOlderNotes();
    if (body.type === "resync_required") this.#checkResync(event, body.reason as string);
    else if (body.type === "task_state") this.#checkSnapshot(event, body.at as number);
    else if (body.type !== "approval_request") this.#checkEntry(event);
    this.#isFirst = false;
    if (event.id) this.lastId = event.id;
  }

  #checkEntry(event: SseEvent): void {
    const entry = this.#model.entries[this.#at];
    expect(event.data).toBe(entry?.json);
    expect(event.event).toBe(isMessage(entry) ? undefined : "server_event");
    expect(event.id).toBe(isMessage(entry) ? `${EPOCH}-${entry.seq}` : undefined);
    this.#at += 1;
    this.#mayResync = false;
  }

  #checkResync(event: SseEvent, reason: string): void {
    if (reason === "slow_reader") expect(this.#model.mustKeep(this.#at)).toBe(false);
    else if (reason === "evicted") expect(this.#isFirst && !this.#model.mustKeep(this.#at)).toBe(true);
    else expect(this.#isFirst && this.#mayResync).toBe(true);
    expect(event.id).toBe(`${EPOCH}-${this.#model.head}`);
    this.#at = this.#model.entries.length;
    this.#isSnapshotDue = true;
    this.#mayResync = false;
  }

  #checkSnapshot(event: SseEvent, at: number): void {
    expect(this.#isSnapshotDue).toBe(true);
    expect(this.#mayResync).toBe(false);
    expect(at).toBe(this.#model.entries.length);
    expect(this.#at).toBe(at);
    expect(event.id).toBe(this.#isFirst ? `${EPOCH}-${this.#model.head}` : undefined);
    this.#isSnapshotDue = false;
  }

  /** When the reader has caught up it has everything, its snapshot included. */
  expectComplete(): void {
    expect(this.#at).toBe(this.#model.entries.length);
    expect(this.#isSnapshotDue).toBe(false);
  }

  /** A reader that was passed by knows it once it reads again. */
  expectResyncIfPassed(resume: () => void): void {
    const before = this.sink.events.length;
    this.#skipOlderNotes();
    const mustPass = this.sink.queuedBytes > 0 && this.#model.mustPass(this.#at);
    resume();
    const skips = this.sink.events.slice(before).filter((event) => event.data.includes("resync_required")).length;
    expect(skips).toBeLessThanOrEqual(1);
    if (mustPass) expect(skips).toBe(1);
  }
}

const size = fc.oneof({ weight: 5, arbitrary: fc.nat(40) }, fc.nat(3_000), fc.constantFrom(40_000, 70_000, 200_000));
const command = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 12 }), size }),
  },
  // Enough for whole blocks, which readers that catch up share.
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("publish" as const),
      count: fc.integer({ min: 200, max: 600 }),
      size: fc.constantFrom(0, 300, 800),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("announce" as const), count: fc.integer({ min: 1, max: 8 }), size }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("turn" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("connect" as const),
      back: fc.option(fc.oneof(fc.integer({ min: -1, max: 12 }), fc.nat(700))),
      chunked: fc.boolean(),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant("stall" as const), reader: fc.nat(9), backlog: fc.constantFrom(0, 70_000) }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("drain" as const), reader: fc.nat(9) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("reconnect" as const), reader: fc.nat(9), stalled: fc.boolean() }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("hostile" as const), id: fc.string({ minLength: 1 }) }) },
);

function play(limits: Limits, commands: readonly (typeof command extends fc.Arbitrary<infer C> ? C : never)[]): void {
  const model = new Model(limits);
  const { channel, turn, stats } = manualChannel(limits);
  const readers: CheckedReader[] = [];
  const pick = (n: number) => readers[n % Math.max(1, readers.length)];
  const connect = (id: string | undefined, chunked: boolean, isStalled = false) => {
    const reader = new CheckedReader(model, id, chunked ? "chunked" : "plain");
    reader.sink.isStalled = isStalled;
    const snapshot = () => ({
      events: [
        JSON.stringify({ type: "task_state", at: model.entries.length }),
        JSON.stringify({ type: "approval_request" }),
      ],
    });
    const options = id === undefined ? { snapshot } : { snapshot, lastEventId: id };
    channel.subscribe(reader.sink, options);
    readers.push(reader);
    return reader;
  };
  for (const step of commands) {
    switch (step.do) {
      case "publish":
        for (let n = 0; n < step.count; n += 1) append(channel, model, "model_msg", step.size);
        break;
      case "announce":
        for (let n = 0; n < step.count; n += 1) append(channel, model, "tool_progress", step.size);
        break;
      case "turn":
        turn();
        for (const reader of readers) if (reader.sink.queuedBytes === 0) reader.expectComplete();
        break;
      case "connect":
        connect(step.back === null ? undefined : `${EPOCH}-${Math.max(0, model.head - step.back)}`, step.chunked);
        break;
      case "hostile":
        connect(step.id, false);
        break;
      case "stall":
        for (const reader of readers.slice(step.reader % Math.max(1, readers.length)).slice(0, 1)) {
          reader.sink.isStalled = true;
          reader.sink.backlog = step.backlog;
        }
        break;
      case "drain": {
        const reader = pick(step.reader);
        reader?.expectResyncIfPassed(() => reader.sink.drain());
        break;
      }
      case "reconnect": {
        const reader = pick(step.reader);
        if (!reader) break;
        reader.sink.drop();
        readers.splice(readers.indexOf(reader), 1);
        connect(reader.lastId, true, step.stalled);
        break;
      }
    }
  }
  for (const reader of readers) reader.expectResyncIfPassed(() => reader.sink.drain());
  turn();
  for (const reader of readers) reader.expectComplete();
  expect(channel.headId).toBe(`${EPOCH}-${model.head}`);
  expect(channel.subscribers).toBe(readers.length);
  for (const stat of stats) if (stat.name === "reader_failed") throw stat.error;
}

function append(channel: Channel, model: Model, type: string, size: number): void {
  const json = JSON.stringify({ type, n: model.entries.length, text: "é".repeat(size / 2) });
  if (type === "model_msg") {
    model.entries.push({ seq: model.head + 1, json });
    expect(channel.publish(json)).toBe(`${EPOCH}-${model.head}`);
  } else {
    model.entries.push({ json });
    channel.announce(json);
  }
}

test("every reader gets each entry once and in order or one announced skip, evicted by count or bytes (A6, A7, A9, C5, C7)", () => {
  const limits = fc.record({
    maxEvents: fc.oneof(fc.integer({ min: 1, max: 20 }), fc.constantFrom(500, 10_000)),
    maxBytes: fc.constantFrom(1, 2_000, 100_000, 400_000, 8_388_608),
  });
  // A message larger than the ring, which is kept in any case, made the notes behind it go.
  const large: Parameters<typeof play>[1] = [
    { do: "publish", count: 1, size: 200_000 },
    { do: "connect", back: null, chunked: false },
    { do: "stall", reader: 0, backlog: 0 },
    { do: "announce", count: 2, size: 40_000 },
    { do: "announce", count: 2, size: 0 },
  ];
  // What went while a reader was in mid-replay was only server events, which its snapshot makes up for.
  const inReplay: Parameters<typeof play>[1] = [
    { do: "connect", back: null, chunked: false },
    { do: "publish", count: 1, size: 200_000 },
    { do: "reconnect", reader: 0, stalled: true },
    { do: "announce", count: 2, size: 40_000 },
  ];
  fc.assert(fc.property(limits, fc.array(command, { maxLength: 60 }), play), {
    numRuns: Number(process.env.OMNID_SEARCH_RUNS ?? 400),
    examples: [
      [{ maxEvents: 2, maxBytes: 100_000 }, large],
      [{ maxEvents: 500, maxBytes: 1 }, inReplay],
    ],
  });
});

test("any id at all gets the gap after it or a reason, then the snapshot (A4, A19)", () => {
  const { channel } = manualChannel({ maxEvents: 50 });
  for (let n = 1; n <= 200; n += 1) channel.publish(JSON.stringify({ n }));
  const ids = fc.oneof(
    fc.tuple(fc.constantFrom(EPOCH, EPOCH - 1, EPOCH + 1, 0), fc.nat(260)).map(([epoch, seq]) => `${epoch}-${seq}`),
    fc.string({ unit: "binary", minLength: 1 }),
  );
  fc.assert(
    fc.property(ids, (id) => {
      const sink = new ReaderSink();
      channel.subscribe(sink, { lastEventId: id, snapshot: () => ({ events: ['{"type":"task_state"}'] }) });
      const seen = sink.events.map((event) =>
        event.event ? (JSON.parse(event.data).reason ?? "state") : Number(event.id?.split("-")[1]),
      );
      const [, epoch, seq] = /^(0|[1-9]\d{0,19})-(0|[1-9]\d{0,19})$/.exec(id) ?? [];
      if (epoch === undefined) expect(seen).toEqual(["not_an_id", "state"]);
      else if (Number(epoch) !== EPOCH) expect(seen).toEqual(["other_epoch", "state"]);
      else if (Number(seq) > 200) expect(seen).toEqual(["not_reached", "state"]);
      else if (Number(seq) < 150) expect(seen).toEqual(["evicted", "state"]);
      else expect(seen).toEqual([...Array.from({ length: 200 - Number(seq) }, (_, i) => Number(seq) + 1 + i), "state"]);
    }),
    { numRuns: 500 },
  );
});
