// An interrupt at the stages that abort.test.ts leaves out: idle soon, nothing left running, everything closed and
// paired on the stream and in the Trace, and the next Request tells the model what came of it. Then at any instant.

import { beforeAll, describe, expect, test, vi } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { allGone, pidsIn } from "../support/processes.js";
import { randomOf } from "../support/random.js";
import { type Server, startOmnid } from "../support/server.js";
import type { SseReader, StreamEvent } from "../support/sse-client.js";
import {
  answer,
  type ChatMessage,
  call,
  calls,
  finish,
  type Script,
  say,
  startUpstream,
  think,
  type Upstream,
  usage,
} from "../support/upstream.js";
import {
  api,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  makeSession,
  outputsIn,
  payloads,
  prompt,
} from "./api.js";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** More than an interrupt takes on the busiest machine, and less than what it would otherwise wait for. */
const SOON_MS = 20_000;
/** The same where a command ignores SIGTERM. */
const STUBBORN_MS = 25_000;
/** Ten times what an interrupt may take. Single ones may meet with a busy machine; most do not. */
const USUAL_MS = 2_500;
const SEED = Number(process.env.OMNID_SEED ?? 1);
const INTERRUPTED = "[interrupted: tool aborted by user]";

let upstream: Upstream;
let server: Server;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  server = await startOmnid({
    atEnd: atFileEnd,
    config: upstream.config(),
    env: { OMNID_RETRY_BASE_MS: "60000", OMNID_RETRY_MAX_MS: "60000" },
  });
});

interface Stage {
  name: string;
  mode?: "always-ask";
  scripts: Script[];
  /** Resolves when the stage is reached. @returns what to do in the same breath as the abort */
  reach(reader: SseReader, id: string): Promise<(() => Promise<unknown>) | unknown>;
  withinMs?: number;
  /** The user texts of the next Request, the new prompt left out; a text that is a block by what it must hold. */
  texts: (string | RegExp)[];
  outputs: (string | RegExp)[];
  /** What must not be running any more. */
  pids?: (reader: SseReader) => number[];
}

const never = (...steps: Script["steps"][]): Script => ({ steps: steps.flat(), end: "never" });
const exec = (id: string, cmd: string) => ({ id, name: "exec_command", args: { cmd } });
const outputOf = (reader: SseReader) =>
  payloads(reader.messages, "partial_tool_call_output")
    .map(({ output }) => output)
    .join("");
const askedAbout = (reader: SseReader, callId: string) =>
  reader.until(({ data }) => data.type === "approval_request" && data.toolCall.payload.tool_call_id === callId);

