import { expect, test } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import { diskFs, type TraceFile, type TraceFs } from "../../src/trace/trace-fs.js";
import { textsOf } from "../support/compaction.js";
import { kinds, type Script, scriptedModel } from "../support/engine.js";
import { ended, hostOn, listReader, recordsOf, tempDir } from "../support/sessions.js";

const SUMMARY = "[context_summary]\nAll of it.\n[/context_summary]";
const good: Script = { steps: [{ think: "hm" }, { say: "All of it." }] };

/** A disk on which the Trace takes no write from the given one on, until it is `mended`. */
function failingDisk(): TraceFs & { failFrom(write: number): void; mend(): void } {
  let left = Number.POSITIVE_INFINITY;
  const wrap = (path: string, file: TraceFile): TraceFile =>
    path.includes(".jsonl")
      ? {
          write: async (bytes) => {
            left -= 1;
            if (left <= 0) throw Object.assign(new Error("ENOSPC"), { code: "ENOSPC" });
            return file.write(bytes);
          },
          read: (into, position) => file.read(into, position),
          truncate: (length) => file.truncate(length),
          sync: () => file.sync(),
          stat: () => file.stat(),
          close: () => file.close(),
        }
      : file;
  return {
    ...diskFs,
    openToAppend: async (path) => wrap(path, await diskFs.openToAppend(path)),
    create: async (path) => wrap(path, await diskFs.create(path)),
    failFrom: (write) => {
      left = write;
    },
    mend: () => {
      left = Number.POSITIVE_INFINITY;
    },
  };
}

/** A Session after one answered Prompt. */
async function staged(scripts: Script[], fs: TraceFs = diskFs) {
  const model = scriptedModel([{ steps: [{ say: "one" }] }, ...scripts]);
  const dataDir = tempDir();
  const host = await hostOn({ model, fs, dataDir });
  const created = await host.create({}, null);
  if (!created.ok) throw new Error(created.message);
  const session = created.value;
  const reader = listReader();
  session.follow(reader, {});
  const tell = async (text: string) => {
    const from = reader.events.length;
    const submitted = await session.submit(text, {});
    if (submitted.ok) await reader.until((event) => ended(event) && reader.events.lastIndexOf(event as never) >= from);
    return submitted;
  };
  await tell("first");
  return { model, host, session, reader, tell, dataDir };
}

const expectLawful = async (session: Session, stream: readonly OmniMessage[]) => {
  const trace = await recordsOf(session);
  expect(validateStream(trace, { mode: "trace" })).toEqual([]);
  expect(validateStream(stream, { mode: "stream" })).toEqual([]);
  expect(compareStreamWithTrace(stream, trace)).toEqual([]);
};

test("a disk that refuses its first record: it is refused as a whole, and the Session is free", async () => {
  const fs = failingDisk();
  const { session, reader, tell, model } = await staged([{ steps: [{ say: "two" }] }], fs);
  fs.failFrom(1);
  expect(await session.compact()).toMatchObject({ ok: false, code: "storage_failed" });
  await session.settled();
  expect(session.view().state).toBe("idle");
  fs.mend();
  await tell("second");
  expect(textsOf(model.requests[1]?.messages ?? [])).toEqual(["first", "one", "second"]);
  await expectLawful(session, reader.messages);
});

test.each([2, 3, 4, 5])(
  "a disk that refuses its write %i: it is closed failed before the next Prompt, which has the old context",
  async (write) => {
    const fs = failingDisk();
    const { session, reader, tell, model } = await staged([good, { steps: [{ say: "two" }] }], fs);
    fs.failFrom(write);
    expect(await session.compact()).toEqual({ ok: true, value: undefined });
    await session.settled();
    expect(session.view().state).toBe("idle");
    expect(await tell("second")).toMatchObject({ ok: false, code: "storage_failed" });
    fs.mend();
    expect(await tell("second")).toMatchObject({ ok: true });
    expect(kinds(reader.messages)).toContain("compaction_end failed");
    expect(textsOf(model.requests[2]?.messages ?? [])).toEqual(["first", "one", "second"]);
    await expectLawful(session, reader.messages);
  },
);

