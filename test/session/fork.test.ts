import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Context } from "../../src/engine/context.js";
import { isPayload, isSessionMeta } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import type { ForkSession } from "../../src/session/types.js";
import { diskFs } from "../../src/trace/trace-fs.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { manualClock } from "../support/manual-clock.js";
import { linesOf, richTrace, upload } from "../support/rich-trace.js";
import { ended, hostOn, listReader, made, recordsOf, tempDir } from "../support/sessions.js";

const never = new Promise<never>(() => {});
const yes: Script = { steps: [{ say: "yes" }] };

async function forked(host: SessionManager, id: string, request: ForkSession): Promise<Session> {
  const result = await host.fork(id, request, null);
  if (result === undefined) throw new Error("there is no source");
  return made(Promise.resolve(result));
}

async function imported(host: SessionManager, text: string): Promise<Session> {
  return made(host.importTrace({ chunks: upload(text), damaged: "refuse", maxLineBytes: 1e6 }, null));
}

async function ask(session: Session, input: string): Promise<void> {
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit(input, {}));
  await reader.until(ended);
  reader.leave();
}

/** The text of each record without what is a Session's own. */
const anonymous = (records: readonly OmniMessage[]): OmniMessage[] =>
  records.map((record) =>
    isSessionMeta(record) ? { ...record, payload: { ...record.payload, session_id: "", agent_state: "" } } : record,
  );

/** Where a history may end, told from brackets alone. */
function committedOrdinals(records: readonly OmniMessage[]): Set<number> {
  const places = new Set<number>();
  const owed = new Set<string>();
  let cut: string[] = [];
  let isOpen = false;
  let opening = 0;
  for (const [ordinal, record] of records.entries()) {
    const { payload } = record;
    const next = records[ordinal + 1];
    if (isPayload(record, "request_begin") || isPayload(record, "compaction_begin")) isOpen = true;
    else if (isPayload(record, "request_end") || isPayload(record, "compaction_end")) {
      isOpen = record.payload.status === "aborted";
      if (record.payload.status === "completed") for (const id of cut) owed.add(id);
      cut = [];
    } else if (isPayload(record, "abort")) isOpen = false;
    else if (isPayload(record, "tool_call") && record.payload.stop_reason === undefined)
      owed.add(record.payload.tool_call_id);
    else if (isPayload(record, "tool_call")) cut.push(record.payload.tool_call_id);
    else if (isPayload(record, "tool_call_output")) owed.delete(record.payload.tool_call_id);
    else if (isSessionMeta(record) && ordinal > 0) opening = 1;
    else if (opening > 0) opening = next !== undefined && "text" in payload && isCopy(records, ordinal) ? 1 : 0;
    if (!isOpen && owed.size === 0 && opening === 0) places.add(ordinal);
  }
  return places;
}

/** True where the record after this one is a copy of what waited before the new context. */
function isCopy(records: readonly OmniMessage[], ordinal: number): boolean {
  const meta = records.findLastIndex((record, at) => at <= ordinal && isSessionMeta(record));
  const after = JSON.stringify(records[ordinal + 1]);
  return records.slice(0, meta).some((record) => record.type === "model_msg" && JSON.stringify(record) === after);
}

