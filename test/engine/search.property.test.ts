// The engine searched: random models, tools, people and disks in every order that a scheduler can find. Whatever
// happens, the stream keeps its guarantees, the Trace is whole, nothing runs twice or on, and the next prompt works.
//
// OMNID_SEARCH_RUNS sets the number of runs (500 unless given; a nightly search takes 20,000), OMNID_SEARCH_SEED and
// OMNID_SEARCH_PATH repeat one that failed.

import fc from "fast-check";
import { expect, test } from "vitest";
import { Context } from "../../src/engine/context.js";
import { Unfinished } from "../../src/engine/unfinished.js";
import { isPayload } from "../../src/protocol/guards.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { type Harness, harness } from "../support/engine.js";
import { metaOf } from "../support/messages.js";
import { expectPairedContext } from "../support/paired.js";
import {
  type Plan,
  plan,
  type SearchedChild,
  scheduledClock,
  searchedChildren,
  searchedModel,
  searchedPeople,
  searchedTools,
} from "../support/search-world.js";

const RUNS = Number(process.env.OMNID_SEARCH_RUNS ?? 500);
const SEED = process.env.OMNID_SEARCH_SEED;
const PATH = process.env.OMNID_SEARCH_PATH;

async function search(s: fc.Scheduler, made: Plan): Promise<void> {
  const model = searchedModel(s, made);
  const clock = scheduledClock(s);
  const children = searchedChildren(s, made.children, clock, () => run);
  const environment = searchedTools(s, children.tool);
  let written = 0;
  let diskIsFull = made.diskFullAt !== undefined;
  const run: Harness = harness({
    model,
    environment,
    approver: searchedPeople(s, made.people),
    clock,
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
    expect([children.atWork(), ...children.made.map((child) => child.running())], "children at work").toEqual(
      Array.from({ length: children.made.length + 1 }, () => 0),
    );
    return outcome;
  };
  for (const event of made.events) {
    void s.schedule(Promise.resolve(), event).then(() => {
      if (event === "abort") run.abort();
      else if (event === "steer") run.steer("aside");
      else children.made.at(-1)?.run.abort();
    });
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
  for (const child of children.made) heldChild(child, run, children.discarded.includes(child.id));
}

/** A child is lawful by itself, and its parent shows all of it; one that nothing points to has said nothing. */
function heldChild({ id, firstRecord, run }: SearchedChild, parent: Harness, isDiscarded: boolean): void {
  const trace = [firstRecord, ...run.trace];
  expect(validateStream(run.stream, { mode: "stream" }), "a child's stream").toEqual([]);
  expect(validateStream(trace, { mode: "trace" }), "a child's Trace").toEqual([]);
  expect(compareStreamWithTrace(run.stream, trace, {}), "a child's stream against its Trace").toEqual([]);
  const seen = parent.stream.flatMap(({ origin, ...message }) => (origin?.join() === id ? [message] : []));
  const pointer = parent.trace.filter((message) => isPayload(message, "subagent") && message.payload.session_id === id);
  expect(pointer, "the pointer").toHaveLength(isDiscarded ? 0 : 1);
  expect(seen, "what the parent shows of it").toEqual(isDiscarded ? [] : [firstRecord, ...run.stream]);
  if (isDiscarded) expect(run.trace).toEqual([]);
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