test("a disk that refuses the new context's file refuses the Prompt with it; then the summary is there all the same", async () => {
  const fs = failingDisk();
  const { session, reader, tell, model } = await staged([good, { steps: [{ say: "two" }] }], fs);
  await session.compact();
  await session.settled();
  const before = await recordsOf(session);
  fs.failFrom(1);
  expect(await tell("second")).toMatchObject({ ok: false, code: "storage_failed" });
  expect(await recordsOf(session)).toEqual(before);
  fs.mend();
  await tell("second");
  expect(textsOf(model.requests[2]?.messages ?? [])).toEqual([SUMMARY, "second"]);
  await expectLawful(session, reader.messages);
});

test("the new context's session_meta is the old one with the Session's thinking level of now", async () => {
  const { session, tell } = await staged([good, { steps: [{ say: "two" }] }]);
  await session.patch({ thinkingLevel: "high" });
  await session.compact();
  await session.settled();
  await tell("second");
  const [first, second, ...more] = (await recordsOf(session)).filter(({ type }) => type === "session_meta");
  expect(more).toEqual([]);
  expect(second?.payload).toEqual({ ...first?.payload, thinking_level: "high" });
});

test("C11: a server that ends interrupts it, in order", async () => {
  const { session, reader, host, model, dataDir } = await staged([{ steps: [{ wait: new Promise<never>(() => {}) }] }]);
  await session.compact();
  while (model.requests.length < 2) await new Promise(setImmediate);
  await host.drain(1_000);
  expect(kinds(reader.messages).slice(-1)).toEqual(["compaction_begin"]);
  const again = await hostOn({ model, dataDir });
  const found = (await again.find(session.id, null)) as Session;
  const trace = await recordsOf(found);
  expect(trace.slice(-2).map(({ payload }) => payload)).toMatchObject([
    { type: "compaction_end", status: "aborted" },
    { type: "abort", reason: "shutdown" },
  ]);
  expect(validateStream(trace, { mode: "trace" })).toEqual([]);
});

test("a prompt that interrupts aborts it and runs next", async () => {
  const { session, reader, model } = await staged([
    { steps: [{ wait: new Promise<never>(() => {}) }] },
    { steps: [{ say: "two" }] },
  ]);
  await session.compact();
  const from = reader.events.length;
  expect(await session.submit("second", { whenBusy: "interrupt" })).toMatchObject({ ok: true });
  await reader.until((event) => ended(event) && reader.events.indexOf(event as never) >= from);
  expect(kinds(reader.messages)).toEqual(expect.arrayContaining(["compaction_end aborted", "abort"]));
  expect(textsOf(model.requests.at(-1)?.messages ?? [])).toEqual(["first", "one", "second"]);
  await expectLawful(session, reader.messages);
});

test("a deleted Session's compaction ends with it", async () => {
  const { session, host, reader } = await staged([{ steps: [{ wait: new Promise<never>(() => {}) }] }]);
  await session.compact();
  expect(await host.remove(session.id, null)).toBe(true);
  expect(reader.messages.at(-1)?.payload).toEqual({ type: "abort", reason: "session_deleted" });
  expect(await session.compact()).toMatchObject({ ok: false, code: "session_not_found" });
});

test("it takes one of the process's places for Tasks", async () => {
  const model = scriptedModel([{ steps: [{ say: "one" }] }, { steps: [{ wait: new Promise<never>(() => {}) }] }]);
  const host = await hostOn({ model, process: { maxTasks: 1 } });
  const [first, second] = [await host.create({}, null), await host.create({}, null)];
  if (!first.ok || !second.ok) throw new Error("not made");
  await first.value.submit("first", {});
  await first.value.settled();
  await first.value.compact();
  expect(await second.value.submit("x", {})).toMatchObject({ ok: false, code: "too_many_tasks" });
  first.value.stop("user");
  await first.value.settled();
  expect(host.figures.running).toBe(0);
});
