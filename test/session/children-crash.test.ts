// The process ends at any one call that changes the disk while a parent and its children are at work. The next process
// has of each child what anyone saw of it, waits for none, and points to none that is not there.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { ToolCallPayload } from "../../src/protocol/payloads.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { DATA, type Life, lifeUntil, NEVER } from "../support/crash-life.js";
import { hurriedClock, plainModel } from "../support/crash-world.js";
import { type Script, type ScriptedModel, scriptedModel } from "../support/engine.js";
import { ofChild, pointers } from "../support/family.js";
import { expectPairedContext } from "../support/paired.js";
import { hostOn, type ListReader, listReader, recordsOf, tempDir } from "../support/sessions.js";
import type { Fault, MemoryFs } from "../trace/support.js";

const ALL = process.env.OMNID_CRASH_ALL !== undefined;
const never = new Promise<void>(() => {});

const task = (prompt: string) => ({
  call: "run_subagent",
  id: `sub-${prompt}`,
  args: JSON.stringify({ prompt, description: prompt }),
});
const write = { call: "write_file", id: "same", args: '{"file_path":"f","content":"x"}' };

/** Of two children one is asked about, works and ends; the other speaks until somebody interrupts. */
function model(): ScriptedModel {
  const requests: ScriptedModel["requests"] = [];
  return {
    requests,
    stream: (request) => {
      requests.push(request);
      const last = request.messages.at(-1)?.payload;
      const text = last?.type === "text" ? last.text : "";
      const scripts: Record<string, Script> = {
        go: { steps: [{ say: "Two things." }, task("one"), task("two")] },
        one: { steps: [{ think: "hm" }, write] },
        two: { steps: [{ say: "well" }, { begin: "so far" }, { wait: never }] },
      };
      return scriptedModel([scripts[text] ?? { steps: [{ say: "done" }] }]).stream(request);
    },
  };
}

interface Told {
  parentId?: string;
  reader: ListReader;
}

const keyOf = ({ sessionId, toolCall }: { sessionId: string; toolCall: OmniMessage<ToolCallPayload> }) =>
  `${sessionId} ${toolCall.payload.tool_call_id}`;

async function live(host: SessionManager, workspace: string, told: Told, dead: Promise<never>): Promise<void> {
  const alive = <T>(work: Promise<T>): Promise<T> => Promise.race([work, dead]);
  const made = await alive(host.create({ workspace }, null));
  if (!made.ok) return;
  const parent = made.value;
  told.parentId = parent.id;
  parent.follow(told.reader, {});
  await alive(parent.submit("go", {}));
  const answered = new Set<string>();
  const isIdle = () => parent.view().state === "idle";
  const isDone = () => told.reader.messages.some((m) => m.origin === undefined && isPayload(m, "tool_call_output"));
  // In whichever order and company they come.
  const open = () => parent.approvals().filter((each) => !answered.has(keyOf(each)));
  for (;;) {
    await alive(told.reader.until(() => isIdle() || isDone() || open().length > 0));
    const [next] = open();
    if (next === undefined || isIdle()) break;
    answered.add(keyOf(next));
    const session = await alive(host.find(next.sessionId, null));
    if (session !== undefined) await alive(session.decide(next.toolCall.payload.tool_call_id, { decision: "allow" }));
  }
  await alive(parent.abort());
  await alive(told.reader.until(isIdle));
  await alive(parent.settled());
}

function liveUntil(at: number, fault: Fault, workspace: string): Promise<Life<Told>> {
  const told: Told = { reader: listReader() };
  return lifeUntil(at, fault, { model: model(), told, live: (host, dead) => live(host, workspace, told, dead) });
}

async function childrenOf(host: SessionManager, parentId: string): Promise<Session[]> {
  const listed = await host.list({ limit: 10, archived: false, parent: parentId }, null);
  if (!listed.ok) throw new Error(listed.message);
  const found = await Promise.all(listed.value.sessions.map(({ sessionId }) => host.find(sessionId, null)));
  return found.flatMap((session) => session ?? []);
}

async function expectNext(disk: MemoryFs, { parentId, reader }: Told): Promise<void> {
  const next = plainModel();
  const host = await hostOn({ model: next, fs: disk, dataDir: DATA, clock: hurriedClock() });
  const parent = parentId === undefined ? undefined : await host.find(parentId, null);
  if (parent !== undefined) {
    const children = await childrenOf(host, parent.id);
    const records = await recordsOf(parent);
    for (const id of pointers(records)) expect(children.map((child) => child.id)).toContain(id);
    let used = parent.ownUsage.total;
    for (const child of children) {
      expect(child.view()).toMatchObject({ state: "idle", pendingApprovals: 0 });
      const all = await recordsOf(child);
      expect(validateStream(all, { mode: "trace" }), "the child's Trace").toEqual([]);
      const seen = ofChild(reader.messages, child.id).filter((message) => !isPartial(message));
      const lines = new Set(all.map((record) => JSON.stringify(record)));
      for (const message of seen) expect(lines).toContain(JSON.stringify(message));
      used += child.ownUsage.total;
    }
    expect(parent.view().usage.total).toBe(used);
    const isWaiting = parent.view().state !== "idle";
    expect(validateStream(records, { mode: "trace", running: isWaiting }), "the parent's Trace").toEqual([]);
    // Only what the parent itself asks about may wait on: then no child was at work.
    if (isWaiting) expect(parent.approvals().every(({ origin }) => origin === undefined)).toBe(true);
    const again = listReader();
    parent.follow(again, {});
    await parent.abort();
    await again.until(() => parent.view().state === "idle");
    await parent.settled();
    expect(await parent.submit("and now?", {})).toMatchObject({ ok: true });
    await again.until(() => parent.view().state === "idle");
    await parent.settled();
    expectPairedContext(next.requests.at(-1)?.messages ?? []);
    expect(await host.remove(parent.id, null)).toBe(true);
    expect(host.figures.sessions).toBe(0);
  }
  await host.drain(0);
}

const crash = (done: boolean, part = 0): Fault => ({ kind: "crash", done, part });
const WAYS: [string, Fault][] = [
  ["not done", crash(false)],
  ["done", crash(true)],
  ["half done", crash(false, 0.5)],
];

test("without a fault one child ends and the other is interrupted with its parent", async () => {
  const workspace = join(tempDir(), "workspace");
  mkdirSync(workspace);
  const { told, changes } = await liveUntil(NEVER, crash(false), workspace);
  const outputs = told.reader.messages.flatMap((message) =>
    message.origin === undefined && isPayload(message, "tool_call_output") ? [message.payload.output] : [],
  );
  expect(outputs).toEqual(["done", "[interrupted: tool aborted by user]"]);
  expect(validateStream(told.reader.messages, { mode: "stream" })).toEqual([]);
  expect(changes).toBeGreaterThan(60);
});

test("D12 G5 G6: whichever change of the disk the process ends at, children are closed with their parent and nothing that was seen of them is lost", async () => {
  const root = tempDir();
  for (let at = 0, isOver = false; !isOver; at++) {
    for (const [way, fault] of ALL ? WAYS : WAYS.filter((_, index) => index === at % WAYS.length)) {
      const workspace = join(root, `${at} ${way}`);
      mkdirSync(workspace);
      const life = await liveUntil(at, fault, workspace);
      isOver = life.op === "";
      try {
        await expectNext(life.disk, life.told);
      } catch (error) {
        throw new Error(`change ${at} ${way}: ${life.op}`, { cause: error });
      }
    }
  }
}, 300_000);
