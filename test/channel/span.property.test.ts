// A reader of one part of a Channel: whenever it comes, however it reads, it has that part from where it was and no more.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Channel } from "../../src/channel/channel.js";
import { HeartbeatWheel } from "../../src/channel/heartbeat.js";
import type { Place, Sink } from "../../src/channel/subscription.js";
import { manualClock } from "../support/manual-clock.js";

interface Part {
  begin?: Place;
  first?: number;
  last?: number;
  isOver: boolean;
}

/** A reader that can stop taking. */
class Reader implements Sink {
  readonly framing = "plain";
  readonly seqs: number[] = [];
  readonly events: { type: string; part?: number }[] = [];
  isEnded = false;
  isFull = false;
  #resume = () => {};

  get queuedBytes(): number {
    return this.isFull ? 1_000_000 : 0;
  }

  write(bytes: Uint8Array): boolean {
    expect(this.isEnded).toBe(false);
    for (const frame of Buffer.from(bytes).toString().split("\n\n")) {
      const data = /^data: (.*)$/m.exec(frame)?.[1];
      if (data === undefined) continue;
      const value = JSON.parse(data);
      if (value.type === "message") this.seqs.push(value.seq);
      else this.events.push(value);
    }
    return !this.isFull;
  }

  drain(): void {
    this.isFull = false;
    this.#resume();
  }

  onDrain(resume: () => void): void {
    this.#resume = resume;
  }
  onClose(): void {}
  end(): void {
    this.isEnded = true;
  }
  destroy(): void {
    throw new Error("a reader was dropped");
  }
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("publish" as const), count: fc.integer({ min: 1, max: 400 }) }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: "next" as const }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("join" as const),
      part: fc.nat(5),
      from: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stall" as const), reader: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("drain" as const), reader: fc.nat(9) }) },
  { weight: 3, arbitrary: fc.constant({ kind: "turn" as const }) },
);

test("readers of parts have exactly their part, and one end each", async () => {
  let complete = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
      const heartbeat = new HeartbeatWheel({ intervalMs: 1_000, clock: manualClock() });
      const channel = new Channel({ epoch: 7, maxEvents: 1_000_000, maxBytes: 1e9, heartbeat });
      const parts: Part[] = Array.from({ length: 7 }, () => ({ isOver: false }));
      let at = -1;
      const readers: { reader: Reader; part: number; expectedFrom: number; joinedWhen: string }[] = [];
      const next = () => {
        const old = parts[at];
        if (old !== undefined) {
          old.isOver = true;
          old.last = channel.lastSeq;
          channel.announce(JSON.stringify({ type: "end", part: at }), `end:${at}`);
        }
        at += 1;
        const part = parts[at];
        if (part === undefined) return;
        part.begin = channel.head;
        part.first = channel.lastSeq + 1;
        channel.announce(JSON.stringify({ type: "begin", part: at }));
      };
      const publish = (count: number) => {
        for (let n = 0; n < count; n++) channel.publish(JSON.stringify({ type: "message", seq: channel.lastSeq + 1 }));
      };
      for (const each of steps) {
        if (each.kind === "publish") publish(each.count);
        else if (each.kind === "next" && at < 5) next();
        else if (each.kind === "turn") await turn();
        else if (each.kind === "stall" && readers[each.reader]) readers[each.reader]!.reader.isFull = true;
        else if (each.kind === "drain") readers[each.reader]?.reader.drain();
        else if (each.kind === "join") {
          const reader = new Reader();
          const { part } = each;
          const span = parts[part] as Part;
          const lastEventId = each.from === null ? undefined : Math.floor(each.from * channel.lastSeq);
          const joinedWhen = span.isOver ? "over" : span.begin ? "running" : "waiting";
          const head = joinedWhen === "waiting" ? 0 : (lastEventId ?? channel.lastSeq);
          readers.push({ reader, part, expectedFrom: head + 1, joinedWhen });
          channel.subscribe(reader, {
            ...(lastEventId === undefined ? {} : { lastEventId: `7-${lastEventId}` }),
            span: () => span,
            endsAt: (tag) => tag === `end:${part}`,
            snapshot: () => ({
              events: [JSON.stringify({ type: span.isOver ? "end" : "snapshot", part })],
              over: span.isOver,
            }),
          });
        }
      }
      while (at < 6) next();
      next();
      for (const { reader } of readers) reader.drain();
      await turn();
      for (const { reader, part, expectedFrom } of readers) {
        const { first = 0, last = 0 } = parts[part] as Part;
        const from = Math.max(first, expectedFrom);
        const expected = Array.from({ length: Math.max(0, last - from + 1) }, (_, n) => from + n);
        expect(reader.seqs).toEqual(expected);
        expect(reader.isEnded).toBe(true);
        expect(reader.events.filter(({ type }) => type === "end")).toEqual([{ type: "end", part }]);
        expect(reader.events.every((event) => event.part === part)).toBe(true);
        complete += expected.length > 0 ? 1 : 0;
      }
    }),
    { numRuns: 150 },
  );
  expect(complete).toBeGreaterThan(100);
});
