// Compaction from outside: what readers see, what the provider is sent, and what a restart finds.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { type Server, startOmnid } from "../support/server.js";
import {
  answer,
  calls,
  finish,
  gate,
  type Script,
  say,
  startUpstream,
  type Upstream,
  usage,
} from "../support/upstream.js";
import {
  api,
  at,
  expectLawful,
  expectPaired,
  follow,
  history,
  makeSession,
  payloads,
  prompt,
  untilIdle,
} from "./api.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const SUMMARY = "[context_summary]\nAll of it.\n[/context_summary]";
const good = answer("All of it.");
const sized = (total: number, text: string): Script => ({
  steps: [...say(text), ...finish("stop", usage(total - 1, 1))],
});
const tooLong: Script = {
  status: 400,
  headers: { "content-type": "application/json" },
  steps: ['{"error":{"message":"too long","type":"invalid_request_error","code":"context_length_exceeded"}}'],
};
const echo = (total: number): Script => {
  const { steps } = calls(
    { id: "call_1", name: "exec_command", args: { cmd: "echo one" } },
    { id: "call_2", name: "exec_command", args: { cmd: "echo two" } },
  );
  return { steps: [...steps.slice(0, -3), ...finish("tool_calls", usage(total - 1, 1))] };
};

async function start(compaction: object = {}, env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({
    config: { ...upstream.config(), compaction },
    env: { OMNID_RETRY_LIMIT: "0", ...env },
  });
  const id = await makeSession(server, { approvalMode: "allow-all" });
  return { upstream, server, id };
}

async function tell(server: Server, id: string, text: string): Promise<void> {
  await prompt(server, id, text);
  await untilIdle(server, id);
}
const compactNow = async (server: Server, id: string) => (await api(server, "POST", at(id, "/compact"))).status;
const lastSent = ({ requests }: Upstream) => requests.at(-1)?.body.messages ?? [];
const contents = (upstream: Upstream) => lastSent(upstream).map(({ content }) => content);

