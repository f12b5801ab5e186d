import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import * as make from "../../src/protocol/builders.js";
import { isCompleteModelMessage, isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import { AT, allowed, answered, begin, called, from, metaOf, said, thought } from "../support/messages.js";

/** Several producers, each in its own order, shuffled into one stream. */
function shuffle(producers: OmniMessage[][], picks: number[]): OmniMessage[] {
  const left = producers.map((messages) => [...messages]);
  const out: OmniMessage[] = [];
  for (let i = 0; left.some((messages) => messages.length > 0); i += 1) {
    const open = left.filter((messages) => messages.length > 0);
    out.push(open[(picks[i] ?? i) % open.length]!.shift()!);
  }
  return out;
}

const deltas = fc.array(fc.string({ unit: "binary", minLength: 1, maxLength: 4 }), { maxLength: 4 });
const stop = fc.constantFrom(undefined, "aborted" as const, "timeout" as const);
const images = fc.constantFrom<string[] | undefined>(undefined, ["data:image/png;base64,AA=="]);

const stream = fc
  .record({
    model: fc.array(fc.tuple(deltas, stop), { maxLength: 4 }),
    a: deltas,
    b: deltas,
    child: deltas,
    images,
    picks: fc.array(fc.nat({ max: 9 }), { maxLength: 60 }),
  })
  .map(({ model, a, b, child, images, picks }) => {
    const segments = model.flatMap(([parts, end], i) =>
      i % 3 === 0 ? said(parts, end) : i % 3 === 1 ? thought(parts, end) : called(`new_${i}`, parts.join(""), end),
    );
    const end = images === undefined ? {} : { images };
    return shuffle(
      [
        segments,
        answered("call_A", a, end),
        answered("call_B", b),
        from("one", said(child)),
        from("one", answered("call_A", child, end)),
      ],
      picks,
    );
  });

const push = (
  messages: OmniMessage[],
  into = new PartialAggregator(),
): { whole: OmniMessage[]; aggregator: PartialAggregator } => ({
  whole: messages.flatMap((message) => into.push(message) ?? []),
  aggregator: into,
});
const complete = (messages: OmniMessage[]): OmniMessage[] =>
  messages.filter((message) => isCompleteModelMessage(message));

describe("PartialAggregator", () => {
  test("what the fragments of each segment amount to is what its complete message says", () => {
    fc.assert(
      fc.property(stream, (messages) => {
        const stops = messages.flatMap((m, i) => (isPartial(m) && m.payload.event_type === "stop" ? [i] : []));
        const { whole } = push(messages);
        expect(whole).toHaveLength(stops.length);
        expect([...whole].map(keyOf).sort()).toEqual(complete(messages).map(keyOf).sort());
      }),
    );
  });

  test("A18: a reader that joins at any place gets the open fragments so far, and with the rest the whole", () => {
    fc.assert(
      fc.property(stream, fc.nat({ max: 80 }), (messages, at) => {
        const cut = Math.min(at, messages.length);
        const { aggregator } = push(messages.slice(0, cut));
        const fragments = aggregator.fragments();
        for (const fragment of fragments) expect(fragment.payload).toMatchObject({ event_type: "start" });
        const joined = push([...fragments, ...messages.slice(cut)]).whole;
        const straight = push(messages.slice(cut), aggregator).whole;
        expect(joined).toEqual(straight);
      }),
      { numRuns: 300 },
    );
  });

  test("A18: at each cut of a Task, what a joining reader sees passes the validator", () => {
    const task = [
      begin(),
      ...thought(["a", "b"]),
      ...called("call_A"),
      allowed("call_A"),
      ...shuffle([said(["c", "d"]), answered("call_A", ["1", "2"], { images: ["data:,"] })], [0, 1, 1, 0, 0, 1]),
    ];
    for (let cut = 0; cut <= task.length; cut += 1) {
      const { aggregator } = push(task.slice(0, cut));
      const seen = [...aggregator.fragments(), ...task.slice(cut)];
      expect([cut, validateStream(seen, { mode: "stream", joined: true, running: true })]).toEqual([cut, []]);
    }
  });

  test("closers close everything of the Session's own at any place, by the discipline", () => {
    fc.assert(
      fc.property(stream, fc.nat({ max: 80 }), (messages, at) => {
        const before = messages.slice(0, at);
        const { whole, aggregator } = push(before);
        const closers = aggregator.closers(AT, "aborted");
        for (const closer of complete(closers)) expect(closer.payload).toMatchObject({ stop_reason: "aborted" });
        push(closers, aggregator);
        expect(aggregator.fragments().every(({ origin }) => origin !== undefined)).toBe(true);
        // What had stopped is closed already: its complete message is on its way from whoever wrote the stop.
        const said = complete(before).map(keyOf);
        const onItsWay = whole.filter((message) => !said.includes(keyOf(message)));
        const own = [...before, ...onItsWay, ...closers].filter(({ origin }) => origin === undefined);
        const left = validateStream([begin(), ...own], { mode: "stream", running: true });
        expect(left.filter(({ rule }) => rule === "segments")).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });

  test("closers of the model leave the tools' outputs open", () => {
    const { aggregator } = push([...said("a").slice(0, 2), ...answered("call_A").slice(0, 2)]);
    expect(aggregator.closers(AT, "aborted", "model").map(({ payload }) => payload)).toMatchObject([
      { type: "partial_text", event_type: "stop", stop_reason: "aborted" },
      { type: "text", text: "a", stop_reason: "aborted" },
    ]);
  });

  test("closers leave children alone: each Session closes its own", () => {
    const { aggregator } = push(from("one", [metaOf("one"), ...said("a").slice(0, 2)]));
    expect(aggregator.closers(AT, "aborted")).toEqual([]);
    expect(aggregator.isEmpty).toBe(false);
    expect(aggregator.fragments()).toMatchObject([{ origin: ["one"], payload: { type: "partial_text", text: "a" } }]);
  });

  test("images that came in a fragment are in the start for a reader who joins, and in what it folds", () => {
    const open = answered("call_A", "x", { images: ["data:,"] }).slice(0, 3);
    const { aggregator } = push(open);
    const [start] = aggregator.fragments();
    expect(start?.payload).toMatchObject({ output: "x", images: ["data:,"] });
    const { whole } = push([start!, make.partialToolCallOutput(AT, "stop", { tool_call_id: "call_A" })]);
    expect(whole).toMatchObject([{ payload: { type: "tool_call_output", output: "x", images: ["data:,"] } }]);
  });

  test("fragments of a segment whose start was not seen are left alone", () => {
    const { whole, aggregator } = push(said("a").slice(1));
    expect(whole).toEqual([]);
    expect(aggregator.isEmpty).toBe(true);
  });
});

/** A message as text, without what fragments do not carry. */
function keyOf(message: OmniMessage): string {
  const { payload } = message;
  const content = isPayload(message, "tool_call") ? message.payload.name : "";
  return JSON.stringify([message.origin, payload, content]);
}
