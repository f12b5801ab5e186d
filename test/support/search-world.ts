// The world of the engine's search: random models, tools, people and children, whose every wait is a task of the
// scheduler, so that waits end in any order.

import fc from "fast-check";
import type { Clock } from "../../src/clock.js";
import type { Approver, LLMClient, LLMOutcome } from "../../src/engine/ports.js";
import { emptyTokenCounts } from "../../src/protocol/builders.js";
import type { CompleteMessage, OmniMessage } from "../../src/protocol/message.js";
import { SegmentWriter } from "../../src/protocol/segment.js";
import { ok } from "../../src/result.js";
import { Children, type ChildSession, type ParentLink } from "../../src/session/children.js";
import { counts, type Harness, harness, type ScriptedTool, scriptedTools } from "./engine.js";
import { metaOf } from "./messages.js";

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
  { weight: 4, arbitrary: fc.constant({ kind: "call" as const, tool: "child" }) },
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

const person = fc.constantFrom("policy", "allow", "allow", "deny", "clock", "never", "rejects");

const answers = fc.array(answer, { minLength: 1, maxLength: 6 });
const people = fc.array(person, { minLength: 1, maxLength: 8 });
/** A model that is deaf to aborts. */
const deaf = fc.boolean();

export const plan = fc.record({
  answers,
  people,
  deaf,
  /** What each child does, in the order in which they are made. */
  children: fc.array(fc.record({ answers: fc.array(answer, { minLength: 1, maxLength: 2 }), people, deaf }), {
    minLength: 1,
    maxLength: 3,
  }),
  /** What comes from outside, at some time of the run. */
  events: fc.array(fc.constantFrom("abort", "steer", "abort child"), { maxLength: 3 }),
  maxTurns: fc.constantFrom(-1, 1, 2),
  /** Committed Requests after which a context is compacted. */
  maxSessionTurns: fc.constantFrom(-1, 1, 2, 3),
  mode: fc.constantFrom("summarize" as const, "discard" as const),
  /** Ends the run with a record that is refused: the one of this number. */
  diskFullAt: fc.option(fc.integer({ min: 1, max: 25 }), { nil: undefined, freq: 6 }),
});
export type Plan = typeof plan extends fc.Arbitrary<infer T> ? T : never;
type Part = Pick<Plan, "answers" | "people" | "deaf">;

/** Every wait of the engine is a task of the scheduler: waits end in any order. */
export function scheduledClock(s: fc.Scheduler): Clock {
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

export function searchedModel(s: fc.Scheduler, { answers, deaf }: Part): LLMClient & { requests: CompleteMessage[][] } {
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

/** @param child what the tool `child` does; a child has no such tool */
export function searchedTools(s: fc.Scheduler, child?: ScriptedTool) {
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
    ...(child === undefined ? {} : { child }),
  });
  return Object.assign(tools, { running: () => running });
}

export function searchedPeople(s: fc.Scheduler, people: Plan["people"]): Approver {
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

export interface SearchedChild {
  id: string;
  firstRecord: OmniMessage;
  run: Harness;
  running(): number;
}

/** The real forwarding of children, with Tasks of the real engine in them. */
export function searchedChildren(s: fc.Scheduler, plans: Plan["children"], clock: Clock, parent: () => Harness) {
  const made: SearchedChild[] = [];
  const discarded: string[] = [];
  const children = new Children({
    clock,
    journal: {
      commit: (batch) => parent().journal.commit(batch),
      get fragments() {
        return parent().journal.fragments;
      },
    },
    approvalMode: () => "always-ask",
    announce: () => {},
    onPending: () => {},
    onEnded: () => {},
    discard: async (id) => void discarded.push(id),
    spawn: async () => {
      await s.schedule(Promise.resolve(), "spawn");
      const child = childOf(s, plans[made.length % plans.length] as Part, `session-child-${made.length + 1}`, clock);
      made.push(child);
      return ok(child.session);
    },
  });
  const tool: ScriptedTool = async function* (_args, { call, signal, pointTo }) {
    const context = { signal, pointTo, clock, toolCallId: call.payload.tool_call_id, maxOutputChars: 1000 };
    const { text } = await children.run({ prompt: "help", description: "help" }, context);
    if (text !== "") yield text;
  };
  return { tool, made, discarded, atWork: () => children.atWork };
}

function childOf(s: fc.Scheduler, part: Part, id: string, clock: Clock): SearchedChild & { session: ChildSession } {
  const environment = searchedTools(s);
  let link: ParentLink | undefined;
  const run = harness({
    model: searchedModel(s, { ...part, answers: [...part.answers] }),
    environment,
    approver: searchedPeople(s, part.people),
    clock,
    retry: { baseMs: 10, maxMs: 20, limit: 1 },
    written: () => s.schedule(Promise.resolve(), "child's disk"),
    onShown: (message) => link?.shown(message),
  });
  const firstRecord = metaOf(id);
  const session: ChildSession = {
    id,
    firstRecord,
    get recordCount() {
      return 1 + run.trace.length;
    },
    approvals: () => [],
    runFor: async (parent, prompt) => {
      link = parent;
      void run.run(prompt).then((outcome) => {
        link = undefined;
        parent.ended(outcome);
      });
      return ok(undefined);
    },
    stop: () => {
      run.abort();
      return true;
    },
    modeInherited: () => {},
  };
  return { id, firstRecord, run, session, running: () => environment.running() };
}
