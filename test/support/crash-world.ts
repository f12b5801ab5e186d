// One life of a Session in which everything happens: parallel calls with approvals, what waits in the queue, steering, a
// recall, a failed try, a compaction, an interrupt, a change of settings. A test ends the process, or fails the disk, at
// any call to the file system, and holds what the next process finds against what the clients of this one were told.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { type Clock, systemClock } from "../../src/clock.js";
import type { LLMClient, LLMRequest } from "../../src/engine/ports.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import type { Input, SubmitOptions } from "../../src/session/types.js";
import { type Fault, type MemoryFs, parseRecords } from "../trace/support.js";
import { type Script, type ScriptedModel, scriptedModel } from "./engine.js";
import { expectPairedContext } from "./paired.js";
import { type ListReader, listReader, recordsOf } from "./sessions.js";

/** The process is over: what it would have done next does not happen. */
export class Dead extends Error {}

/** What the clients of a process were told. */
export interface Told {
  sessionId?: string;
  session?: Session;
  reader: ListReader;
  /** Tasks and steering that were answered for, with their text. */
  accepted: Map<string, string>;
  /** Tasks and steering of which a client does not know whether they were taken back. */
  recalling: Set<string>;
  recalled: Set<string>;
  /** Calls that a client tried to allow. */
  allowed: Set<string>;
  title: string | null;
}

export const nothingTold = (): Told => ({
  reader: listReader(),
  accepted: new Map(),
  recalling: new Set(),
  recalled: new Set(),
  allowed: new Set(),
  title: null,
});

export const CHANGES = new Set(["create", "write", "truncate", "sync", "rename", "remove", "makeFolder", "syncFolder"]);

/** Faults the call of that number, counted from 0, of those that change the disk. @returns how many there were so far */
export function faultAt(disk: MemoryFs, at: number, fault: Fault, onFault: (op: string) => void): () => number {
  let changes = 0;
  disk.plan = (_call, op, path) => {
    if (!CHANGES.has(op) || changes++ !== at) return undefined;
    onFault(`${op} ${path}`);
    return fault;
  };
  return () => changes;
}

/** Short waits are as good as none: the ladder's, the queue's. Those that bound a command stay. */
export function hurriedClock(): Clock {
  const clock = systemClock();
  const hurried = (ms: number) => (ms > 6_000 ? ms : Math.min(ms, 5));
  return {
    ...clock,
    after: (ms, run) => clock.after(hurried(ms), run),
    sleep: (ms, signal) => clock.sleep(hurried(ms), signal),
  };
}

/** A call that leaves one more mark each time it runs. */
const run = (id: string) => ({
  call: "edit_file",
  id,
  args: JSON.stringify({ file_path: id, old_string: "ran", new_string: "ran|" }),
});
export const CALLS = ["call-1", "call-2", "call-3", "call-4"];
const never = new Promise<void>(() => {});

/** A write of these may be cut between two records. */
const inParts = (text: string): Input => [
  { type: "text", text: "Mind:" },
  { type: "text", text },
];
const lastOf = (input: Exclude<Input, string>): string => {
  const part = input.at(-1);
  return part?.type === "text" ? part.text : "";
};

/** A model that answers by what it was asked last. */
export function livelyModel(): ScriptedModel {
  return modelOf((request) => {
    const last = request.messages.at(-1)?.payload;
    if (last?.type !== "text") return { steps: [{ say: "done" }] };
    if (last.text.startsWith("Summarize.")) return { steps: [{ say: "the summary" }] };
    if (last.text === "first") return { steps: [{ think: "hm" }, { say: "May I?" }, run("call-1"), run("call-2")] };
    if (last.text === "queued") {
      const outcome = { status: "timeout", error: { kind: "network", message: "lost" } } as const;
      return { steps: [{ say: "half" }, run("call-3")], outcome };
    }
    if (last.text === "third") return { steps: [{ begin: "so far" }, { wait: never }] };
    if (last.text === "fourth") return { steps: [run("call-4")] };
    return { steps: [{ say: "well" }] };
  });
}

/** A model that only ever has an answer. */
export const plainModel = (): ScriptedModel => modelOf(() => ({ steps: [{ say: "as you say" }] }));

function modelOf(scriptFor: (request: LLMRequest) => Script): ScriptedModel {
  const requests: LLMRequest[] = [];
  return {
    requests,
    stream: (request): ReturnType<LLMClient["stream"]> => {
      requests.push(request);
      return scriptedModel([scriptFor(request)]).stream(request);
    },
  };
}

