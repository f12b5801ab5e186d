import { expect, test } from "vitest";
import { asSteering, compactionBegin, compactionEnd, imageUrl, userText } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { ErrorKind } from "../../src/protocol/payloads.js";
import { compactor, expectLawfulRecords, folded, PROMPT, Story, textsOf } from "../support/compaction.js";
import { counts, gate, kinds, type Script, scriptedModel } from "../support/engine.js";
import { AT, begin } from "../support/messages.js";

const good: Script = { steps: [{ think: "hm" }, { say: "All of it." }] };
const SUMMARY = "[context_summary]\nAll of it.\n[/context_summary]";
const never = new Promise<never>(() => {});
const RETRY = { baseMs: 1, maxMs: 4, limit: 5 };
const failing = (kind: ErrorKind): Script => ({
  steps: [],
  outcome: { status: "failed", usage: counts(0, 0), error: { kind, message: "no" } },
});
/** Two Tasks; the second is in the middle: its calls are answered and the model has not seen that. */
const midTask = () =>
  new Story().prompt("first").turn("done").prompt("second").turn("two at once", { calls: 2, total: 900 });
const since = (records: readonly OmniMessage[], from: number) => kinds(records.slice(from));

test("the summary's own messages are in the Trace only, between a begin and an end that everybody sees", async () => {
  const story = midTask();
  const it = compactor(story.records, { model: scriptedModel([good]) });
  expect(await it.run("context")).toBe("completed");
  expect(kinds(it.stream)).toEqual(["compaction_begin", "compaction_end completed"]);
  expect(it.stream[0]?.payload).toEqual({
    type: "compaction_begin",
    reason: "context",
    mode: "summarize",
    context: 900,
    turns: 2,
  });
  expect(since(it.trace, story.records.length)).toEqual([
    "compaction_begin",
    "thinking",
    "text",
    "token_usage",
    "compaction_end completed",
  ]);
  expect(it.states).toEqual([true, false]);
  expect(it.usage.total).toBe(100 + 900 + 15);
  expectLawfulRecords(it);
});

test("its Request is the old context, outputs included, under the same tools and system prompt, and one user text more", async () => {
  const story = midTask();
  const before = folded(story.records).context.assemble();
  const model = scriptedModel([good]);
  const it = compactor(story.records, { model });
  await it.run();
  const [sent] = model.requests;
  expect(sent?.messages.slice(0, -1)).toEqual(before);
  expect(sent?.messages.at(-1)?.payload).toEqual({ type: "text", role: "user", text: PROMPT });
  expect(sent).toMatchObject({ systemPrompt: it.deps.systemPrompt, tools: it.deps.tools(), thinkingLevel: "default" });
});

test("the next Request has the summary in place of everything, and the new file begins with the next record, not before", async () => {
  const story = midTask();
  const it = compactor(story.records, { model: scriptedModel([good]) });
  await it.run();
  const count = it.trace.length;
  expect(textsOf(it.context.assemble())).toEqual([SUMMARY]);
  expect(it.context.assemble()).toHaveLength(1);
  it.append([begin()]);
  expect(since(it.trace, count)).toEqual(["undefined", "text", "request_begin"]);
  expect(it.trace[count]?.type).toBe("session_meta");
  expect(textsOf(it.context.assemble())).toEqual([SUMMARY]);
  expect(it.context.size).toEqual({ tokens: 0, turns: 0, leastTokens: 0, isCompacted: true });
});

test("what no committed Request carried follows the summary word for word, and is not what is summarised; outputs never follow", async () => {
  const picture = imageUrl(AT, "data:image/png;base64,AAAA");
  const story = midTask();
  story.records.push(asSteering(userText(AT, "and mind the gap"), "steer-1"), picture);
  const model = scriptedModel([good]);
  const it = compactor(story.records, { model });
  await it.run("context");
  expect(textsOf(model.requests[0]?.messages ?? [])).not.toContain("and mind the gap");
  expect(it.context.assemble().map(({ payload }) => payload)).toEqual([
    { type: "text", role: "user", text: SUMMARY },
    { type: "text", role: "user", text: "and mind the gap", steer_id: "steer-1" },
    picture.payload,
  ]);
  it.append([begin()]);
  expect(it.trace.slice(-3, -1)).toEqual(story.records.slice(-2));
});

