// Every figure at `/metrics`, driven through a real server.

import { readFileSync } from "node:fs";
import { describe, expect, test, vi } from "vitest";
import { figuresOf } from "../support/prometheus.js";
import { startOmnid } from "../support/server.js";
import { answer, call, calls, finish, gate, packed, say, startUpstream, usage } from "../support/upstream.js";
import { api, asked, at, decide, follow, history, makeSession, prompt, untilIdle } from "./api.js";

// Servers are started here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 60_000 });

async function scripted(env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0", ...env } });
  return { upstream, server };
}

test("docs/metrics.md lists exactly the metrics that there are, and what each is", async () => {
  const server = await startOmnid({ config: { mcpServers: { none: { command: "false" } } } });
  const { types } = await figuresOf(server);
  const exposed = [...types].filter(([name]) => name.startsWith("omnid_"));
  const table = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  const listed = [...table.matchAll(/^\| `(omnid_\w+)` *\| (\w+) *\|/gm)].map(([, name, type]) => [name, type]);
  expect(listed.sort()).toEqual(exposed.sort());
  for (const name of [
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "nodejs_eventloop_lag_p99_seconds",
  ]) {
    expect([...types.keys()]).toContain(name);
  }
  await expect.poll(async () => (await figuresOf(server)).of("nodejs_eventloop_lag_p99_seconds")).toBeGreaterThan(0);
});

test("Sessions are counted by state, Tasks while they run, approvals with the age of the oldest", async () => {
  const server = await startOmnid();
  const id = await makeSession(server);
  await makeSession(server);
  const reader = await follow(server, id);
  const taskId = await prompt(server, id, "/run true");
  const callId = await asked(reader);
  const busy = await figuresOf(server);
  const stateOf = (figures: typeof busy, state: string) => figures.of(`omnid_sessions_by_state{state="${state}"}`);
  expect(["idle", "running", "compacting", "unloaded"].map((state) => stateOf(busy, state))).toEqual([1, 1, 0, 0]);
  expect(busy.of("omnid_sessions")).toBe(2);
  expect(busy.of("omnid_sessions_in_memory")).toBe(2);
  expect(busy.of("omnid_tasks_running")).toBe(1);
  expect(busy.of("omnid_approvals_pending")).toBe(1);
  const age = busy.of("omnid_approvals_oldest_seconds") as number;
  // It grows for as long as nobody answers.
  await expect.poll(async () => (await figuresOf(server)).of("omnid_approvals_oldest_seconds")).toBeGreaterThan(age);
  expect(await decide(server, id, callId, "allow")).toBe(204);
  await reader.untilEnded(taskId);
  const done = await figuresOf(server);
  expect(stateOf(done, "idle")).toBe(2);
  expect(done.of("omnid_approvals_pending")).toBe(0);
  expect(done.of("omnid_approvals_oldest_seconds")).toBe(0);
  expect(done.of("omnid_tasks_running")).toBe(0);

  const restarted = await server.stop("SIGTERM").then(() => server.restart());
  expect(stateOf(await figuresOf(restarted), "unloaded")).toBe(2);
});

