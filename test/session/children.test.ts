// A Session's children where the disk, the memory or the moment is against them.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LLMClient, LLMRequest } from "../../src/engine/ports.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { diskFs, type TraceFs } from "../../src/trace/trace-fs.js";
import { gate, type Script, scriptedModel } from "../support/engine.js";
import { ofChild, pointers } from "../support/family.js";
import { manualClock } from "../support/manual-clock.js";
import { ended, hostOn, type ListReader, listReader, recordsOf, tempDir } from "../support/sessions.js";

const never = new Promise<never>(() => {});

/** The parent hands `work` to a child and then says `done`. */
function withChild(...child: Script[]): LLMClient & { requests: LLMRequest[] } {
  const delegate = { call: "run_subagent", id: "sub", args: '{"prompt":"work","description":"d"}' };
  const parent = scriptedModel([{ steps: [delegate] }, { steps: [{ say: "done" }] }, { steps: [{ say: "again" }] }]);
  const worker = scriptedModel(child);
  const requests: LLMRequest[] = [];
  return {
    requests,
    stream: (request) => {
      requests.push(request);
      const [first] = request.messages;
      const isWorker = first !== undefined && isPayload(first, "text") && first.payload.text === "work";
      return (isWorker ? worker : parent).stream(request);
    },
  };
}

async function parentOn(host: SessionManager): Promise<{ parent: Session; reader: ListReader }> {
  const made = await host.create({ approvalMode: "allow-all" }, null);
  if (!made.ok) throw new Error(made.message);
  const reader = listReader();
  made.value.follow(reader, {});
  return { parent: made.value, reader };
}

/** The disk, but that a write to a file may have to wait or fail. */
const diskWith = (beforeWrite: (path: string) => Promise<void> | undefined): TraceFs => ({
  ...diskFs,
  openToAppend: async (path) => {
    const file = await diskFs.openToAppend(path);
    return {
      read: file.read.bind(file),
      truncate: file.truncate.bind(file),
      sync: file.sync.bind(file),
      stat: file.stat.bind(file),
      close: file.close.bind(file),
      write: async (bytes) => {
        await beforeWrite(path);
        return file.write(bytes);
      },
    };
  },
});

const outputs = (messages: readonly OmniMessage[]) =>
  messages.flatMap((message) =>
    message.origin === undefined && isPayload(message, "tool_call_output") ? [message.payload] : [],
  );

test("a child that does not end in its grace is cut off, and nothing of it comes after its parent's abort", async () => {
  const clock = manualClock();
  let release: () => void = () => {};
  const released = new Promise<void>((resolve) => {
    release = resolve;
  });
  let parentId = "";
  let isStuck = false;
  const fs = diskWith((path) => (isStuck && !path.includes(parentId) ? released : undefined));
  const host = await hostOn({ model: withChild({ steps: [{ begin: "half" }, { wait: never }] }), clock, fs });
  const { parent, reader } = await parentOn(host);
  parentId = parent.id;
  await parent.submit("go", {});
  await reader.until(({ data }) => data.origin !== undefined && (data.payload as { text?: string }).text === "half");
  isStuck = true;
  await parent.abort();
  // The child's closing records wait for the disk; its parent waits for no longer than the grace.
  await new Promise((resolve) => setImmediate(resolve));
  expect(parent.view().state).toBe("running");
  clock.advance(5_000);
  await reader.until(ended);
  const [childId] = pointers(reader.messages) as [string];
  const shown = ofChild(reader.messages, childId).length;
  expect(reader.messages.at(-1)?.payload).toMatchObject({ type: "abort", reason: "user" });
  expect(parent.history({}).live).toBe(undefined);
  expect(parent.childrenAtWork).toBe(0);
  release();
  const child = await host.find(childId, null);
  await child?.settled();
  expect(ofChild(reader.messages, childId)).toHaveLength(shown);
  const all = child === undefined ? [] : await recordsOf(child);
  expect(validateStream(all, { mode: "trace" })).toEqual([]);
  expect(all.at(-1)?.payload).toMatchObject({ type: "abort", reason: "user" });
});

test("a child whose pointer cannot be recorded is taken back before it has said anything", async () => {
  const dataDir = tempDir();
  let parentId = "";
  let isFull = false;
  const fs: TraceFs = {
    ...diskWith((path) => {
      if (isFull && path.includes(parentId)) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
      return undefined;
    }),
    // The child is in place now; the next that is written is the pointer to it.
    rename: async (from, to) => {
      await diskFs.rename(from, to);
      if (parentId !== "" && /session-[^/]*$/.test(to) && !to.includes(parentId)) isFull = true;
    },
  };
  const model = withChild();
  const host = await hostOn({ model, dataDir, fs });
  const { parent, reader } = await parentOn(host);
  parentId = parent.id;
  await parent.submit("go", {});
  await reader.until(ended);
  await parent.settled();
  expect(isFull).toBe(true);
  expect(reader.events.at(-1)?.data).toMatchObject({ ended: { error: { kind: "storage" } } });
  expect(pointers(reader.messages)).toEqual([]);
  expect(model.requests).toHaveLength(1);
  expect(host.figures).toMatchObject({ sessions: 1, children: 0 });
  const listed = await host.list({ limit: 10, archived: false, parent: parent.id }, null);
  expect(listed.ok && listed.value.sessions).toEqual([]);
  isFull = false;
  await parent.submit("once more", {});
  await reader.until(({ data }) => (data.payload as { text?: string } | undefined)?.text === "done");
});

