// The real process, killed again and again wherever it happens to be, while a client watches, prompts, steers, queues
// and answers approvals. After each restart everything that the client was told is still so.
//
// OMNID_KILLS says how often (6 unless given), OMNID_SEED where: the number of events after which the kill comes.

import { execFile } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, inject, test, vi } from "vitest";
import { isPartial } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import { waitingCalls } from "../support/crash-world.js";
import { randomOf } from "../support/random.js";
import { type Server, startOmnid } from "../support/server.js";
import type { StreamEvent } from "../support/sse-client.js";
import {
  call,
  finish,
  type Script,
  say,
  startUpstream,
  think,
  type UpstreamRequest,
  usage,
} from "../support/upstream.js";
import { api, at, expectPaired, follow, history, type Loose, makeSession, payloads, prompt } from "./api.js";

const KILLS = Number(process.env.OMNID_KILLS ?? 6);
const SEED = Number(process.env.OMNID_SEED ?? 1);

vi.setConfig({ testTimeout: 60_000 + KILLS * 30_000 });

const words = (count: number) => Array.from({ length: count }, (_, index) => `word ${index} `);
const command = (mark: string) => ({ cmd: `echo ${mark} >> ran; echo out; sleep 0.02; echo more` });

/** Two calls for each prompt that says go, then an answer. */
function scriptFor({ messages }: UpstreamRequest["body"]): Script {
  const last = messages.at(-1);
  const go = last?.role === "user" ? /^go (\S+)$/.exec(String(last.content)) : null;
  if (go === null) return { steps: [...say(...words(5)), ...finish("stop", usage(10, 5))] };
  const mark = go[1] as string;
  return {
    steps: [
      ...think("hm", "well"),
      ...say(...words(3)),
      ...call(0, `${mark}_a`, "exec_command", command(`${mark}-a`)),
      ...call(1, `${mark}_b`, "exec_command", command(`${mark}-b`)),
      ...finish("tool_calls", usage(10, 5)),
    ],
  };
}

/** What a client was told in one life of the server. */
interface Seen {
  messages: OmniMessage[];
  asked: Map<string, string>;
  tasks: Map<string, string>;
  steered: Map<string, string>;
}

/** Watches and acts until the server is killed, after so many events or when all is done. */
async function lifeOf(server: Server, id: string, mark: string, killAfter: number): Promise<Seen> {
  const seen: Seen = { messages: [], asked: new Map(), tasks: new Map(), steered: new Map() };
  const acts: Promise<unknown>[] = [];
  /** What was not answered was not promised. */
  const act = (work: Promise<{ status: number; body: Loose }>) => {
    const told = work.catch(() => undefined);
    acts.push(told);
    return told;
  };
  const post = (path: string, body: object) => act(api(server, "POST", at(id, path), body));
  let events = 0;
  let lastTask: string | undefined;
  const onEvent = ({ name, data }: StreamEvent) => {
    if (++events >= killAfter || (lastTask !== undefined && data.ended?.taskId === lastTask)) server.kill("SIGKILL");
    if (name === undefined) seen.messages.push(data);
    else if (data.type === "approval_request") {
      const callId = data.toolCall.payload.tool_call_id;
      seen.asked.set(callId, data.requestedAt);
      void post(`/approvals/${callId}`, { decision: "allow" });
    }
  };
  const reader = await follow(server, id, { onEvent });
  const submit = async (input: string, more: object = {}) => {
    const told = await post("/tasks", { input, ...more });
    if (told?.status === 202) seen.tasks.set(told.body.taskId, input);
    return told?.body?.taskId as string | undefined;
  };
  await submit(`go ${mark}1`);
  const steered = await post("/steer", { input: `aside ${mark}` });
  if (steered?.status === 202) seen.steered.set(steered.body.steerId, `aside ${mark}`);
  lastTask = await submit(`go ${mark}2`, { whenBusy: "queue" });
  if (lastTask === undefined) server.kill("SIGKILL");
  await reader.ended;
  await server.stop("SIGKILL");
  while (acts.length > 0) await acts.pop();
  return seen;
}