test("a summary that is empty, or a call in its place, is a failed try, with its usage, and nothing of it counts", async () => {
  const model = scriptedModel([
    { steps: [{ say: "Let me look." }, { call: "exec_command", id: "x1" }] },
    { steps: [{ say: " " }] },
    good,
  ]);
  const it = compactor(midTask().records, { model, retry: RETRY });
  expect(await it.run()).toBe("completed");
  expect(it.waits).toMatchObject([
    { attempt: 1, status: "malformed" },
    { attempt: 2, status: "malformed" },
  ]);
  expect(it.trace.filter((record) => isPayload(record, "token_usage"))).toHaveLength(2 + 3);
  expect(textsOf(it.context.assemble())).toEqual([SUMMARY]);
  expectLawfulRecords(it);
});

test("a try that no provider answered has no usage; the ladder's waits are those of a Request", async () => {
  const model = scriptedModel([failing("network"), failing("overloaded"), good]);
  const it = compactor(midTask().records, { model, retry: RETRY });
  expect(await it.run()).toBe("completed");
  expect(it.waits.map(({ attempt, waitMs }) => [attempt, waitMs])).toEqual([
    [1, 1],
    [2, 2],
  ]);
  expect(it.trace.filter((record) => isPayload(record, "token_usage"))).toHaveLength(2 + 1);
});

test.each<[ErrorKind, number]>([
  ["network", 6],
  ["auth", 1],
  ["content_filter", 1],
])("when every try fails (%s: %i of them) it has failed, and the old context stays as it was", async (kind, tries) => {
  const model = scriptedModel(Array.from({ length: tries }, () => failing(kind)));
  const it = compactor(midTask().records, { model, retry: RETRY });
  const before = it.context.assemble();
  const size = it.context.size;
  expect(await it.run("turns")).toBe("failed");
  expect(model.requests).toHaveLength(tries);
  expect(it.stream.at(-1)?.payload).toMatchObject({ type: "compaction_end", reason: "turns", status: "failed" });
  expect(it.context.assemble()).toEqual(before);
  expect(it.context.size).toEqual(size);
  expect(it.failures).toMatchObject([{ kind }]);
  expectLawfulRecords(it);
});

test.each<[string, Script, boolean]>([
  ["while the model is silent", { steps: [{ wait: never }] }, false],
  ["in mid-summary", { steps: [{ say: "half" }, { wait: never }] }, true],
  ["with an upstream that ignores it", { steps: [{ begin: "half" }, { wait: never, ignoresAbort: true }] }, false],
])("an abort %s: compaction_end(aborted), then abort, and the old context stays", async (_, script, isAnswered) => {
  const begun = gate();
  const model = scriptedModel([{ ...script, steps: [...script.steps] }]);
  const it = compactor(midTask().records, {
    model: {
      async *stream(request) {
        begun.open();
        return yield* model.stream(request);
      },
    },
  });
  const before = it.context.assemble();
  const run = it.run();
  await begun.promise;
  if (isAnswered) while (it.trace.at(-1)?.payload.type !== "text") await Promise.resolve();
  it.abort();
  expect(await run).toBe("aborted");
  expect(kinds(it.stream)).toEqual(["compaction_begin", "compaction_end aborted", "abort"]);
  expect(it.context.assemble()).toEqual(before);
  expect(it.states).toEqual([true, false]);
  expectLawfulRecords(it);
});

test("an abort while it waits for another try takes effect at once", async () => {
  const model = scriptedModel([failing("network")]);
  const it = compactor(midTask().records, { model, retry: { baseMs: 3_600_000, maxMs: 3_600_000, limit: 1 } });
  const run = it.run();
  while (it.waits.length === 0) await Promise.resolve();
  it.abort();
  expect(await run).toBe("aborted");
});