describe("POST /compact", () => {
  test("has the Session as a Task has it, in state compacting; the next Request begins with the summary, also after a restart", async () => {
    const { upstream, server, id } = await start();
    upstream.script(echo(100), answer("Done."));
    await tell(server, id, "First.");
    const reader = await follow(server, id);
    const hold = gate();
    upstream.script({ steps: [hold, ...good.steps] });
    expect(await compactNow(server, id)).toBe(202);
    await upstream.request(2);
    expect((await api(server, "GET", at(id))).body.state).toBe("compacting");
    const states = reader.serverEvents("task_state");
    expect(states.at(-1)).toMatchObject({ state: "compacting" });
    expect(states.at(-1)).not.toHaveProperty("taskId");
    const refused = await api(server, "POST", at(id, "/tasks"), { input: "No." });
    expect([refused.status, refused.body.error.code]).toEqual([409, "task_in_progress"]);
    expect((await api(server, "POST", at(id, "/compact"))).body.error.code).toBe("task_in_progress");
    expect((await api(server, "POST", at(id, "/steer"), { input: "No." })).body.error.code).toBe("not_running");
    const steered = await api(server, "POST", at(id, "/tasks"), { input: "Second.", whenBusy: "steer" });
    expect(steered.body).toMatchObject({ queued: 1 });
    upstream.script(answer("Second answer."));
    hold.open();
    await reader.untilEnded(steered.body.taskId);

    // The prefix of the summary's Request is that of the conversation, byte for byte.
    const [, before, summarising, after] = upstream.requests.map(({ body }) => body);
    expect(summarising?.messages.slice(0, before?.messages.length)).toEqual(before?.messages);
    expect(summarising?.tools).toEqual(before?.tools);
    expectPaired(summarising?.messages ?? []);
    expect(String(summarising?.messages.at(-1)?.content)).toMatch(/summary/);
    expect(after?.messages).toEqual([
      before?.messages[0],
      { role: "user", content: SUMMARY },
      { role: "user", content: "Second." },
    ]);

    const records = await expectLawful(server, id, reader.messages, { joined: true });
    expect(payloads(reader.messages, "token_usage")).toHaveLength(1);
    expect((await api(server, "GET", at(id))).body.usage.total).toBe(
      payloads(records, "token_usage").reduce((sum, { request }) => sum + request.total, 0),
    );
    const page = (await api(server, "GET", at(id, "/messages?context=current"))).body.messages;
    expect(page[0].ordinal).toBe(records.findLastIndex(({ type }) => type === "session_meta"));
    expect(page.map(({ payload }: { payload: { text?: string } }) => payload.text).slice(1, 3)).toEqual([
      SUMMARY,
      "Second.",
    ]);
    expect(readdirSync(join(server.dataDir, "sessions", id)).filter((name) => name.endsWith(".jsonl"))).toHaveLength(2);

    expect((await server.stop("SIGTERM")).code).toBe(0);
    const next = await server.restart();
    upstream.script(answer("Third answer."));
    await tell(next, id, "Third.");
    expect(contents(upstream).slice(1)).toEqual([SUMMARY, "Second.", "Second answer.", "Third."]);
    await expectLawful(next, id, [], { joined: true, running: true });
  });

  test("is 409 nothing_to_compact before the first answer and right after a compaction, and takes no unknown field", async () => {
    const { upstream, server, id } = await start();
    const code = async () => (await api(server, "POST", at(id, "/compact"))).body.error.code;
    expect(await code()).toBe("nothing_to_compact");
    upstream.script(answer("One."), good);
    await tell(server, id, "First.");
    expect((await api(server, "POST", at(id, "/compact"), { mode: "discard" })).status).toBe(400);
    expect(await compactNow(server, id)).toBe(202);
    await untilIdle(server, id);
    expect(await code()).toBe("nothing_to_compact");
    const page = (await api(server, "GET", at(id, "/messages?context=current"))).body;
    expect(page.messages).toEqual([]);
  });

  test("is ended by an abort: compaction_end(aborted), then abort, and the old context stays", async () => {
    const { upstream, server, id } = await start();
    upstream.script(answer("One."), { steps: say("half"), end: "never" });
    await tell(server, id, "First.");
    const reader = await follow(server, id);
    expect(await compactNow(server, id)).toBe(202);
    await upstream.request(1);
    expect((await api(server, "POST", at(id, "/abort"))).status).toBe(202);
    await reader.until(({ data }) => data.type === "task_state" && data.state === "idle", 1);
    expect(payloads(reader.messages, "compaction_end")).toMatchObject([{ reason: "manual", status: "aborted" }]);
    expect(payloads(reader.messages, "abort")).toMatchObject([{ reason: "user" }]);
    upstream.script(answer("Two."));
    await tell(server, id, "Second.");
    expect(contents(upstream).slice(1)).toEqual(["First.", "One.", "Second."]);
    await expectLawful(server, id, reader.messages, { joined: true });
  });

  test("waits as a Request does, and retry-now ends the wait", async () => {
    const { upstream, server, id } = await start(
      {},
      { OMNID_RETRY_LIMIT: "1", OMNID_RETRY_BASE_MS: "3600000", OMNID_RETRY_MAX_MS: "3600000" },
    );
    upstream.script(answer("One."), { status: 503, steps: ["busy"] }, good);
    await tell(server, id, "First.");
    const reader = await follow(server, id);
    expect(await compactNow(server, id)).toBe(202);
    await reader.until(({ data }) => data.retry !== undefined && data.state === "compacting");
    expect((await api(server, "POST", at(id, "/retry-now"))).body).toEqual({ skipped: true });
    await reader.until(({ data }) => data.type === "task_state" && data.state === "idle", 1);
    expect(payloads(reader.messages, "compaction_end")).toMatchObject([{ status: "completed" }]);
  });
});