test("F4: a fork at each record of a Session in which everything happened has its history, or is refused where something is open", async () => {
  const records = await richTrace();
  const committed = committedOrdinals(records);
  const model = scriptedModel(records.map(() => yes));
  const dataDir = tempDir();
  const host = await hostOn({ model, dataDir });
  const source = await imported(host, linesOf(records));
  const folder = join(dataDir, "sessions", source.id);
  const before = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  const own = await recordsOf(source);
  expect(validateStream(own, { mode: "trace" })).toEqual([]);
  expect(committed.size).toBeGreaterThan(15);
  for (const ordinal of records.keys()) {
    const result = await host.fork(source.id, { ordinal }, null);
    expect(result?.ok === true ? "made" : result?.code, `at ${ordinal}: ${JSON.stringify(records[ordinal])}`).toBe(
      committed.has(ordinal) ? "made" : "ordinal_not_committed",
    );
    if (result?.ok !== true) continue;
    const fork = result.value;
    expect(anonymous(await recordsOf(fork))).toEqual(anonymous(own.slice(0, ordinal + 1)));
    const usage = own.slice(0, ordinal + 1).findLast((record) => isPayload(record, "token_usage"));
    expect(fork.view().usage.total).toBe(
      usage !== undefined && isPayload(usage, "token_usage") ? usage.payload.session.total : 0,
    );
    const context = new Context();
    for (const record of own.slice(0, ordinal + 1)) context.push(record);
    await ask(fork, "next");
    const sent = model.requests.at(-1)?.messages.map(({ payload }) => payload);
    expect(sent?.slice(0, -1)).toEqual(context.assemble().map(({ payload }) => payload));
    expect(sent?.at(-1)).toMatchObject({ text: "next" });
    expect(validateStream(await recordsOf(fork), { mode: "trace" })).toEqual([]);
  }
  expect(readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"))).toEqual(before);
});

test("a fork before a Prompt that is asked the same sends what the source sent", async () => {
  const model = scriptedModel([
    { steps: [{ think: "hm" }, { call: "read_file", id: "c1", args: '{"file_path":"none"}' }] },
    { steps: [{ say: "one" }] },
    { steps: [{ say: "two" }] },
    ...Array.from({ length: 6 }, () => yes),
  ]);
  const host = await hostOn({ model });
  const source = await made(host.create({ approvalMode: "allow-all" }, null));
  await ask(source, "first");
  await ask(source, "second");
  const live = [...model.requests];
  const records = await recordsOf(source);
  const inputs = ["first", "second"];
  for (const [n, input] of inputs.entries()) {
    const ordinal = records.findIndex(({ payload }) => "text" in payload && payload.text === input);
    const fork = await forked(host, source.id, { ordinal: ordinal - 1 });
    await ask(fork, input);
    const { sessionId, messages, signal: _, isCallIdTaken: __, ...rest } = model.requests[live.length + n] ?? {};
    const was = live[n === 0 ? 0 : 2];
    expect(rest).toEqual({ systemPrompt: was?.systemPrompt, tools: was?.tools, thinkingLevel: was?.thinkingLevel });
    expect(messages?.map(({ payload }) => payload)).toEqual(was?.messages.map(({ payload }) => payload));
    expect(sessionId).toBe(fork.id);
  }
});

test("what a Session is set to goes with the fork, and so does its owner; that it was archived does not", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const settings = { approvalMode: "read-only", thinkingLevel: "high", title: "mine", maxTurns: 7 } as const;
  const source = await made(host.create({ ...settings, tools: ["read_file"], systemPrompt: "Be." }, "alice"));
  await source.patch({ archived: true });
  const fork = await host.fork(source.id, { ordinal: 0 }, "alice");
  if (fork?.ok !== true) throw new Error("no fork");
  const { value } = fork;
  expect(value.record).toMatchObject({ ...settings, tools: ["read_file"], owner: "alice", archived: false });
  expect(value.view().workspace).toBe(source.view().workspace);
  const records = await recordsOf(value);
  expect(anonymous(records)).toEqual(anonymous(await recordsOf(source)));
  const agentState = join(dataDir, "sessions", value.id);
  expect(records[0]?.payload).toMatchObject({ session_id: value.id, agent_state: agentState });
  expect(await host.fork(source.id, { ordinal: 0 }, "bob")).toBeUndefined();
});

test("a fork under another model says so in its session_meta, and a model that is not there is refused", async () => {
  const other = { provider: "other", modelId: "big", protocol: "demo" as const, baseUrl: "", contextWindow: 5 };
  const spec = { ...other, vision: false, thinking: false };
  const model = scriptedModel([]);
  const host = await hostOn({
    model,
    process: {
      models: {
        defaultModel: { provider: "test", modelId: "scripted" },
        views: () => [],
        find: (provider) => (provider === "nobody" ? undefined : { spec, available: true }),
        client: () => model,
      },
    },
  });
  const source = await made(host.create({}, null));
  const fork = await forked(host, source.id, { ordinal: 0, provider: "other", modelId: "big" });
  expect(fork.view()).toMatchObject({ provider: "other", modelId: "big" });
  expect((await recordsOf(fork))[0]?.payload).toMatchObject({
    provider: "other",
    model_id: "big",
    model_context_window: 5,
  });
  const refused = await host.fork(source.id, { ordinal: 0, provider: "nobody", modelId: "big" }, null);
  expect(refused).toMatchObject({ ok: false, code: "unknown_model" });
});

test("a place that is not there is refused, and so is a Session that runs", async () => {
  const model = scriptedModel([{ steps: [{ begin: "x" }, { wait: never }] }]);
  const dataDir = tempDir();
  const host = await hostOn({ model, dataDir });
  const source = await made(host.create({}, null));
  expect(await host.fork(source.id, { ordinal: 1 }, null)).toMatchObject({ ok: false, code: "invalid_request" });
  expect(await host.fork("session-none", { ordinal: 0 }, null)).toBeUndefined();
  await made(source.submit("go", {}));
  expect(await host.fork(source.id, { ordinal: 0 }, null)).toMatchObject({ ok: false, code: "task_in_progress" });
  source.stop("user");
  await source.settled();
  expect((await host.fork(source.id, { ordinal: 0 }, null))?.ok).toBe(true);
  expect(readdirSync(join(dataDir, "sessions")).filter((name) => name.startsWith("."))).toEqual([]);
});

test("a fork that ends with a Prompt is idle there, also after a restart: nothing is added to what it was given", async () => {
  const dataDir = tempDir();
  const model = scriptedModel([yes, yes]);
  const host = await hostOn({ model, dataDir });
  const source = await made(host.create({}, null));
  await ask(source, "first");
  const fork = await forked(host, source.id, { ordinal: 1 });
  const given = await recordsOf(fork);
  expect(given.length).toBe(2);
  const again = await (await hostOn({ model, dataDir })).find(fork.id, null);
  if (again === undefined) throw new Error("the fork is gone");
  expect(await recordsOf(again)).toEqual(given);
  expect(again.view().state).toBe("idle");
  await ask(again, "second");
  const texts = model.requests.at(-1)?.messages.map(({ payload }) => (payload as { text?: string }).text);
  expect(texts).toEqual(["first", "second"]);
});

