// The view's fold, held against a model of the server: whatever happens on the way, what a reader shows is the Trace.

import fc from "fast-check";
import { expect, test } from "vitest";
import { channelEventOf, type RawEvent } from "../../src/client/event-stream.js";
import { emptyView, type HistoryRecord, reduceView, type View, type ViewAction } from "../../src/client/index.js";
import { userText } from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import {
  AT,
  aborted,
  allowed,
  answered,
  begin,
  called,
  callOf,
  denied,
  from,
  Meter,
  metaOf,
  outputOf,
  said,
  thought,
} from "../support/messages.js";
import { ModelServer, type Step } from "./model-server.js";

const say = (messages: OmniMessage[]): Step[] => messages.map((message) => ({ kind: "say", message }));
const words = fc.array(fc.string({ minLength: 1, maxLength: 6 }), { minLength: 1, maxLength: 4 });

let calls = 0;
const nextId = () => {
  calls += 1;
  return `call_${calls}`;
};

const toolSteps = fc
  .record({ isAsked: fc.boolean(), isDenied: fc.boolean(), output: words, streams: fc.boolean() })
  .map(({ isAsked, isDenied, output, streams }): Step[] => {
    const id = nextId();
    return [
      ...say(called(id)),
      ...(isAsked ? [{ kind: "ask", call: callOf(id) } as const] : []),
      ...say([isDenied ? denied(id) : allowed(id)]),
      ...say(isDenied || !streams ? [outputOf(id, output.join(""))] : answered(id, output)),
    ];
  });

/** Two outputs whose fragments come in turns, the second call's first. */
const parallelSteps = fc.tuple(words, words).map(([one, two]): Step[] => {
  const [a, b] = [nextId(), nextId()];
  const [ofA, ofB] = [say(answered(a, one)), say(answered(b, two))];
  const mixed = ofB.flatMap((step, index) => [step, ...ofA.slice(index, index + 1)]);
  return [...say([...called(a), allowed(a), ...called(b), allowed(b)]), ...mixed, ...ofA.slice(ofB.length)];
});

const childSteps = fc.tuple(words, fc.boolean(), fc.option(words)).map(([answer, isAsked, steering]): Step[] => {
  const child = `session-child-${nextId()}`;
  const id = nextId();
  const pointer: OmniMessage = { timestamp: AT, type: "event_msg", payload: { type: "subagent", session_id: child } };
  const theirs = (messages: OmniMessage[]) => say(from(child, messages));
  return [
    ...say([pointer]),
    ...theirs([metaOf(child)]),
    { kind: "child-record", child, message: userText(AT, "look around") },
    ...theirs([begin(), ...called(id)]),
    ...(isAsked ? [{ kind: "ask", call: from(child, [callOf(id)])[0] as OmniMessage } as const] : []),
    ...theirs([allowed(id), ...answered(id, answer), ...said(answer)]),
    ...(steering === null
      ? []
      : [
          { kind: "child-record", child, message: userText(AT, steering.join("")) } as const,
          ...theirs([begin(), ...said(["well"])]),
        ]),
  ];
});

const segment = fc.oneof(
  words.map((deltas) => say(said(deltas))),
  words.map((deltas) => say(thought(deltas))),
  toolSteps,
  parallelSteps,
  childSteps,
);

const task = fc
  .record({
    prompt: words,
    segments: fc.array(segment, { minLength: 1, maxLength: 4 }),
    steering: fc.option(words),
    isAborted: fc.boolean(),
  })
  .map(({ prompt, segments, steering, isAborted }): Step[] => [
    { kind: "record", message: userText(AT, prompt.join("")) },
    { kind: "state", state: "running" },
    ...say([begin()]),
    ...segments.flat(),
    ...say(new Meter().tail(isAborted ? "aborted" : "completed")),
    ...(steering === null ? [] : [{ kind: "record", message: userText(AT, steering.join("")) } as const]),
    ...(isAborted ? say([aborted()]) : []),
    { kind: "state", state: "idle" },
  ]);