test("what is published and delivered is counted, who reads, who went on from an id and who lost their place", async () => {
  const { upstream, server } = await scripted();
  const id = await makeSession(server);
  const { cursor } = await history(server, id);
  const readers = [await follow(server, id), await follow(server, id)];
  upstream.script(answer("one ", "two ", "three"));
  const taskId = await prompt(server, id, "Count.");
  await Promise.all(readers.map((reader) => reader.untilEnded(taskId)));
  const messages = readers[0]?.messages.length as number;
  const figures = await figuresOf(server);
  expect(figures.of('omnid_events_published_total{kind="message"}')).toBe(messages);
  const events = readers.reduce((sum, reader) => sum + reader.events.length, 0);
  expect(figures.of("omnid_events_delivered_total")).toBe(events);
  // Of what was said before they came, readers have got nothing; the snapshot at the connection is no event of the Session's.
  expect(figures.of('omnid_events_published_total{kind="server_event"}')).toBe(events / 2 - messages - 1);
  expect(figures.of("omnid_stream_bytes_total")).toBeGreaterThan(readers.reduce((sum, { bytes }) => sum + bytes, 0));
  expect(figures.of("omnid_readers")).toBe(2);
  expect(figures.of("omnid_streams")).toBe(2);
  expect(figures.of("omnid_replays_total")).toBe(0);

  const late = await follow(server, id, { lastEventId: cursor });
  await late.until(({ data }) => data.type === "task_state");
  for (const lastEventId of ["1-1", "nonsense", cursor.replace(/\d+$/, "999999")]) {
    const lost = await follow(server, id, { lastEventId });
    await lost.until(({ data }) => data.type === "task_state");
    lost.close();
  }
  for (const reader of readers) reader.close();
  await expect.poll(async () => (await figuresOf(server)).of("omnid_readers")).toBe(1);
  const after = await figuresOf(server);
  expect(after.of("omnid_replays_total")).toBe(1);
  expect(after.of('omnid_resyncs_total{reason="other_epoch"}')).toBe(1);
  expect(after.of('omnid_resyncs_total{reason="not_an_id"}')).toBe(1);
  expect(after.of('omnid_resyncs_total{reason="not_reached"}')).toBe(1);
});

describe("replay buffers", () => {
  test("messages that leave a buffer are counted by the bound that made them leave, and what all hold stays below it", async () => {
    const total = 100_000;
    const { upstream, server } = await scripted({
      OMNID_REPLAY_EVENTS: "200",
      OMNID_REPLAY_TOTAL_BYTES: String(total),
    });
    const [first, second] = [await makeSession(server), await makeSession(server)];
    const { cursor } = await history(server, first);
    const run = async (id: string, pieces: string[]) => {
      upstream.script(answer(...pieces));
      await prompt(server, id, "Go.");
      await untilIdle(server, id);
    };
    await run(
      first,
      Array.from({ length: 300 }, () => "word "),
    );
    const own = await figuresOf(server);
    expect(own.of('omnid_replay_evictions_total{bound="channel"}')).toBeGreaterThan(100);
    expect(own.of('omnid_replay_evictions_total{bound="server"}')).toBe(0);
    const { cursor: head } = await history(server, first);
    await run(
      second,
      Array.from({ length: 100 }, () => "x".repeat(2_000)),
    );
    const all = await figuresOf(server);
    expect(all.of('omnid_replay_evictions_total{bound="server"}')).toBeGreaterThan(200);
    expect(all.of("omnid_replay_bytes")).toBeLessThanOrEqual(total);
    expect(all.of("omnid_replay_bytes")).toBeGreaterThan(0);
    // The idle Session gave all but its newest message, and its numbers go on.
    const newest = await follow(server, first, { lastEventId: head.replace(/\d+$/, (seq) => String(Number(seq) - 1)) });
    await newest.until(({ data }) => data.type === "task_state");
    expect(newest.ids).toEqual([head]);
    const old = await follow(server, first, { lastEventId: cursor });
    expect((await old.until(() => true)).data).toEqual({ type: "resync_required", reason: "evicted" });
    expect((await figuresOf(server)).of('omnid_resyncs_total{reason="evicted"}')).toBe(1);
    await run(first, ["again"]);
    await newest.until(({ name, data }) => name === undefined && data.payload.type === "request_end");
    newest.check();
  });

  test("a reader that does not read is counted as blocked, until it reads and is told what it missed", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server);
    const stalled = await follow(server, id);
    stalled.stall();
    const piece = "y".repeat(20_000);
    // More than the kernel takes for a connection, and than the buffer holds.
    upstream.script({
      steps: [
        ...Array.from({ length: 50 }, () => packed(say(...Array.from({ length: 20 }, () => piece)))),
        ...finish("stop"),
      ],
    });
    await prompt(server, id, "Flood.");
    await untilIdle(server, id);
    await expect.poll(async () => (await figuresOf(server)).of("omnid_readers_blocked")).toBe(1);
    stalled.resume();
    await stalled.until(({ data }) => data.type === "resync_required");
    const figures = await figuresOf(server);
    expect(figures.of("omnid_readers_blocked")).toBe(0);
    expect(figures.of('omnid_resyncs_total{reason="slow_reader"}')).toBe(1);
  });
});

