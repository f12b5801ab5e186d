// The engine searched: random models, tools, people and disks in every order that a scheduler can find. Whatever
// happens, the stream keeps its guarantees, the Trace is whole, nothing runs twice or on, and the next prompt works.
//
// OMNID_SEARCH_RUNS sets the number of runs (500 unless given; a nightly search takes 20,000), OMNID_SEARCH_SEED and
// OMNID_SEARCH_PATH repeat one that failed.

import fc from "fast-check";
import { expect, test } from "vitest";
import type { Clock } from "../../src/clock.js";
import { Context } from "../../src/engine/context.js";
import type { Approver, LLMClient, LLMOutcome } from "../../src/engine/ports.js";
import { Unfinished } from "../../src/engine/unfinished.js";
import { emptyTokenCounts } from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { SegmentWriter } from "../../src/protocol/segment.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { counts, harness, type ScriptedTool, scriptedTools } from "../support/engine.js";
import { metaOf } from "../support/messages.js";
import { expectPairedContext } from "../support/paired.js";

const RUNS = Number(process.env.OMNID_SEARCH_RUNS ?? 500);
const SEED = process.env.OMNID_SEARCH_SEED;
const PATH = process.env.OMNID_SEARCH_PATH;

type Segment =
  | { kind: "say" | "think"; text: string }
  | { kind: "call"; tool: string }
  /** Left open: what a client does when it is aborted or the line breaks. */
  | { kind: "open" };

const segment: fc.Arbitrary<Segment> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("say", "think"), text: fc.constantFrom("a", "bb cc", "") }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("call" as const),
      tool: fc.constantFrom("quick", "slow", "silent", "throws", "unknown", "broken"),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "open" as const }) },
);

const OUTCOMES: Partial<LLMOutcome>[] = [
  { status: "failed", error: { kind: "auth", message: "no" } },
  { status: "failed", error: { kind: "content_filter", message: "no" } },
  { status: "failed", error: { kind: "context_overflow", message: "too long" } },
  { status: "failed", error: { kind: "invalid_request", message: "no", http_status: 400 } },
  { status: "timeout", error: { kind: "network", message: "lost" } },
  { status: "timeout", error: { kind: "rate_limit", message: "slow down" }, retryAfterMs: 50 },
  { status: "malformed", error: { kind: "malformed", message: "half" } },
];

interface Answer {
  segments: Segment[];
  outcome: Partial<LLMOutcome>;
  throws: boolean;
}

const answer: fc.Arbitrary<Answer> = fc.record({
  segments: fc.array(segment, { maxLength: 5 }),
  outcome: fc.oneof(
    { weight: 5, arbitrary: fc.constant<Partial<LLMOutcome>>({}) },
    { weight: 3, arbitrary: fc.constantFrom(...OUTCOMES) },
    { weight: 1, arbitrary: fc.constantFrom<Partial<LLMOutcome>>({ truncated: true }, { pause: true }) },
  ),
  throws: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
});

const person = fc.constantFrom("policy", "allow", "deny", "clock", "never", "rejects");

const plan = fc.record({
  answers: fc.array(answer, { minLength: 1, maxLength: 6 }),
  people: fc.array(person, { minLength: 1, maxLength: 8 }),
  /** What comes from outside, at some time of the run. */
  events: fc.array(fc.constantFrom("abort", "steer"), { maxLength: 3 }),
  maxTurns: fc.constantFrom(-1, 1, 2),
  /** Committed Requests after which a context is compacted. */
  maxSessionTurns: fc.constantFrom(-1, 1, 2, 3),
  mode: fc.constantFrom("summarize" as const, "discard" as const),
  /** Ends the run with a record that is refused: the one of this number. */
  diskFullAt: fc.option(fc.integer({ min: 1, max: 25 }), { nil: undefined, freq: 6 }),
  /** A model that is deaf to aborts. */
  deaf: fc.boolean(),
});
type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never;

/** Every wait of the engine is a task of the scheduler: waits end in any order. */
function scheduledClock(s: fc.Scheduler): Clock {
  let now = Date.parse("2026-01-02T03:04:05.000Z");
  return {
    now: () => now,
    monotonic: () => now,
    iso: () => new Date(now).toISOString(),
    after: () => () => {},
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        signal?.addEventListener("abort", () => resolve(), { once: true });
        void s.schedule(Promise.resolve(), "sleep").then(() => {
          now += ms;
          resolve();
        });
      }),
  };
}

function searchedModel(s: fc.Scheduler, { answers, deaf }: Plan): LLMClient & { requests: CompleteMessage[][] } {
  const requests: CompleteMessage[][] = [];
  let calls = 0;
  return {
    requests,
    async *stream(request) {
      requests.push([...request.messages]);
      // When the plan is over the model has nothing to add.
      const { segments, outcome, throws } = answers[requests.length - 1] ?? {
        segments: [SAY],
        outcome: {},
        throws: false,
      };
      const writer = new SegmentWriter(() => new Date(0).toISOString());
      for (const each of segments) {
        await s.schedule(Promise.resolve(), "model");
        if (request.signal.aborted && !deaf) return { status: "aborted", usage: emptyTokenCounts() };
        if (each.kind === "call") calls += 1;
        speak(writer, each, `call-${calls}`);
        const due = writer.take();
        if (due.length > 0) yield due;
      }
      await s.schedule(Promise.resolve(), "model");
      if (throws) throw new Error("a bug of ours");
      const whole: LLMOutcome = { status: "completed", usage: counts(10, 5), ...outcome };
      writer.endAll(whole.status === "completed" ? undefined : whole.status);
      const due = writer.take();
      if (due.length > 0) yield due;
      return whole;
    },
  };
}

