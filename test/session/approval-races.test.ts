// An approval that several want to settle at once: people, an interrupt, the clock, a change of the mode. Whoever is
// first, at whatever step: one decision on record, told truly to each who gave one, and at most one execution.

import { cpSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isPayload } from "../../src/protocol/guards.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import { makeWorkspace, runsOf } from "../support/crash-world.js";
import { type Script, type ScriptedModel, scriptedModel } from "../support/engine.js";
import { type ManualClock, manualClock } from "../support/manual-clock.js";
import { expectPairedContext } from "../support/paired.js";
import { hostOn, type ListReader, listReader, made, recordsOf, tempDir } from "../support/sessions.js";
import { MemoryFs } from "../trace/support.js";

const TIMEOUT_MS = 60_000;
const asks = (id: string): Script => ({
  steps: [
    {
      call: "edit_file",
      id,
      args: JSON.stringify({ file_path: id, old_string: "ran", new_string: "ran|" }),
    },
  ],
});
const SAY: Script = { steps: [{ say: "well" }] };

interface Stage {
  session: Session;
  reader: ListReader;
  model: ScriptedModel;
  clock: ManualClock;
  workspace: string;
}

const isAsked = (id: string) => (event: { data: Record<string, unknown> }) =>
  event.data.type === "approval_request" && JSON.stringify(event.data).includes(`"${id}"`);

/** A Session whose Task asks about call-1. */
async function asking(scripts: Script[] = [asks("call-1"), SAY, SAY], options: object = {}): Promise<Stage> {
  const workspace = makeWorkspace(join(tempDir(), "workspace"));
  const model = scriptedModel(scripts);
  const clock = manualClock();
  const process = { approvalTimeoutMs: TIMEOUT_MS };
  const host = await hostOn({ model, clock, fs: new MemoryFs(), dataDir: "/data", process, ...options });
  const session = await made(host.create({ workspace }, null));
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("go", {}));
  await reader.until(isAsked("call-1"));
  return { session, reader, model, clock, workspace };
}

/** Lets so many steps of whatever goes on pass. */
async function steps(count: number): Promise<void> {
  for (let step = 0; step < count; step++) await Promise.resolve();
}

/** At rest: one decision for the call, one output, one execution if it was allowed; the next prompt works. */
async function settledOnce({ session, reader, model, workspace }: Stage, id: string) {
  await session.settled();
  const records = await recordsOf(session);
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(compareStreamWithTrace(reader.messages, records, { joined: true, running: true })).toEqual([]);
  const decisions = records.flatMap((record) =>
    isPayload(record, "approval_decision") && record.payload.tool_call_id === id ? [record.payload] : [],
  );
  expect(decisions).toHaveLength(1);
  const [decision] = decisions;
  const ran = runsOf(workspace).find((run) => run.id === id)?.count;
  if (decision?.decision === "deny") expect(ran, "a call that was denied").toBe(0);
  else expect(ran).toBeLessThanOrEqual(1);
  expect(session.approvals()).toEqual([]);
  await made(session.submit("next", {}));
  await session.settled();
  expectPairedContext(model.requests.at(-1)?.messages ?? []);
  return { ...decision, ran };
}

/** How a client's answer was taken must be what is on record. */
function expectToldTruly(
  told: { ok: boolean; code?: string },
  decision: { decided_by?: string; decision?: string },
  wanted: "allow" | "deny",
): void {
  if (told.ok) expect(decision).toMatchObject({ decided_by: "user", decision: wanted });
  else {
    expect(["approval_already_decided", "approval_not_found"]).toContain(told.code);
    expect(decision.decided_by).not.toBe("user");
  }
}

const STEPS = [0, 1, 2, 3, 5, 8, 13, 21, 34];