const STAGES: Stage[] = [
  {
    name: "in thinking: the model is told of the interrupt, and nothing of what it thought",
    scripts: [never(think("hm", "well"))],
    reach: (reader) => reader.untilPayload("partial_thinking", ({ thinking }) => thinking === "well"),
    texts: ["Prompt.", /^\[turn_aborted\]\n[^\n]*before anything was said[^\n]*\n\[\/turn_aborted\]$/],
    outputs: [],
  },
  {
    name: "in arguments, after a text: the text is told, the half call is not",
    scripts: [never(say("I call"), call(0, "half", "exec_command", { cmd: "touch never" }).slice(0, 1))],
    reach: (reader) => reader.untilPayload("partial_tool_call", ({ arguments: text }) => text !== ""),
    texts: ["Prompt.", /Assistant: I call/],
    outputs: [],
  },
  {
    name: "with an approval pending while the model still speaks: the input goes again, and the block tells the call",
    mode: "always-ask",
    scripts: [never(call(0, "open_call", "exec_command", { cmd: "echo 1" }), say("And"))],
    reach: async (reader) => {
      await askedAbout(reader, "open_call");
      await reader.untilPayload("partial_text", ({ text }) => text === "And");
    },
    texts: [
      "Prompt.",
      /Called exec_command: \{"cmd":"echo 1"\}\nOutput of exec_command: \[interrupted.*\]\nAssistant: And/,
    ],
    outputs: [],
  },
  {
    name: "with one tool running and another call asked about: both outputs, in call order",
    mode: "always-ask",
    scripts: [calls(exec("runs", "echo so far; sleep 600"), exec("asked", "echo never"))],
    reach: async (reader, id) => {
      await reader.untilPayload("request_end");
      await askedAbout(reader, "runs");
      expect(await decide(server, id, "runs", "allow")).toBe(204);
      await askedAbout(reader, "asked");
      await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("so far"));
    },
    texts: ["Prompt."],
    outputs: [`so far\n${INTERRUPTED}`, INTERRUPTED],
  },
  {
    name: "between approval and start: allowed and interrupted in one breath, one output and one decision",
    mode: "always-ask",
    scripts: [calls(exec("between", "echo ran; sleep 600"))],
    reach: async (reader, id) => {
      await reader.untilPayload("request_end");
      await askedAbout(reader, "between");
      return () => decide(server, id, "between", "allow");
    },
    texts: ["Prompt."],
    outputs: [/\[interrupted: tool aborted by user\]$/],
  },
  {
    name: "F3 H6 H9: in a tool that ignores signals, with grandchildren: none of them is left",
    scripts: [
      calls(
        exec(
          "deaf",
          "trap '' TERM INT HUP; (trap '' TERM; (trap '' TERM; echo pid $BASHPID; while :; do sleep 1; done) & while :; do sleep 1; done) & echo pid $!; echo pid $$; while :; do sleep 1; done",
        ),
      ),
    ],
    reach: async (reader) => {
      await reader.untilPayload("request_end");
      await reader.untilPayload("partial_tool_call_output", () => pidsIn(outputOf(reader)).length === 3);
    },
    withinMs: STUBBORN_MS,
    texts: ["Prompt."],
    outputs: [/^(pid \d+\n){3}\[interrupted: tool aborted by user\]$/],
    pids: (reader) => pidsIn(outputOf(reader)),
  },
  {
    name: "before the second Request's first byte: its input, the outputs, goes again",
    scripts: [calls(exec("first", "echo one")), never()],
    reach: (reader) => reader.until(() => payloads(reader.messages, "request_begin").length === 2),
    texts: ["Prompt.", /before anything was said/],
    outputs: ["one\n"],
  },
  {
    name: "in the second Request's text: the outputs as outputs, then the block",
    scripts: [calls(exec("second", "echo two")), never(say("Now"))],
    reach: (reader) => reader.untilPayload("partial_text", ({ text }) => text === "Now"),
    texts: ["Prompt.", /Assistant: Now/],
    outputs: ["two\n"],
  },
  {
    name: "F17: in back-off: the failed try's block stands as it is, once",
    scripts: [{ steps: say("half"), end: "reset" }],
    reach: (reader) => reader.until(({ data }) => data.type === "task_state" && data.retry !== undefined),
    texts: ["Prompt.", /^\[turn_retried\][\s\S]*Assistant: half[\s\S]*\[\/turn_retried\]$/],
    outputs: [],
  },
  {
    name: "in a second try: a block for the first, a block for the second, neither in the other",
    scripts: [{ steps: say("one half"), end: "reset" }, never(say("another half"))],
    reach: async (reader, id) => {
      await reader.until(({ data }) => data.type === "task_state" && data.retry !== undefined);
      expect((await api(server, "POST", at(id, "/retry-now"))).body).toEqual({ skipped: true });
      await reader.untilPayload("partial_text", ({ text }) => text === "another half");
    },
    texts: [
      "Prompt.",
      /^\[turn_retried\][\s\S]*Assistant: one half/,
      /^\[turn_aborted\][\s\S]*Assistant: another half/,
    ],
    outputs: [],
  },
];

const textsIn = (messages: readonly ChatMessage[]) =>
  messages.filter(({ role }) => role === "user").map(({ content }) => String(content));

/** Interrupts. @returns how long it took until a reader was told that the Session is idle */
async function interrupt(
  id: string,
  reader: SseReader,
  taskId: string,
  beside?: () => Promise<unknown>,
): Promise<number> {
  const from = performance.now();
  const [aborted] = await Promise.all([api(server, "POST", at(id, "/abort")), beside?.()]);
  expect(aborted.status).toBe(202);
  const end = await reader.untilEnded(taskId);
  const tookMs = performance.now() - from;
  expect(end.data).toMatchObject({ state: "idle", pendingApprovals: 0, ended: { status: "aborted" } });
  expect(reader.messages.at(-1)?.payload).toMatchObject({ type: "abort", reason: "user" });
  return tookMs;
}