/** Nobody has acted yet: what the new process found is what the old one told. */
async function expectKept(server: Server, id: string, seen: Seen): Promise<void> {
  const { sessions } = (await api(server, "GET", "/api/sessions")).body;
  expect(sessions).toMatchObject([{ sessionId: id }]);
  const { records } = await history(server, id);
  const complete = seen.messages.filter((message) => !isPartial(message));
  expect(compareStreamWithTrace(complete, records, { joined: true, running: true }), "what was seen").toEqual([]);
  for (const [taskId, input] of seen.tasks)
    expect((await api(server, "GET", at(id, `/tasks/${taskId}`))).status, input).toBe(200);
}

/** Answers whatever is asked until nothing runs or waits; what waited for a person did so under its own id and time. */
async function finished(server: Server, id: string, seen: Seen): Promise<void> {
  const reader = await follow(server, id, {
    onEvent: ({ data }) => {
      if (data.type !== "approval_request") return;
      const callId = data.toolCall.payload.tool_call_id;
      expect(data.requestedAt).toBe(seen.asked.get(callId) ?? data.requestedAt);
      void api(server, "POST", at(id, `/approvals/${callId}`), { decision: "allow" });
    },
  });
  const isRest = ({ data }: StreamEvent) => data.type === "task_state" && data.state === "idle" && data.queued === 0;
  await reader.until(isRest);
  reader.close();
  await reader.ended;
}

async function expectPromises(server: Server, id: string, seen: Seen): Promise<void> {
  const { records } = await history(server, id);
  expect(validateStream(records, { mode: "trace" }), "the Trace").toEqual([]);
  const said = payloads(records, "text").filter(({ role }) => role === "user");
  for (const [taskId, input] of seen.tasks) {
    expect((await api(server, "GET", at(id, `/tasks/${taskId}`))).body.state, input).toBe("ended");
    expect(
      said.filter(({ text }) => text === input),
      input,
    ).toHaveLength(1);
  }
  const { items } = (await api(server, "GET", at(id, "/queue"))).body;
  for (const [steerId, text] of seen.steered) {
    const listed = items.filter(({ itemId }: { itemId: string }) => itemId === steerId);
    expect(said.filter((each) => each.text === text).length + listed.length, text).toBe(1);
  }
  for (const { itemId } of items) expect((await api(server, "DELETE", at(id, `/queue/${itemId}`))).status).toBe(200);
}

test("A4 F1 G5 G6 E14: killed anywhere, again and again, nothing that was told is lost, nothing runs twice, the next prompt works", async () => {
  const upstream = await startUpstream();
  upstream.otherwise(scriptFor);
  const random = randomOf(SEED);
  let server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_BASE_MS: "10" } });
  const id = await makeSession(server);
  const { workspace } = (await api(server, "GET", at(id))).body;
  for (let kill = 0; kill < KILLS; kill++) {
    const killAfter = 1 + random(80);
    const seen = await lifeOf(server, id, `k${kill}`, killAfter);
    server = await server.restart();
    try {
      await expectKept(server, id, seen);
      await finished(server, id, seen);
      await expectPromises(server, id, seen);
      await prompt(server, id, `next ${kill}`);
      await finished(server, id, seen);
      const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
      expectPaired(messages);
      expect(messages.at(-1)).toEqual({ role: "user", content: `next ${kill}` });
    } catch (error) {
      throw new Error(`kill ${kill} of seed ${SEED}, after ${killAfter} events`, { cause: error });
    }
  }
  const ran = existsSync(join(workspace, "ran"))
    ? readFileSync(join(workspace, "ran"), "utf8").trimEnd().split("\n")
    : [];
  expect(ran.length, "commands that ran").toBeGreaterThan(KILLS);
  expect(new Set(ran).size, "each at most once").toBe(ran.length);
  const { records } = await history(server, id);
  expect(waitingCalls(records)).toEqual([]);

  const file = join(server.dataDir, "download.jsonl");
  writeFileSync(file, await fetch(server.url + at(id, "/trace")).then((response) => response.text()));
  await promisify(execFile)(process.execPath, [inject("cli"), "verify", file]);
});