test("G13: a source that went out of memory is forked all the same, and goes on by itself", async () => {
  const clock = manualClock();
  const model = scriptedModel([yes, yes, yes]);
  const dataDir = tempDir();
  const host = await hostOn({ model, clock, dataDir, process: { maxSessions: 2 } });
  const source = await made(host.create({}, null));
  await ask(source, "first");
  for (let n = 0; n < 2; n++) {
    clock.advance(61_000);
    await made(host.create({}, null));
  }
  clock.advance(61_000);
  const trace = join(dataDir, "sessions", source.id, "trace-000001.jsonl");
  const before = readFileSync(trace, "utf8");
  const ordinal = before.trimEnd().split("\n").length - 1;
  const fork = await forked(host, source.id, { ordinal });
  await ask(fork, "second");
  expect(readFileSync(trace, "utf8")).toBe(before);
  clock.advance(61_000);
  const again = await host.find(source.id, null);
  await ask(again as Session, "third");
  const texts = model.requests.at(-1)?.messages.map(({ payload }) => (payload as { text?: string }).text);
  expect(texts).toEqual(["first", "yes", "third"]);
});

test.each(["source", "fork"] as const)(
  "a temporary Workspace goes with the last of a source and its fork: the %s first",
  async (first) => {
    const host = await hostOn({ model: scriptedModel([yes]) });
    const source = await made(host.create({}, null));
    const fork = await forked(host, source.id, { ordinal: 0 });
    const { workspace } = source.view();
    expect(fork.view().workspace).toBe(workspace);
    const [one, two] = first === "source" ? [source, fork] : [fork, source];
    await host.remove(one.id, null);
    expect(existsSync(workspace)).toBe(true);
    await ask(two, "still there?");
    await host.remove(two.id, null);
    expect(existsSync(workspace)).toBe(false);
  },
);

test("G12: a fork keeps the pointers to its source's children, and going, takes none of them along", async () => {
  const host = await hostOn({ model: scriptedModel([yes]) });
  const records = await richTrace();
  const source = await imported(host, linesOf(records));
  const pointer = records.findIndex((record) => isPayload(record, "subagent"));
  const end = records.findIndex((record, at) => at > pointer && isPayload(record, "abort"));
  const fork = await forked(host, source.id, { ordinal: end });
  expect((await recordsOf(fork))[pointer]).toEqual(records[pointer]);
  expect(fork.record.parentSessionId).toBeUndefined();
  await host.remove(fork.id, null);
  expect((await recordsOf(source)).length).toBe(records.length);
});

test("a source that is deleted while it is copied is not found, and leaves no fork, no Workspace and no error in the log", async () => {
  const dataDir = tempDir();
  let onRead: () => Promise<unknown> = async () => {};
  const fs = {
    ...diskFs,
    create: async (path: string) => {
      if (path.includes(".new-")) await onRead();
      return diskFs.create(path);
    },
  };
  const errors: string[] = [];
  const log = { warn: () => {}, error: (_detail: unknown, message: string) => void errors.push(message) };
  const host = await hostOn({ model: scriptedModel([]), dataDir, fs, process: { log } });
  const source = await made(host.create({}, null));
  const records = await richTrace();
  const long = await imported(host, linesOf(records));
  let deleting: Promise<boolean> | undefined;
  onRead = async () => {
    onRead = async () => {};
    deleting = host.remove(long.id, null);
    await expect.poll(() => existsSync(join(dataDir, "sessions", long.id))).toBe(false);
  };
  // Its later files are gone when their turn comes.
  expect(await host.fork(long.id, { ordinal: records.length - 1 }, null)).toBeUndefined();
  expect(await deleting).toBe(true);
  expect(existsSync(long.view().workspace)).toBe(false);
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([source.id]);
  expect(errors).toEqual([]);
});

test("a disk that is full leaves nothing of a fork, and the source as it was", async () => {
  const dataDir = tempDir();
  let full = false;
  const fs = {
    ...diskFs,
    create: async (path: string) => {
      if (full) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      return diskFs.create(path);
    },
  };
  const host = await hostOn({ model: scriptedModel([]), dataDir, fs });
  const source = await made(host.create({}, null));
  full = true;
  expect(await host.fork(source.id, { ordinal: 0 }, null)).toMatchObject({ ok: false, code: "storage_failed" });
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([source.id]);
  expect(existsSync(source.view().workspace)).toBe(true);
  full = false;
  expect((await host.fork(source.id, { ordinal: 0 }, null))?.ok).toBe(true);
});

test("a fork whose own record is lost comes back from its Trace", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const source = await made(host.create({}, null));
  const fork = await forked(host, source.id, { ordinal: 0 });
  rmSync(join(dataDir, "sessions", fork.id, "session.json"));
  const again = await (await hostOn({ model: scriptedModel([]), dataDir })).find(fork.id, null);
  expect(again?.view()).toMatchObject({ sessionId: fork.id, workspace: source.view().workspace });
});