const SAY: Segment = { kind: "say", text: "done" };

function speak(writer: SegmentWriter, each: Segment, id: string): void {
  writer.endAll();
  if (each.kind === "say") {
    const text = writer.openText();
    for (const part of each.text) text.append(part);
    text.end();
  } else if (each.kind === "think") {
    const thinking = writer.openThinking();
    thinking.append(each.text);
    thinking.end();
  } else if (each.kind === "open") writer.openText().append("open");
  else if (each.kind === "call") {
    const call = writer.openToolCall();
    call.identify(each.tool, id);
    call.append(each.tool === "broken" ? "not an object" : "{}");
    call.end();
  }
}

function searchedTools(s: fc.Scheduler) {
  let running = 0;
  const lasting = (texts: string[], end: () => void): ScriptedTool =>
    async function* () {
      running += 1;
      try {
        for (const text of texts) {
          await s.schedule(Promise.resolve(), "tool");
          yield text;
        }
        await s.schedule(Promise.resolve(), "tool");
        end();
      } finally {
        running -= 1;
      }
    };
  const tools = scriptedTools({
    quick: lasting([], () => {}),
    slow: lasting(["one ", "two ", "three"], () => {}),
    silent: lasting([], () => {}),
    throws: lasting(["half"], () => {
      throw new Error("the tool broke");
    }),
    broken: lasting([], () => {}),
  });
  return Object.assign(tools, { running: () => running });
}

function searchedPeople(s: fc.Scheduler, people: Plan["people"]): Approver {
  let asked = 0;
  return (_call, signal) => {
    const who = people[asked++ % people.length];
    if (who === "policy") return { decision: "allow", decidedBy: "policy" };
    if (who === "never") {
      return new Promise((resolve) => {
        signal.addEventListener("abort", () => resolve({ decision: "deny", decidedBy: "abort" }), { once: true });
      });
    }
    return s.schedule(Promise.resolve(), "person").then(() => {
      if (who === "rejects") throw new Error("nobody there");
      if (who === "clock") return { decision: "deny", decidedBy: "timeout", askedForMs: 1000 } as const;
      return { decision: who === "allow" ? "allow" : "deny", decidedBy: "user", recorded: () => {} } as const;
    });
  };
}

async function search(s: fc.Scheduler, made: Plan): Promise<void> {
  const model = searchedModel(s, made);
  const environment = searchedTools(s);
  let written = 0;
  let diskIsFull = made.diskFullAt !== undefined;
  const run = harness({
    model,
    environment,
    approver: searchedPeople(s, made.people),
    clock: scheduledClock(s),
    maxTurns: made.maxTurns,
    compaction: { maxContextLength: 1_000_000, maxSessionTurns: made.maxSessionTurns, mode: made.mode },
    retry: { baseMs: 10, maxMs: 20, limit: 2 },
    written: () => s.schedule(Promise.resolve(), "disk"),
    refuses: () => diskIsFull && ++written >= (made.diskFullAt ?? Number.POSITIVE_INFINITY),
  });
  const finish = async (prompt: string) => {
    let isOver = false;
    const outcome = run.run(prompt).finally(() => {
      isOver = true;
    });
    for (let idle = 0; !isOver && idle < 50; ) {
      await new Promise(setImmediate);
      if (s.count() > 0) await s.waitOne();
      else if (++idle > 3) run.abort(); // Somebody never answers.
    }
    expect(isOver, "the Task ends").toBe(true);
    expect(environment.running(), "tools that run on").toBe(0);
    return outcome;
  };
  for (const event of made.events) {
    void s.schedule(Promise.resolve(), event).then(() => (event === "abort" ? run.abort() : run.steer("aside")));
  }
  const first = await finish("go");
  expect(new Set(environment.started).size, "each call runs once").toBe(environment.started.length);

  if (first.error?.kind !== "storage") {
    held(run);
    expect(run.unfinished.isOpen, "nothing is owed").toBe(false);
  }
  diskIsFull = false;
  // What a failed disk left unfinished is closed as a restart would.
  if (run.unfinished.isOpen) run.close();
  while (s.count() > 0) await s.waitOne();
  const requests = model.requests.length;
  made.answers.length = requests;
  const next = await finish("and now");
  expect([next.status, model.requests.length > requests]).toEqual(["completed", true]);
  held(run);
}

/** What must hold of a Session at rest. */
function held(run: ReturnType<typeof harness>): void {
  const trace = [metaOf(), ...run.trace];
  expect(validateStream(run.stream, { mode: "stream" }), "the stream").toEqual([]);
  expect(validateStream(trace, { mode: "trace" }), "the Trace").toEqual([]);
  expect(compareStreamWithTrace(run.stream, trace, {}), "stream against Trace").toEqual([]);
  const again = new Context();
  const owed = new Unfinished();
  for (const record of run.trace) {
    again.push(record);
    owed.push(record);
  }
  const assembled = run.context.assemble();
  expect(again.assemble(), "a restart gives the same context").toEqual(assembled);
  expect(owed.isOpen).toBe(run.unfinished.isOpen);
  expectPairedContext(assembled);
}

test(
  "F1 F3 E8 E14 E15: whatever the order, the guarantees hold and the next prompt works",
  async () => {
    await fc.assert(
      fc.asyncProperty(fc.scheduler(), plan, (s, made) => search(s, { ...made, answers: [...made.answers] })),
      {
        numRuns: RUNS,
        ...(SEED === undefined ? {} : { seed: Number(SEED) }),
        ...(PATH === undefined ? {} : { path: PATH }),
      },
    );
  },
  60_000 + RUNS * 100,
);