/** Lives it. Refusals are taken as they come, so that a failing disk does not end it. @throws Dead */
export async function live(host: SessionManager, workspace: string, told: Told, dead: Promise<never>): Promise<void> {
  const alive = <T>(work: Promise<T>): Promise<T> => Promise.race([work, dead]);
  const made = await alive(host.create({ workspace }, null));
  if (!made.ok) return;
  const session = made.value;
  told.sessionId = session.id;
  told.session = session;
  session.follow(told.reader, {});
  const until = (fits: () => boolean) => alive(told.reader.until(fits));
  const isIdle = () => session.view().state === "idle" && session.view().queued === 0;
  const submit = async (input: Input, options: SubmitOptions = {}) => {
    const answer = await alive(session.submit(input, options));
    if (!answer.ok) return undefined;
    told.accepted.set(answer.value.steerId ?? answer.value.taskId, typeof input === "string" ? input : lastOf(input));
    return answer.value.taskId;
  };
  const decide = async (id: string, decision: "allow" | "deny") => {
    await until(() => session.approvals()[0]?.toolCall.payload.tool_call_id === id || isIdle());
    if (decision === "allow") told.allowed.add(id);
    await alive(session.decide(id, { decision }));
  };

  await submit("first");
  await until(() => session.approvals().length > 0 || isIdle());
  await submit(inParts("queued"), { whenBusy: "queue" });
  const unwanted = await submit("unwanted", { whenBusy: "queue" });
  await submit(inParts("aside"), { whenBusy: "steer" });
  if (unwanted !== undefined) {
    told.recalling.add(unwanted);
    if ((await alive(session.recall(unwanted))).ok) told.recalled.add(unwanted);
  }
  if ((await alive(session.patch({ title: "a title" }))).ok) told.title = "a title";
  await decide("call-1", "allow");
  await decide("call-2", "deny");
  await until(isIdle);
  await alive(session.compact());
  await until(isIdle);
  if ((await submit("third")) !== undefined) {
    await until(
      () => isIdle() || told.reader.messages.some((m) => isPayload(m, "partial_text") && m.payload.text === "so far"),
    );
    const steered = await alive(session.steer("late"));
    if (steered.ok) told.accepted.set(steered.value.steerId, "late");
    await alive(session.abort());
  }
  await until(isIdle);
  await alive(session.patch({ approvalMode: "allow-all" }));
  await submit(inParts("fourth"));
  // Where the change of the mode was refused.
  await decide("call-4", "allow");
  await until(isIdle);
}

/** A Workspace for one life; one that is there is made as new. */
export function makeWorkspace(path: string): string {
  mkdirSync(path, { recursive: true });
  for (const id of CALLS) writeFileSync(join(path, id), "ran");
  return path;
}

/** How often each call ran. */
export const runsOf = (workspace: string) =>
  CALLS.map((id) => ({ id, count: readFileSync(join(workspace, id), "utf8").length - "ran".length }));

/** The records that a disk holds of a Session, in order. */
export function recordsOn(disk: MemoryFs, id: string): OmniMessage[] {
  const paths = disk.paths().filter((path) => path.includes(`/sessions/${id}/trace-`) && path.endsWith(".jsonl"));
  return paths.sort().flatMap((path) => parseRecords(disk.file(path).bytes));
}

/** The calls of the last batch that wait for a person and for nothing else, by the words of the contract. */
export function waitingCalls(records: readonly OmniMessage[]): string[] {
  const begin = records.findLastIndex((record) => isPayload(record, "request_begin"));
  const turn = records.slice(Math.max(begin, 0));
  const end = turn.find((record) => isPayload(record, "request_end"));
  const isOver = turn.some((record) => isPayload(record, "abort"));
  if (end === undefined || !isPayload(end, "request_end") || end.payload.status !== "completed" || isOver) return [];
  const idsOf = (type: "approval_decision" | "tool_call_output") =>
    new Set(turn.flatMap((record) => (isPayload(record, type) ? [record.payload.tool_call_id] : [])));
  const calls = turn.flatMap((record) => (isPayload(record, "tool_call") ? [record.payload.tool_call_id] : []));
  const decided = idsOf("approval_decision");
  const answered = idsOf("tool_call_output");
  if (calls.some((id) => decided.has(id) && !answered.has(id))) return [];
  return calls.filter((id) => !decided.has(id));
}