/** What happens to a reader, one of these for each turn. */
const mishap = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("advance" as const), count: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("deliver" as const), count: fc.integer({ min: 1, max: 9 }) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("reconnect" as const), count: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("evict" as const), count: fc.integer({ min: 0, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), count: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("repeat" as const), count: fc.integer({ min: 1, max: 5 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("lose" as const), count: fc.integer({ min: 1, max: 3 }) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("read" as const), count: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("children" as const), count: fc.constant(0) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("answer" as const), count: fc.constant(0) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("earlier" as const), count: fc.integer({ min: 1, max: 4 }) }) },
);

/** A reader on its way through a run: what it shows, and what is under way to it. */
class Reader {
  view: View;
  #inbox: RawEvent[] = [];
  #delivered: RawEvent[] = [];
  /** An answer to `GET /messages?after=`, read and not yet here. */
  #answer: HistoryRecord[] | undefined;
  readonly #server: ModelServer;
  readonly #limit: number;

  constructor(server: ModelServer, limit: number) {
    this.#server = server;
    this.#limit = limit;
    this.view = emptyView(server.sessionId);
    this.refresh();
  }

  take(action: ViewAction): void {
    const before = this.view;
    this.view = reduceView(before, action);
    expectSharing(before, this.view);
  }

  refresh(): void {
    this.take({ type: "history", page: this.#server.history({ limit: this.#limit }) });
    this.#answer = undefined;
    this.reconnect();
  }

  children(): void {
    for (const [sessionId, { isRead, isBehind, count }] of Object.entries(this.view.children)) {
      if (isRead && !isBehind) continue;
      const records = this.#server.childHistory(sessionId, isRead ? count : 0);
      this.take({ type: "child_records", sessionId, records });
    }
  }

  reconnect(): void {
    this.#inbox = this.#server.connect(this.view.cursor as string);
    this.take({ type: "connected" });
  }

  sent(events: RawEvent[]): void {
    this.#inbox.push(...events);
  }

  deliver(count: number): void {
    for (const event of this.#inbox.splice(0, count)) {
      this.#delivered.push(event);
      this.#takeEvent(event);
      if (this.view.stale === null) continue;
      this.refresh();
      return;
    }
  }

  repeat(count: number): void {
    const numbered = this.#delivered.filter(({ event, id }) => event === undefined && sameEpoch(id, this.view.cursor));
    for (const event of numbered.slice(-count)) this.#takeEvent(event);
  }

  lose(count: number): void {
    this.#inbox.splice(0, count);
  }

  read(): void {
    if (this.view.gap !== null) this.#answer = this.#server.history({ after: this.view.gap.from - 1 }).messages;
  }

  answer(): void {
    if (this.#answer !== undefined) this.take({ type: "records", records: this.#answer });
    this.#answer = undefined;
  }

  earlier(count: number): void {
    const before = this.view.nextBefore;
    if (before !== null) this.take({ type: "earlier", page: this.#server.history({ before, limit: count }) });
  }

  /** Lets everything arrive that is under way, as it does when nothing goes wrong any more. */
  settle(): void {
    this.reconnect();
    this.deliver(Number.POSITIVE_INFINITY);
    this.deliver(Number.POSITIVE_INFINITY);
    this.answer();
    this.read();
    this.answer();
    this.children();
  }

  #takeEvent(raw: RawEvent): void {
    const event = channelEventOf(raw);
    if (event === undefined || event === "unreadable") throw new Error(`not ours: ${raw.data}`);
    if (event.kind === "message") this.take({ type: "message", id: event.id, message: event.message });
    else this.take({ type: "server_event", id: event.id, event: event.event });
  }
}

const sameEpoch = (a: string | undefined, b: string | null) => a?.split("-")[0] === b?.split("-")[0];

/** What a renderer gets, without names of places. A child's records have no chain, what the stream brings of it has. */
const shown = ({ messages, fragments, approvals, children, usage, progress }: View) => ({
  messages: messages.map(({ message }) => message),
  fragments: fragments.map(({ key: _, ...fragment }) => fragment),
  approvals,
  usage,
  progress,
  children: Object.entries(children).map(([id, { before, since }]) => [
    id,
    [...before, ...since].map(({ message: { origin: _, ...message } }) => message),
  ]),
});
const recordsOf = ({ messages }: View) => messages.map(({ message }) => message);

/** What must hold at every moment: what is confirmed is the Trace, nothing stands twice. */
function expectTruth(view: View, server: ModelServer): void {
  const sure = view.confirmed - view.first;
  expect(recordsOf(view).slice(0, sure)).toEqual(server.records.slice(view.first, view.confirmed));
  const ofChildren = Object.values(view.children).flatMap(({ before, since }) => [...before, ...since]);
  const keys = [...view.messages, ...view.fragments, ...ofChildren].map(({ key }) => key);
  expect(new Set(keys).size).toBe(keys.length);
  const inTrace = server.records.slice(view.confirmed);
  // What is not confirmed yet stands in the order of the Trace, with Trace-only records missing.
  let at = 0;
  for (const message of recordsOf(view).slice(sure)) {
    while (at < inTrace.length && JSON.stringify(inTrace[at]) !== JSON.stringify(message)) at += 1;
    expect(at).toBeLessThan(inTrace.length);
    at += 1;
  }
}

/** What did not change keeps its identity. */
function expectSharing(before: View, after: View): void {
  const all = (view: View) =>
    [view, ...Object.values(view.children)].flatMap((each) =>
      "messages" in each ? each.messages : [...each.before, ...each.since],
    );
  const known = new Map(all(before).map((each) => [each.key, each]));
  for (const each of all(after)) if (known.has(each.key)) expect(known.get(each.key)).toBe(each);
  const from = Math.max(before.first, after.first);
  for (let ordinal = from; ordinal < Math.min(before.confirmed, after.confirmed); ordinal += 1) {
    expect(after.messages[ordinal - after.first]).toBe(before.messages[ordinal - before.first]);
  }
}

// It only computes, for some seconds, and for as long as it takes on a busy machine.
test("any cut of a run into history and stream, with reconnects, resyncs, restarts, losses and repeats, ends with the view of the whole history", {
  timeout: 300_000,
}, () => {
  fc.assert(
    fc.property(
      fc.array(task, { minLength: 1, maxLength: 3 }),
      fc.array(mishap, { maxLength: 60 }),
      fc.nat(30),
      fc.integer({ min: 2, max: 40 }),
      (tasks, mishaps, head, limit) => {
        const server = new ModelServer(metaOf());
        const steps = tasks.flat();
        for (const step of steps.splice(0, head)) server.take(step);
        const reader = new Reader(server, limit);
        for (const { do: what, count } of mishaps) {
          if (what === "advance") for (const step of steps.splice(0, count)) reader.sent(server.take(step));
          else if (what === "evict") server.evict(count);
          else if (what === "restart") server.restart();
          else reader[what](count);
          expectTruth(reader.view, server);
        }
        // Wherever the run is now: whoever comes fresh is shown the same, open fragments and approvals included.
        while (server.isBetween) for (const step of steps.splice(0, 1)) server.take(step);
        reader.settle();
        const fresh = new Reader(server, 1000);
        fresh.settle();
        expect(reader.view.task).toEqual(fresh.view.task);
        while (reader.view.nextBefore !== null) reader.earlier(100);
        expect(shown(reader.view)).toEqual(shown(fresh.view));

        for (const step of steps) server.take(step);
        reader.settle();

        const { view } = reader;
        const atRest = { stale: null, gap: null, fragments: [], approvals: [], confirmed: server.records.length };
        expect(view).toMatchObject(atRest);
        expect(recordsOf(view)).toEqual(server.records.slice(view.first));
        const whole = new Reader(server, 1000);
        whole.settle();
        expect(shown(reader.view)).toEqual(shown(whole.view));
      },
    ),
    { numRuns: 200 },
  );
});