describe("F1 F3 E3 E8: an interrupt", () => {
  const took: number[] = [];

  test.each(STAGES)("$name", async ({ mode, scripts, reach, withinMs = SOON_MS, texts, outputs, pids }) => {
    const id = await makeSession(server, { approvalMode: mode ?? "allow-all" });
    const reader = await follow(server, id);
    upstream.script(...scripts);
    const taskId = await prompt(server, id, "Prompt.");
    const beside = await reach(reader, id);
    const tookMs = await interrupt(id, reader, taskId, typeof beside === "function" ? () => beside() : undefined);
    expect(tookMs).toBeLessThan(withinMs);
    took.push(tookMs);
    await allGone(pids?.(reader) ?? []);
    await expectLawful(server, id, reader.messages);
    upstream.script(answer("As you say."));
    await reader.untilEnded(await prompt(server, id, "Next."));
    await expectLawful(server, id, reader.messages);
    const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
    expectPaired(messages);
    const fits = (each: string | RegExp) => (typeof each === "string" ? each : expect.stringMatching(each));
    expect(textsIn(messages)).toEqual([...texts.map(fits), "Next."]);
    expect(outputsIn(messages)).toEqual(outputs.map(fits));
  });

  test("waits for nothing: the median of all stages is short", () => {
    expect(took.toSorted((a, b) => a - b)[took.length >> 1]).toBeLessThan(USUAL_MS);
  });
});

test("an interrupt of a compaction in mid-Task: the old context stays, and its outputs go to the next Request", async () => {
  const compacting = await startUpstream();
  const other = await startOmnid({ config: { ...compacting.config(), compaction: { maxContextLength: 1_000 } } });
  const id = await makeSession(other, { approvalMode: "allow-all" });
  const reader = await follow(other, id);
  const { steps } = calls(exec("before", "echo before"));
  compacting.script(
    { steps: [...steps.slice(0, -3), ...finish("tool_calls", usage(999, 1))] },
    never(say("half a summary")),
    answer("As you say."),
  );
  const taskId = await prompt(other, id, "Prompt.");
  await reader.untilPayload("compaction_begin");
  await compacting.request(1);
  const from = performance.now();
  expect((await api(other, "POST", at(id, "/abort"))).status).toBe(202);
  const { data } = await reader.untilEnded(taskId);
  expect(performance.now() - from).toBeLessThan(SOON_MS);
  expect(data).toMatchObject({ state: "idle", ended: { status: "aborted" } });
  const kinds = reader.messages.slice(-2).map(({ payload }) => payload);
  expect(kinds).toMatchObject([
    { type: "compaction_end", status: "aborted" },
    { type: "abort", reason: "user" },
  ]);
  await reader.untilEnded(await prompt(other, id, "Next."));
  await expectLawful(other, id, reader.messages);
  const { messages } = compacting.requests.at(-1)?.body ?? { messages: [] };
  expectPaired(messages);
  expect(textsIn(messages)).toEqual(["Prompt.", "Next."]);
  expect(outputsIn(messages)).toEqual(["before\n"]);
});

test(`F1 E8: twenty aborts in a row at any instant (seed ${SEED}), then a normal run`, async () => {
  const random = randomOf(SEED);
  const id = await makeSession(server);
  const first = upstream.requests.length;
  upstream.otherwise(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return answer("It", " is", " done.");
    const mark = `m${upstream.requests.length}`;
    return {
      steps: [
        ...think("hm", "well"),
        ...say("I", " call"),
        ...call(0, `${mark}_a`, "exec_command", { cmd: "echo one; sleep 0.05; echo two" }),
        ...call(1, `${mark}_b`, "exec_command", { cmd: "echo three" }),
        ...say(" and", " say"),
        ...finish("tool_calls", usage(10, 5)),
      ],
    };
  });
  let events = 0;
  let abortAfter = Number.POSITIVE_INFINITY;
  const acts: Promise<unknown>[] = [];
  const onEvent = ({ data }: StreamEvent) => {
    if (++events === abortAfter) acts.push(api(server, "POST", at(id, "/abort")));
    const callId = data.type === "approval_request" ? data.toolCall.payload.tool_call_id : undefined;
    if (callId !== undefined) acts.push(decide(server, id, callId, random(4) === 0 ? "deny" : "allow"));
  };
  const reader = await follow(server, id, { onEvent });
  for (let round = 0; round < 20; round++) {
    abortAfter = events + 1 + random(50);
    const { data } = await reader.untilEnded(await prompt(server, id, `Round ${round}.`));
    expect(["aborted", "completed"]).toContain(data.ended.status);
    await Promise.all(acts.splice(0));
  }
  abortAfter = Number.POSITIVE_INFINITY;
  const { data } = await reader.untilEnded(await prompt(server, id, "Last."));
  expect(data.ended.status).toBe("completed");
  await expectLawful(server, id, reader.messages);
  expect(payloads(reader.messages, "abort").length).toBeGreaterThan(5);
  for (const { body } of upstream.requests.slice(first)) {
    expectPaired(body.messages);
    for (const text of textsIn(body.messages))
      expect(text.match(/\[turn_aborted\]/g) ?? []).toHaveLength(text.startsWith("[turn_aborted]") ? 1 : 0);
  }
});
