// A server that is killed at any instant, and what a client finds when it comes back.

import { appendFileSync, readdirSync, readFileSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { isPartial } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { type Server, startOmnid } from "../support/server.js";
import { answer, call, calls, finish, say, startUpstream, think, usage } from "../support/upstream.js";
import {
  api,
  asked,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  history,
  makeSession,
  payloads,
  prompt,
  untilIdle,
} from "./api.js";

// Servers are started and restarted here, which takes its time where the machine is shared.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

/** The files of Traces under a data directory. */
function traceFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".jsonl"))
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

async function scripted(env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0", ...env } });
  return { upstream, server };
}

const complete = (messages: readonly OmniMessage[]): OmniMessage[] => messages.filter((message) => !isPartial(message));

describe("kill -9", () => {
  test("A4 G5 G6: in mid-stream: the Session lists, every complete message that was seen is there, old ids resync, the next prompt has it all", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    upstream.script(
      {
        steps: [
          ...think("first"),
          ...say("and"),
          ...call(0, "call_1", "exec_command", { cmd: "echo one" }),
          ...finish("tool_calls", usage(5, 5)),
        ],
      },
      { steps: [...say("half of an answer"), ...think("second")], end: "never" },
    );
    await prompt(server, id, "Remember the word heron.");
    await reader.untilPayload("partial_thinking", ({ thinking }) => thinking === "second");
    expect(await server.stop("SIGKILL")).toEqual({ code: null, signal: "SIGKILL" });
    await reader.ended;

    const next = await server.restart();
    expect((await api(next, "GET", "/api/sessions")).body.sessions).toMatchObject([{ sessionId: id, state: "idle" }]);
    const { records, cursor } = await history(next, id);
    expect(records).toEqual(expect.arrayContaining(complete(reader.messages)));
    expect(payloads(records, "abort")).toMatchObject([{ reason: "server_restarted" }]);
    expect(payloads(records, "request_end").map(({ status }) => status)).toEqual(["completed", "aborted"]);
    expect(Number(cursor.split("-")[0])).toBeGreaterThan(Number((reader.ids[0] as string).split("-")[0]));

    // More events than the old life had: its ids must not look like places of the new one.
    const live = await follow(next, id);
    upstream.script(answer(...Array.from({ length: reader.ids.length + 10 }, (_, index) => `${index} `)));
    await live.untilEnded(await prompt(next, id, "Which word?"));
    for (const old of [reader.ids[0], reader.ids.at(-1)]) {
      const back = await follow(next, id, { lastEventId: old as string });
      await back.until(({ data }) => data.type === "task_state");
      expect(back.events[0]?.data).toEqual({ type: "resync_required", reason: "other_epoch" });
      expect(back.messages).toEqual([]);
    }
    const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
    expectPaired(messages);
    const context = JSON.stringify(messages);
    for (const word of ["Remember the word heron.", "echo one", "one\\n", "[turn_aborted]", "half of an answer"])
      expect(context).toContain(word);
    expect(messages.at(-1)).toEqual({ role: "user", content: "Which word?" });
    await expectLawful(next, id, live.messages, { joined: true });
  });

  test("F1 G5: in each phase of a batch of three, the next request pairs every call once and no tool runs again by itself", async () => {
    const { upstream, server } = await scripted();
    let current: Server = server;
    const batch = (mark: string) =>
      calls(
        { id: `${mark}_a`, name: "exec_command", args: { cmd: `echo ${mark}-a | tee -a ran` } },
        { id: `${mark}_b`, name: "exec_command", args: { cmd: `echo ${mark}-b >> ran; sleep 60` } },
        { id: `${mark}_c`, name: "exec_command", args: { cmd: `echo ${mark}-c >> ran` } },
      );
    const allow = async (reader: Awaited<ReturnType<typeof follow>>, id: string, callId: string) => {
      await reader.until(({ data }) => data.toolCall?.payload.tool_call_id === callId);
      expect(await decide(current, id, callId, "allow")).toBe(204);
    };
    const phases: [string, (reader: Awaited<ReturnType<typeof follow>>, id: string) => Promise<unknown>][] = [
      ["asked_first", async (reader) => asked(reader)],
      [
        "one_is_done",
        async (reader, id) => {
          await allow(reader, id, "one_is_done_a");
          await reader.untilPayload("tool_call_output");
        },
      ],
      [
        "one_runs",
        async (reader, id) => {
          await allow(reader, id, "one_runs_a");
          await allow(reader, id, "one_runs_b");
          await reader.untilPayload("tool_call_output");
        },
      ],
    ];
    for (const [mark, reach] of phases) {
      const id = await makeSession(current);
      const { workspace } = (await api(current, "GET", at(id))).body;
      const reader = await follow(current, id);
      upstream.script(batch(mark));
      await prompt(current, id, `Phase ${mark}.`);
      // Committed: the model had its say, and only the calls are open.
      await reader.untilPayload("request_end");
      await reach(reader, id);
      await current.stop("SIGKILL");
      current = await current.restart();
      const before = mark === "asked_first" ? "" : readFileSync(join(workspace, "ran"), "utf8");
      // What only waited for a person may wait on; an interrupt ends it like any other.
      await api(current, "POST", at(id, "/abort"));
      await untilIdle(current, id);
      upstream.script(answer("Go on."));
      await prompt(current, id, "And now?");
      await untilIdle(current, id);
      const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
      expectPaired(messages);
      expect(messages.filter(({ role }) => role === "tool")).toHaveLength(3);
      if (before !== "") expect(readFileSync(join(workspace, "ran"), "utf8")).toBe(before);
      await expectLawful(current, id, reader.messages, { running: true });
    }
  });

  test("G3: a record that was torn is dropped alone, at any length, and the next one does not land on it", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server);
    upstream.script(answer("kept"));
    await prompt(server, id, "One.");
    await untilIdle(server, id);
    const { records } = await history(server, id);
    await server.stop("SIGKILL");
    const file = traceFiles(server.dataDir).find((path) => path.includes(id)) as string;
    const whole = statSync(file).size;
    const torn = JSON.stringify({
      timestamp: new Date().toISOString(),
      type: "event_msg",
      payload: { type: "request_begin" },
    });
    let current = server;
    for (const length of [1, torn.length]) {
      truncateSync(file, whole);
      appendFileSync(file, torn.slice(0, length));
      current = await current.restart();
      expect((await history(current, id)).records.slice(0, records.length)).toEqual(records);
      await current.stop("SIGKILL");
    }
    truncateSync(file, whole);
    appendFileSync(file, torn.slice(0, 40));
    current = await current.restart();
    upstream.script(answer("also kept"));
    await prompt(current, id, "Two.");
    await untilIdle(current, id);
    const after = (await history(current, id)).records;
    expect(after.slice(0, records.length)).toEqual(records);
    expect(payloads(after, "text").map(({ text }) => text)).toEqual(["One.", "kept", "Two.", "also kept"]);
    for (const line of readFileSync(file, "utf8").trimEnd().split("\n"))
      if (line !== torn.slice(0, 40)) JSON.parse(line);
  });

  test("title, mode and the order of the list survive", async () => {
    const server = await startOmnid();
    const id = await makeSession(server, { title: "kept", approvalMode: "read-only" });
    await prompt(server, id, "hello");
    await untilIdle(server, id);
    const other = await makeSession(server);
    await server.stop("SIGKILL");
    const next = await server.restart();
    const { sessions } = (await api(next, "GET", "/api/sessions")).body;
    expect(sessions.map(({ sessionId }: { sessionId: string }) => sessionId)).toEqual([other, id]);
    expect(sessions[1]).toMatchObject({ title: "kept", approvalMode: "read-only" });
  });
});