/** Holds a Session that a new process found to what the clients of the last one were told. Nobody has acted yet. */
export async function expectKept(session: Session, told: Told, onDisk: readonly OmniMessage[]): Promise<void> {
  const records = await recordsOf(session);
  const running = session.view().state !== "idle";
  expect(validateStream(records, { mode: "trace", running }), "the Trace").toEqual([]);
  expect(records.slice(0, onDisk.length), "nothing recorded is harmed").toEqual(onDisk);
  const seen = told.reader.messages.filter((message) => !isPartial(message));
  expect(compareStreamWithTrace(seen, records, { running: true }), "what was seen").toEqual([]);
  if (told.title !== null) expect(session.view().title).toBe(told.title);
  for (const { data, name } of told.reader.events) {
    const { ended } = data as { ended?: { taskId: string; status: string } };
    if (name !== undefined && ended !== undefined) {
      expect(session.task(ended.taskId), "a Task that was told as ended").toMatchObject({
        state: "ended",
        status: ended.status,
      });
    }
  }
  for (const [id, text] of told.accepted) expect(session.holds(id), `${id} (${text}) is known`).toBe(true);
  const [first] = waitingCalls(onDisk);
  const asked = told.reader.events.find(
    ({ data }) => data.type === "approval_request" && JSON.stringify(data.toolCall).includes(`"${first}"`),
  );
  // One that nobody was asked yet has to be put on record before it is shown.
  if (first !== undefined && asked === undefined) {
    const reader = listReader();
    session.follow(reader, {});
    await reader.until(() => session.approvals().length > 0);
  }
  const pending = session.approvals().map(({ toolCall }) => toolCall.payload.tool_call_id);
  expect(pending, "what waits for a person").toEqual(first === undefined ? [] : [first]);
  if (asked !== undefined) expect(session.approvals()).toMatchObject([{ requestedAt: asked.data.requestedAt }]);
}

/** Answers what is asked, lets everything that waits run, prompts once more, and holds the end to the promises. */
export async function expectGoesOn(
  session: Session,
  told: Told,
  model: ScriptedModel,
  workspace: string,
): Promise<void> {
  const reader = listReader();
  session.follow(reader, {});
  const isIdle = () => session.view().state === "idle" && session.view().queued === 0;
  for (const id of ["call-1", "call-2", "call-3"]) {
    await reader.until(() => session.approvals().length > 0 || isIdle());
    if (session.approvals()[0]?.toolCall.payload.tool_call_id === id) {
      told.allowed.add(id);
      expect(await session.decide(id, { decision: "allow" })).toMatchObject({ ok: true });
    }
  }
  await reader.until(isIdle);
  await session.settled();
  const next = await session.submit("next", {});
  expect(next, "the next prompt").toMatchObject({ ok: true });
  await reader.until(isIdle);
  await session.settled();
  if (next.ok) expect(session.task(next.value.taskId)).toMatchObject({ state: "ended", status: "completed" });
  const { messages } = model.requests.at(-1) as LLMRequest;
  expectPairedContext(messages);
  expect(messages.at(-1)?.payload).toMatchObject({ text: "next" });
  await expectPromises(session, told, workspace);
}

/** At rest: what was promised came about once, what was taken back never, and no call ran twice or unasked. */
export async function expectPromises(session: Session, told: Told, workspace: string): Promise<void> {
  const records = await recordsOf(session);
  expect(validateStream(records, { mode: "trace" }), "the Trace at rest").toEqual([]);
  const listed = session.queue().map(({ itemId }) => itemId);
  for (const [id, text] of told.accepted) {
    const isSteering = id.startsWith("steer-");
    const places = new Set(
      records.flatMap(({ payload, timestamp }) => {
        const isText = "text" in payload && payload.text === text && "role" in payload && payload.role === "user";
        return isText && (!isSteering || payload.steer_id === id) ? [timestamp] : [];
      }),
    );
    const count = places.size + (listed.includes(id) ? 1 : 0);
    if (told.recalled.has(id)) expect(count, `${id} (${text}) was taken back`).toBe(0);
    else if (!told.recalling.has(id)) expect(count, `${id} (${text}) came about once`).toBe(1);
    else expect(count).toBeLessThanOrEqual(1);
    if (!isSteering) expect(session.task(id), `${id} (${text})`).toMatchObject({ state: "ended" });
  }
  for (const { id, count } of runsOf(workspace)) {
    expect(count, `runs of ${id}`).toBeLessThanOrEqual(1);
    if (count > 0 && id !== "call-4") expect(told.allowed, `who allowed ${id}`).toContain(id);
  }
}