describe("E5 E8: a decision against", () => {
  for (const wanted of ["allow", "deny"] as const) {
    test(`an abort, ${wanted} first and abort first`, async () => {
      for (const count of STEPS) {
        for (const isFirst of [true, false]) {
          const stage = await asking([asks("call-1"), SAY, SAY]);
          const { session } = stage;
          const decide = () => session.decide("call-1", { decision: wanted });
          let told: ReturnType<typeof decide>;
          if (isFirst) {
            told = decide();
            await steps(count);
            await session.abort();
          } else {
            const aborting = session.abort();
            await steps(count);
            told = decide();
            await aborting;
          }
          expectToldTruly(await told, await settledOnce(stage, "call-1"), wanted);
        }
      }
    });

    test(`the clock, ${wanted} first and time-out first`, async () => {
      for (const count of STEPS) {
        for (const isFirst of [true, false]) {
          const stage = await asking();
          const { session, clock } = stage;
          const decide = () => session.decide("call-1", { decision: wanted });
          let told: ReturnType<typeof decide>;
          if (isFirst) {
            told = decide();
            await steps(count);
            clock.advance(TIMEOUT_MS);
          } else {
            clock.advance(TIMEOUT_MS);
            await steps(count);
            told = decide();
          }
          const decision = await settledOnce(stage, "call-1");
          expectToldTruly(await told, decision, wanted);
          expect(decision.decided_by).toBe(isFirst ? "user" : "timeout");
          if (isFirst) expect(decision.ran).toBe(wanted === "allow" ? 1 : 0);
        }
      }
    });
  }

  test("a change of the mode: what is told is what is on record", async () => {
    for (const count of STEPS) {
      for (const isFirst of [true, false]) {
        const stage = await asking();
        const { session } = stage;
        const decide = () => session.decide("call-1", { decision: "deny" });
        let told: ReturnType<typeof decide>;
        if (isFirst) {
          told = decide();
          await steps(count);
          await made(session.patch({ approvalMode: "allow-all" }));
        } else {
          const patching = session.patch({ approvalMode: "allow-all" });
          await steps(count);
          told = decide();
          await made(patching);
        }
        const decision = await settledOnce(stage, "call-1");
        expectToldTruly(await told, decision, "deny");
        expect(decision.ran).toBe(decision.decision === "allow" ? 1 : 0);
      }
    }
  });

  test("everything at once: people, the clock, an abort and the mode", async () => {
    const stage = await asking();
    const { session, clock } = stage;
    const told = Array.from({ length: 20 }, (_, n) =>
      session.decide("call-1", { decision: n % 2 === 0 ? "allow" : "deny" }),
    );
    clock.advance(TIMEOUT_MS);
    const others = [session.abort(), session.patch({ approvalMode: "allow-all" })];
    const answers = await Promise.all(told);
    expect(answers.map(({ ok }) => ok)).toEqual([true, ...Array(19).fill(false)]);
    await Promise.all(others);
    const decision = await settledOnce(stage, "call-1");
    expect(decision).toMatchObject({ decision: "allow", decided_by: "user" });
  });
});

describe("E5: the approval of", () => {
  test("a Task that waited in the queue is nobody's to answer before its turn, and then one wins of twenty", async () => {
    const stage = await asking([asks("call-1"), SAY, asks("call-2"), SAY, SAY]);
    const { session, reader } = stage;
    await made(session.submit("queued", { whenBusy: "queue" }));
    expect(await session.decide("call-2", { decision: "allow" })).toMatchObject({ code: "approval_not_found" });
    expect(await session.decide("call-1", { decision: "deny" })).toMatchObject({ ok: true });
    await reader.until(isAsked("call-2"));
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) => session.decide("call-2", { decision: n % 2 === 0 ? "deny" : "allow" })),
    );
    expect(answers.filter(({ ok }) => ok)).toHaveLength(1);
    expect(await session.decide("call-1", { decision: "allow" })).toMatchObject({ code: "approval_already_decided" });
    expect(await settledOnce(stage, "call-2")).toMatchObject({ decision: "deny", ran: 0 });
  });

  test("E1: a Task that waits on after a restart is settled once by twenty, by an abort or by the clock", async () => {
    const dataDir = tempDir();
    const { session, workspace } = await asking([asks("call-1")], { fs: undefined, dataDir });
    for (const how of ["people", "abort first", "abort last", "clock first", "clock last"] as const) {
      makeWorkspace(workspace);
      const copy = join(tempDir(), "data");
      cpSync(dataDir, copy, { recursive: true });
      const clock = manualClock();
      const model = scriptedModel([SAY, SAY]);
      const host = await hostOn({ model, clock, dataDir: copy, process: { approvalTimeoutMs: TIMEOUT_MS } });
      const again = await host.find(session.id, null);
      if (again === undefined) throw new Error("the Session is gone");
      const reader = listReader();
      again.follow(reader, {});
      expect(again.approvals()).toEqual(session.approvals());
      if (how === "abort first") void again.abort();
      if (how === "clock first") clock.advance(TIMEOUT_MS);
      const told = Array.from({ length: 20 }, () => again.decide("call-1", { decision: "allow" }));
      if (how === "abort last") void again.abort();
      if (how === "clock last") clock.advance(TIMEOUT_MS);
      const answers = await Promise.all(told);
      const decision = await settledOnce({ session: again, reader, model, clock, workspace }, "call-1");
      const won = answers.filter(({ ok }) => ok);
      // An answer in the tick of the abort comes before the question is withdrawn, and counts.
      expect(won.length, how).toBe(how === "clock first" ? 0 : 1);
      expect(decision.decided_by, how).toBe(how === "clock first" ? "timeout" : "user");
      if (how === "people" || how === "clock last") expect(decision.ran, how).toBe(1);
    }
  });
});