describe("a Task compacts by itself", () => {
  test("in its middle: the state is compacting, the taskId stays, and each Trace-only record is told of", async () => {
    const { upstream, server, id } = await start({ maxContextLength: 1_000 });
    const reader = await follow(server, id);
    upstream.script(echo(1_000), good, answer("Done."));
    const taskId = await prompt(server, id, "Go.");
    await reader.untilEnded(taskId);
    const states = reader.serverEvents("task_state");
    const compacting = states.filter(({ state }) => state === "compacting");
    expect(compacting.length).toBeGreaterThan(2);
    for (const state of compacting) expect(state.taskId).toBe(taskId);
    const order = reader.events.map(({ data }) => data.payload?.type ?? data.state);
    expect(order.indexOf("compacting")).toBeLessThan(order.indexOf("compaction_begin"));
    expect(order.indexOf("compaction_end")).toBeLessThan(order.lastIndexOf("running"));
    const sizes = states.map(({ records }) => records);
    expect(sizes).toEqual(sizes.toSorted((a, b) => a - b));
    const { records } = await history(server, id);
    expect(sizes.at(-1)).toBe(records.length);
    const texts = records.findIndex(({ payload }) => "text" in payload && payload.text === "All of it.");
    expect(sizes).toContain(texts + 1);
    expect(contents(upstream).slice(1)).toEqual([SUMMARY]);
    await expectLawful(server, id, reader.messages);
  });

  test("after a Request that was too long: once, and with the Prompt behind the summary", async () => {
    const { upstream, server, id } = await start();
    upstream.script(answer("One."));
    await tell(server, id, "First.");
    const reader = await follow(server, id);
    upstream.script(tooLong, good, answer("Two."));
    const { data } = await reader.untilEnded(await prompt(server, id, "Second."));
    expect(data.ended.status).toBe("completed");
    expect(contents(upstream).slice(1)).toEqual([SUMMARY, "Second."]);
    upstream.script(tooLong, good, tooLong);
    const ended = await reader.untilEnded(await prompt(server, id, "Third."));
    expect(ended.data.ended).toMatchObject({ status: "failed", error: { kind: "context_overflow" } });
    expect(upstream.requests).toHaveLength(7);
    await expectLawful(server, id, reader.messages, { joined: true });
  });

  test("by discarding, where that is the mode: no Request is made for it", async () => {
    const { upstream, server, id } = await start({ maxSessionTurns: 1, mode: "discard" });
    const reader = await follow(server, id);
    upstream.script(echo(10), sized(10, "Done."));
    await reader.untilEnded(await prompt(server, id, "The task."));
    expect(upstream.requests).toHaveLength(2);
    expect(String(contents(upstream)[1])).toMatch(/^\[context_summary\]\n.*\n\nThe task\.\n\[\/context_summary\]$/s);
    expect(payloads(reader.messages, "compaction_begin")).toMatchObject([{ reason: "turns" }, { reason: "turns" }]);
    await expectLawful(server, id, reader.messages);
  });
});

describe("kill -9", () => {
  test("G5: within a summary: it is closed failed, the Session is idle, and the next Prompt has the old context", async () => {
    const { upstream, server, id } = await start();
    upstream.script(answer("One."), { steps: say("half"), end: "never" });
    await tell(server, id, "First.");
    expect(await compactNow(server, id)).toBe(202);
    await upstream.request(1);
    await server.stop("SIGKILL");
    const next = await server.restart();
    expect((await api(next, "GET", at(id))).body.state).toBe("idle");
    const { records } = await history(next, id);
    expect(payloads(records, "compaction_end")).toMatchObject([{ reason: "manual", status: "failed" }]);
    expect(payloads(records, "abort")).toEqual([]);
    upstream.script(answer("Two."));
    await tell(next, id, "Second.");
    expect(contents(upstream).slice(1)).toEqual(["First.", "One.", "Second."]);
    await expectLawful(next, id, [], { joined: true, running: true });
  });

  test("between the end of a compaction and the first record of its context: nothing is lost and nothing has to be mended", async () => {
    const { upstream, server, id } = await start();
    upstream.script(answer("One."), good);
    await tell(server, id, "First.");
    expect(await compactNow(server, id)).toBe(202);
    await untilIdle(server, id);
    const before = (await history(server, id)).records;
    await server.stop("SIGKILL");
    const next = await server.restart();
    expect((await history(next, id)).records).toEqual(before);
    upstream.script(answer("Two."));
    await tell(next, id, "Second.");
    expect(contents(upstream).slice(1)).toEqual([SUMMARY, "Second."]);
    await expectLawful(next, id, [], { joined: true, running: true });
  });

  test("in mid-Task within a summary: the Task is closed with abort, its outputs are with the next Prompt", async () => {
    const { upstream, server, id } = await start({ maxContextLength: 1_000 });
    upstream.script(echo(1_000), { steps: say("half"), end: "never" });
    const taskId = await prompt(server, id, "Go.");
    await upstream.request(1);
    await server.stop("SIGKILL");
    const next = await server.restart();
    expect((await api(next, "GET", at(id, `/tasks/${taskId}`))).body).toMatchObject({
      state: "ended",
      status: "aborted",
    });
    const { records } = await history(next, id);
    expect(records.slice(-2).map(({ payload }) => payload)).toMatchObject([
      { type: "compaction_end", status: "failed" },
      { type: "abort", reason: "server_restarted" },
    ]);
    upstream.script(sized(10, "Two."));
    await tell(next, id, "Second.");
    expectPaired(lastSent(upstream));
    expect(lastSent(upstream).filter(({ role }) => role === "tool")).toHaveLength(2);
    await expectLawful(next, id, [], { joined: true, running: true });
  });
});