test("without a committed Request in the context there is nothing to compact, also right after a compaction", async () => {
  const model = scriptedModel([good]);
  const fresh = compactor(new Story().prompt("first").records, { model });
  expect(await fresh.run()).toBe("nothing");
  expect(fresh.stream).toEqual([]);
  const it = compactor(midTask().records, { model });
  await it.run();
  expect(await it.run()).toBe("nothing");
  it.append([userText(AT, "next")]);
  expect(await it.run()).toBe("nothing");
});

test("a second compaction summarises the first one's summary, and the summary is never copied", async () => {
  const model = scriptedModel([good, { steps: [{ say: "More." }] }]);
  const it = compactor(midTask().records, { model });
  await it.run();
  it.append([userText(AT, "next"), ...new Story().turn("said").records.slice(1)]);
  await it.run();
  expect(textsOf(model.requests[1]?.messages ?? [])).toEqual([SUMMARY, "next", "said", PROMPT]);
  expect(textsOf(it.context.assemble())).toEqual(["[context_summary]\nMore.\n[/context_summary]"]);
});

test("a record that cannot be written is thrown, whichever it is, and the old context stays usable", async () => {
  for (const type of ["compaction_begin", "thinking", "text", "token_usage", "compaction_end"]) {
    const story = midTask();
    const before = folded(story.records).context.assemble();
    const it = compactor(story.records, {
      model: scriptedModel([good]),
      refuses: (record) => record.payload.type === type,
    });
    await expect(it.run()).rejects.toThrow("ENOSPC");
    expect(it.states).toEqual([true, false]);
    expect(it.context.assemble()).toEqual(before);
    it.append(it.unfinished.closing(AT, it.usage, { status: "failed" }));
    expect(it.context.assemble()).toEqual(before);
    expectLawfulRecords({ trace: it.trace });
  }
});

test("G5: after a crash between any two records the Trace is closed lawfully and the next Request knows every Prompt", async () => {
  const story = midTask();
  story.records.push(asSteering(userText(AT, "steer"), "steer-1"));
  const it = compactor(story.records, { model: scriptedModel([good]) });
  await it.run("context");
  it.append([begin()]);
  for (let count = story.records.length + 1; count <= it.trace.length; count++) {
    // A new file appears with all of its first records.
    const isHalfOpened = count > it.trace.length - 4 && count < it.trace.length;
    if (isHalfOpened) continue;
    const after = folded(it.trace.slice(0, count));
    after.append(after.unfinished.closing(AT, after.usage, { status: "aborted", abortReason: "server_restarted" }));
    expect(after.trace.at(-1)?.payload).toEqual({ type: "abort", reason: "server_restarted" });
    expectLawfulRecords({ trace: after.trace });
    after.append([userText(AT, "next")]);
    const texts = textsOf(after.context.assemble()).filter((text) => !text.startsWith("[turn_aborted]"));
    expect(texts.slice(-2)).toEqual(["steer", "next"]);
    expect(texts.some((text) => text === SUMMARY || text === "second")).toBe(true);
  }
});

test("a manual compaction that a crash cut is closed failed, without an abort: no Task was running", () => {
  const story = new Story().prompt("first").turn("done");
  const begun = compactionBegin(AT, { reason: "manual", mode: "summarize", context: 100, turns: 1 });
  const it = folded([...story.records, begun]);
  it.append(it.unfinished.closing(AT, it.usage, { status: "aborted", abortReason: "server_restarted" }));
  expect(kinds(it.trace).slice(-2)).toEqual(["compaction_begin", "compaction_end failed"]);
  expect(it.unfinished.isOpen).toBe(false);
});

test("an aborted one whose abort was torn off gets it at recovery, and once", () => {
  const end = { reason: "manual", mode: "summarize", status: "aborted" } as const;
  const begun = compactionBegin(AT, { reason: "manual", mode: "summarize", context: 100, turns: 1 });
  const it = folded([...new Story().prompt("first").turn("done").records, begun, compactionEnd(AT, end)]);
  const closing = () => it.unfinished.closing(AT, it.usage, { status: "aborted", abortReason: "server_restarted" });
  it.append(closing());
  expect(kinds(it.trace).slice(-2)).toEqual(["compaction_end aborted", "abort"]);
  expect(closing()).toEqual([]);
  expectLawfulRecords({ trace: it.trace });
});
