import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createTraceStore } from "../../src/trace/jsonl-store.js";
import type { FsyncPolicy } from "../../src/trace/trace-fs.js";
import type { Trace } from "../../src/trace/trace-store.js";
import { collectingLog, type Fault, linesOf, ManualClock, META, MemoryFs, record, settle } from "./support.js";

type Step =
  | { do: "append"; sizes: number[] }
  | { do: "rotate"; sizes: number[] }
  | { do: "burst"; groups: number[] }
  | { do: "idle" }
  | { do: "second" }
  | { do: "reopen" }
  | { do: "kill" };

const sizes = fc.array(fc.nat(300), { minLength: 1, maxLength: 3 });
const stepArb: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("append" as const), sizes }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("rotate" as const), sizes }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("burst" as const), groups: sizes }) },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: "idle" }, { do: "second" }, { do: "reopen" }, { do: "kill" }) },
);

const part = fc.double({ min: 0, max: 1, noNaN: true });
const faultArb: fc.Arbitrary<Fault> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant("error" as const),
      code: fc.constantFrom("EIO" as const, "ENOSPC" as const),
      done: fc.boolean(),
      part,
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("short" as const), part }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("crash" as const), done: fc.boolean(), part }) },
);
// Mostly calls that succeed, so that a Session gets far, and runs of faults, so that the repair of one meets the next.
const calmArb = fc.array(fc.constant(undefined), { maxLength: 12 });
const stormArb = fc.array(faultArb, { minLength: 1, maxLength: 3 });
const faultsArb = fc
  .array(fc.tuple(calmArb, stormArb), { maxLength: 15 })
  .map((spells): (Fault | undefined)[] => spells.flat(2));
const policyArb = fc.constantFrom<FsyncPolicy>("always", "interval", "off");

/** One Session over several processes on one disk, held against lists of what was acknowledged and what was not. */
class Lives {
  readonly clock = new ManualClock();
  readonly log = collectingLog();
  fs: MemoryFs;
  trace!: Trace;
  /** Records that must be there. */
  acked: string[] = [];
  /** Groups that were refused since the last acknowledged one: a crash may leave a part of one of them at the end. */
  refused: string[][] = [];
  #n = 0;

  constructor(readonly fsync: FsyncPolicy) {
    this.fs = new MemoryFs();
  }

  async start(): Promise<void> {
    const store = await this.#store();
    this.acked = [META(this.#n++)];
    await store.create("s", [this.acked], { "session.json": "{}" });
    await this.reload();
  }

  lines(sizes: readonly number[], isFile = false): string[] {
    return sizes.map((size, i) => (isFile && i === 0 ? META(this.#n++) : record(this.#n++, "é".repeat(size))));
  }

  async attempt(lines: string[], write: Promise<void>): Promise<void> {
    try {
      await write;
      this.acked.push(...lines);
      this.refused = [];
    } catch {
      this.refused.push(lines);
    }
  }

  /** A new process opens the same disk; what it finds is what the rest of the Session goes on with. */
  async reload(disk: MemoryFs = this.fs.afterKill()): Promise<void> {
    this.fs = disk;
    const opened = await (await this.#store()).open("s");
    expect(opened).toBeDefined();
    this.trace = opened!;
    const found = await linesOf(this.trace);
    expect(found.slice(0, this.acked.length)).toEqual(this.acked);
    const rest = found.slice(this.acked.length);
    if (rest.length > 0) {
      const origin = this.refused.find((group) => group[0] === rest[0]);
      expect(rest).toEqual(origin?.slice(0, rest.length));
    }
    this.acked = found;
    this.refused = [];
    await this.check();
  }

  async check(): Promise<void> {
    expect(this.trace.count).toBe(this.acked.length);
    expect(this.trace.contextStart).toBe(this.acked.findLastIndex((line) => line.includes("session_meta")));
  }

  #store() {
    return createTraceStore({ dir: "/data", fs: this.fs, fsync: this.fsync, clock: this.clock, log: this.log });
  }
}

async function run(lives: Lives, step: Step): Promise<void> {
  const { trace, clock } = lives;
  switch (step.do) {
    case "append": {
      const lines = lives.lines(step.sizes);
      return lives.attempt(lines, trace.append(lines));
    }
    case "rotate": {
      const lines = lives.lines(step.sizes, true);
      return lives.attempt(lines, trace.rotate(lines));
    }
    case "burst": {
      const groups = step.groups.map((size) => lives.lines([size]));
      const writes = groups.map((lines) => [lines, trace.append(lines)] as const);
      for (const [lines, write] of writes) await lives.attempt(lines, write);
      return;
    }
    case "idle":
      clock.advance(60_000);
      return settle();
    case "second":
      clock.advance(1000);
      return settle();
    case "reopen":
      await trace.close();
      return lives.reload();
    case "kill":
      return lives.reload();
  }
}

describe("whatever the disk refuses and wherever the process ends", () => {
  test("every acknowledged record is read back once, in order, and a refused one is never before an acknowledged one", async () => {
    await fc.assert(
      fc.asyncProperty(policyArb, fc.array(stepArb, { maxLength: 25 }), faultsArb, async (fsync, steps, faults) => {
        const lives = new Lives(fsync);
        await lives.start();
        let spent = 0;
        const faulty = () => {
          lives.fs.plan = () => faults[spent++] ?? undefined;
        };
        for (const step of steps) {
          faulty();
          if (step.do === "kill" || step.do === "reopen") lives.fs.plan = () => undefined;
          await run(lives, step);
          if (lives.fs.crashed) await lives.reload();
          else if (step.do !== "idle" && step.do !== "second") await lives.check();
        }
        await lives.reload();
        const lines = lives.lines([1]);
        await lives.trace.append(lines);
        expect(await linesOf(lives.trace, { from: lives.acked.length })).toEqual(lines);
      }),
      { numRuns: 300 },
    );
  });

  test("with `always`, a power failure at any call costs nothing that was acknowledged", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(stepArb, { maxLength: 15 }),
        faultsArb,
        part,
        fc.boolean(),
        async (steps, faults, keep, zeroed) => {
          const lives = new Lives("always");
          await lives.start();
          let spent = 0;
          for (const step of steps) {
            lives.fs.plan =
              step.do === "kill" || step.do === "reopen" ? () => undefined : () => faults[spent++] ?? undefined;
            await run(lives, step);
            if (lives.fs.crashed) await lives.reload(lives.fs.afterPowerFailure(keep, zeroed));
          }
          await lives.reload(lives.fs.afterPowerFailure(keep, zeroed));
        },
      ),
      { numRuns: 300 },
    );
  });

  test("with `interval`, a power failure costs at most the end of what was written since the last second", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(stepArb, { maxLength: 20 }), part, fc.boolean(), async (steps, keep, zeroed) => {
        const lives = new Lives("interval");
        await lives.start();
        lives.clock.advance(1000);
        await settle();
        for (const step of steps) await run(lives, step);
        const before = lives.acked;
        lives.clock.advance(1000);
        await settle();
        const late = lives.lines([5, 5]);
        await lives.trace.append(late);
        // What must be there is all but `late`; of that, a beginning may be.
        lives.refused = [late];
        lives.acked = before;
        await lives.reload(lives.fs.afterPowerFailure(keep, zeroed));
      }),
      { numRuns: 200 },
    );
  });
});