test("Requests and tokens are counted by provider and outcome, with the time to the first token", async () => {
  const { upstream, server } = await scripted();
  const id = await makeSession(server);
  const reader = await follow(server, id);
  const hold = gate();
  upstream.script(
    { steps: [...say("good"), ...finish("stop", usage(30, 7))] },
    { status: 400, steps: ['{"error":{"message":"no"}}'] },
    { steps: [...say("half"), hold] },
  );
  await reader.untilEnded(await prompt(server, id, "One."));
  await reader.untilEnded(await prompt(server, id, "Two."));
  const third = await prompt(server, id, "Three.");
  await reader.untilPayload("partial_text", ({ text }) => text === "half");
  await api(server, "POST", at(id, "/abort"), {});
  await reader.untilEnded(third);
  await expect
    .poll(async () => (await figuresOf(server)).of('omnid_llm_requests_total{provider="scripted",outcome="aborted"}'))
    .toBe(1);
  const figures = await figuresOf(server);
  expect(figures.series("omnid_llm_requests_total").map((series) => [series, figures.of(series)])).toEqual([
    ['omnid_llm_requests_total{provider="scripted",outcome="completed"}', 1],
    ['omnid_llm_requests_total{provider="scripted",outcome="invalid_request"}', 1],
    ['omnid_llm_requests_total{provider="scripted",outcome="aborted"}', 1],
  ]);
  expect(figures.of('omnid_llm_tokens_total{provider="scripted",outcome="completed",kind="cache_write"}')).toBe(30);
  expect(figures.of('omnid_llm_tokens_total{provider="scripted",outcome="completed",kind="output"}')).toBe(7);
  // The refused one had no first token.
  expect(figures.of('omnid_llm_first_token_seconds_count{provider="scripted"}')).toBe(2);
  expect(figures.of('omnid_llm_first_token_seconds_sum{provider="scripted"}')).toBeGreaterThan(0);
  expect(figures.of('omnid_llm_request_duration_seconds_count{provider="scripted"}')).toBe(3);
});

test("tool calls are counted by built-in name and outcome; what a model makes up is not a label", async () => {
  const { upstream, server } = await scripted();
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const reader = await follow(server, id);
  upstream.script(
    calls(
      { id: "call_1", name: "exec_command", args: { cmd: "true" } },
      { id: "call_2", name: "read_file", args: { path: "is-not-there.txt" } },
      { id: "call_3", name: "a_tool_of_its_own", args: {} },
      { id: "call_4", name: "mcp__nobody__tool", args: {} },
    ),
    { steps: [...call(0, "call_5", "exec_command", { cmd: "echo begun; sleep 600" }), ...finish("tool_calls")] },
  );
  const taskId = await prompt(server, id, "Do it.");
  await reader.untilPayload("partial_tool_call_output", ({ tool_call_id: callId }) => callId === "call_5");
  await api(server, "POST", at(id, "/abort"), {});
  await reader.untilEnded(taskId);
  const figures = await figuresOf(server);
  const counted = figures.series("omnid_tool_calls_total").map((series) => `${series} ${figures.of(series)}`);
  expect(counted.sort()).toEqual([
    'omnid_tool_calls_total{tool="exec_command",outcome="aborted"} 1',
    'omnid_tool_calls_total{tool="exec_command",outcome="completed"} 1',
    'omnid_tool_calls_total{tool="other",outcome="failed"} 2',
    'omnid_tool_calls_total{tool="read_file",outcome="failed"} 1',
  ]);
});

test("each record that is written is timed", async () => {
  const { upstream, server } = await scripted();
  const id = await makeSession(server);
  const before = (await figuresOf(server)).of("omnid_trace_write_seconds_count") as number;
  upstream.script(answer("Hello."));
  await prompt(server, id, "Hello?");
  await untilIdle(server, id);
  const figures = await figuresOf(server);
  const writes = (figures.of("omnid_trace_write_seconds_count") as number) - before;
  const { records } = await history(server, id);
  // Several records may share a write; the Session's first one was made with its folder.
  expect(writes).toBeGreaterThan(1);
  expect(writes).toBeLessThan(records.length);
  expect(figures.of("omnid_trace_write_seconds_sum")).toBeGreaterThan(0);
});