test("a parent that was unloaded knows what its children used and what its Channel has carried of them", async () => {
  const clock = manualClock();
  const model = withChild({ steps: [{ say: "worked" }] });
  const host = await hostOn({ model, clock, process: { maxSessions: 2 } });
  const made = await host.create({ approvalMode: "allow-all" }, null);
  if (!made.ok) throw new Error(made.message);
  const parent = made.value;
  const reader = listReader();
  parent.follow(reader, {});
  await parent.submit("go", {});
  await reader.until(ended);
  await parent.settled();
  reader.leave();
  const before = parent.view();
  const { records: _, ...page } = parent.history({});
  const records = await recordsOf(parent);
  const [childId] = pointers(reader.messages) as [string];
  expect(page.children).toEqual({ [childId]: 6 });
  expect(before.usage).toMatchObject({ total: 45, costUsd: 0.00006 });
  clock.advance(61_000);
  const others = [await host.create({}, null), await host.create({}, null)];
  expect(others.every(({ ok }) => ok)).toBe(true);
  const listed = await host.list({ limit: 10, archived: false }, null);
  expect(listed.ok && listed.value.sessions.find(({ sessionId }) => sessionId === parent.id)).toEqual(before);
  clock.advance(61_000);
  const again = await host.find(parent.id, null);
  expect(again).not.toBe(parent);
  expect(again?.view()).toEqual(before);
  expect(again?.history({})).toMatchObject(page);
  expect(again && (await recordsOf(again))).toEqual(records);
});

test("a child stays in memory while its parent has yet to point to it, and may leave once its parent is done", async () => {
  const [held, isPointedTo] = [gate(), gate()];
  let parentId = "";
  let isMade = false;
  const fs: TraceFs = {
    ...diskWith((path) => {
      if (!isMade || !path.includes(parentId)) return undefined;
      isPointedTo.open();
      return held.promise;
    }),
    rename: async (from, to) => {
      await diskFs.rename(from, to);
      if (parentId !== "" && /session-[^/]*$/.test(to) && !to.includes(parentId)) isMade = true;
    },
  };
  const host = await hostOn({ model: withChild({ steps: [{ say: "worked" }] }), fs, process: { maxSessions: 2 } });
  const { parent, reader } = await parentOn(host);
  parentId = parent.id;
  await parent.submit("go", {});
  await isPointedTo.promise;
  expect(await host.create({}, null)).toMatchObject({ ok: false, code: "too_many_sessions" });
  held.open();
  await reader.until(ended);
  await parent.settled();
  expect(outputs(reader.messages)).toMatchObject([{ output: expect.stringContaining("worked") }]);
  expect(await host.create({}, null)).toMatchObject({ ok: true });
});

test("D12: a child that was on its way when its parent was deleted does not come about", async () => {
  const dataDir = tempDir();
  let release: () => void = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let begun: () => void = () => {};
  const onItsWay = new Promise<void>((resolve) => {
    begun = resolve;
  });
  let parentId = "";
  let childFolder = "";
  const fs: TraceFs = {
    ...diskFs,
    rename: async (from, to) => {
      if (parentId !== "" && /session-[^/]*$/.test(to) && !to.includes(parentId)) {
        childFolder = to;
        begun();
        await held;
      }
      return diskFs.rename(from, to);
    },
  };
  const model = withChild();
  const host = await hostOn({ model, dataDir, fs });
  const { parent, reader } = await parentOn(host);
  parentId = parent.id;
  await parent.submit("go", {});
  await onItsWay;
  const removed = host.remove(parent.id, null);
  release();
  expect(await removed).toBe(true);
  expect(host.figures).toMatchObject({ sessions: 0 });
  expect(childFolder).not.toBe("");
  expect(existsSync(childFolder)).toBe(false);
  expect(existsSync(join(dataDir, "sessions", parent.id))).toBe(false);
  expect(pointers(reader.messages)).toEqual([]);
  expect(outputs(reader.messages)).toMatchObject([{ stop_reason: "aborted" }]);
  expect(model.requests).toHaveLength(1);
});

test("arguments that are no task for a child are answered, and nobody is asked about them", async () => {
  const blank = { call: "run_subagent", id: "sub", args: '{"prompt":"  ","description":"d"}' };
  const host = await hostOn({ model: scriptedModel([{ steps: [blank] }, { steps: [{ say: "so be it" }] }]) });
  const { parent, reader } = await parentOn(host);
  await parent.patch({ approvalMode: "always-ask" });
  await parent.submit("go", {});
  await reader.until(ended);
  expect(outputs(reader.messages)).toMatchObject([
    { stop_reason: "failed", output: expect.stringContaining("prompt: must not be blank") },
  ]);
  expect(reader.events.some(({ data }) => data.type === "approval_request")).toBe(false);
  expect(validateStream(reader.messages, { mode: "stream" })).toEqual([]);
});
