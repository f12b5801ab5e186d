// Subagents over HTTP: a child is a Session of its own whose whole stream is also on its parent's.

import { execFileSync } from "node:child_process";
import { describe, expect, test, vi } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { childOf, decideAt, delegate, expectChild, family, ofChild, pointers } from "../support/family.js";
import { startOmnid } from "../support/server.js";
import { openSse } from "../support/sse-client.js";
import { answer, call, calls, finish, gate, say, startUpstream, usage } from "../support/upstream.js";
import {
  api,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  history,
  type Loose,
  makeSession,
  outputsIn,
  payloads,
  prompt,
  untilIdle,
} from "./api.js";

vi.setConfig({ testTimeout: 60_000 });

async function scripted(env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0", ...env } });
  return { upstream, server };
}

const own = (messages: readonly OmniMessage[]): OmniMessage[] => messages.filter(({ origin }) => origin === undefined);
const run = (id: string, cmd: string) => calls({ id, name: "exec_command", args: { cmd } });
const viewOf = async (server: { url: string }, id: string): Promise<Loose> => (await api(server, "GET", at(id))).body;

describe("a child", () => {
  test("works in its parent's Workspace, and its parent's stream shows all of it behind the pointer", async () => {
    const server = await startOmnid();
    const id = await makeSession(server, { approvalMode: "allow-all", title: "parent" });
    const reader = await follow(server, id);
    await reader.untilEnded(await prompt(server, id, "/subagent /run pwd; echo heron"));
    await expectLawful(server, id, reader.messages);
    const [childId] = pointers(reader.messages) as [string];
    await expectChild(server, childId, reader.messages);

    const parent = await viewOf(server, id);
    const child = await viewOf(server, childId);
    expect(child).toMatchObject({
      parentSessionId: id,
      workspace: parent.workspace,
      provider: "demo",
      approvalMode: "allow-all",
      title: "/run pwd; echo heron",
      state: "idle",
    });
    const said = payloads(ofChild(reader.messages, childId), "text").at(-1)?.text as string;
    expect(said).toContain("heron");
    expect(said).toContain(parent.workspace);
    const outputs = payloads(own(reader.messages), "tool_call_output");
    expect(outputs.map(({ output, stop_reason }) => [output, stop_reason])).toEqual([[said, undefined]]);
    const meta: Loose = (await history(server, childId)).records[0]?.payload;
    const names = meta.tools.map(({ name }: Loose) => name);
    expect(names).toEqual(["exec_command", "read_file", "write_file", "edit_file", "read_image"]);
    expect(meta.system_prompt).not.toContain("run_subagent");
    expect((await history(server, id)).records[0]?.payload).toMatchObject({
      tools: [...names, "run_subagent"].map((name) => ({ name })),
    });
  });

  test("is listed under its parent alone, and only to its owner", async () => {
    const server = await startOmnid({ env: { OMNID_TOKENS: "a:secret-of-a,b:secret-of-b" } });
    const a = { authorization: "Bearer secret-of-a" };
    const b = { authorization: "Bearer secret-of-b" };
    const id = await makeSession(server, { approvalMode: "allow-all" }, a);
    const stream = { method: "POST" as const, body: { input: "/subagent hello" }, headers: a };
    const reader = await openSse(server.url + at(id, "/tasks"), stream);
    await reader.ended;
    const list = async (query: string, headers: Record<string, string>) =>
      (await api(server, "GET", `/api/sessions${query}`, undefined, headers)).body.sessions.map(
        ({ sessionId }: Loose) => sessionId,
      );
    const [childId] = pointers(reader.messages) as [string];
    expect(await list(`?parent=${id}`, a)).toEqual([childId]);
    expect(await list("", a)).toEqual([id]);
    expect(await list(`?parent=${id}`, b)).toEqual([]);
    expect((await api(server, "GET", at(childId), undefined, b)).status).toBe(404);
  });

  test("inherits a system prompt and a choice of tools that are the parent's own", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, {
      approvalMode: "allow-all",
      systemPrompt: "You are a heron.",
      tools: ["read_file", "run_subagent"],
    });
    family(upstream, [delegate("fish"), answer("done")], { fish: [answer("caught")] });
    const reader = await follow(server, id);
    await reader.untilEnded(await prompt(server, id, "go"));
    const [, asked] = upstream.requests;
    expect(asked?.body.messages).toEqual([
      { role: "system", content: "You are a heron." },
      { role: "user", content: "fish" },
    ]);
    expect(asked?.body.tools).toMatchObject([{ function: { name: "read_file" } }]);
    expect(outputsIn(upstream.requests[2]?.body.messages ?? [])).toEqual(["caught"]);
  });

  test.each<[string, Loose[], string, string | undefined]>([
    [
      "nothing in its last answer",
      [run("c", "true"), { steps: [...say(" "), ...finish("stop")] }],
      "[no output]",
      undefined,
    ],
    [
      "a Request that is refused",
      [run("c", "true"), { status: 400, steps: ['{"error":{"message":"no such luck"}}'] }],
      "[the subagent failed: invalid_request: ",
      "failed",
    ],
  ])("that ends with %s tells its parent's model so", async (_, scripts, output, stop) => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("work"), answer("I see.")], { work: scripts });
    const reader = await follow(server, id);
    const { data } = await reader.untilEnded(await prompt(server, id, "go"));
    expect(data.ended.status).toBe("completed");
    await expectLawful(server, id, reader.messages);
    await expectChild(server, pointers(reader.messages)[0] as string, reader.messages);
    const [told] = payloads(own(reader.messages), "tool_call_output");
    expect(told?.output.startsWith(output), told?.output).toBe(true);
    expect(told?.stop_reason).toBe(stop);
  });

  test("that has no turns left gives what it said last and the notice", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all", maxTurns: 2 });
    const both = (text: string, callId: string) => ({
      steps: [...say(text), ...call(0, callId, "exec_command", { cmd: "true" }), ...finish("tool_calls")],
    });
    family(upstream, [delegate("work"), answer("I see.")], { work: [both("one", "a"), both("two", "b")] });
    const reader = await follow(server, id);
    await reader.untilEnded(await prompt(server, id, "go"));
    const [told] = payloads(own(reader.messages), "tool_call_output");
    expect(told).toMatchObject({ output: "two\n[reached max turns (2); stopping]" });
    await expectChild(server, pointers(reader.messages)[0] as string, reader.messages);
  });

  test("is steered like any Session, and what it is prompted afterwards stays its own", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const held = gate();
    family(upstream, [delegate("work"), answer("done")], {
      work: [{ steps: [...say("first"), held, ...finish("stop")] }, answer("steered"), answer("later")],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    const childId = await childOf(reader);
    await reader.untilPayload("partial_text", ({ text }) => text === "first");
    expect((await api(server, "POST", at(childId, "/steer"), { input: "faster" })).status).toBe(202);
    const queued = await api(server, "POST", at(childId, "/tasks"), { input: "more", whenBusy: "queue" });
    expect(queued.body.queued).toBe(1);
    const childReader = await follow(server, childId);
    held.open();
    await reader.untilEnded(taskId);
    await childReader.untilEnded(queued.body.taskId);
    const texts = payloads((await history(server, childId)).records, "text").map(({ text }) => text);
    expect(texts).toEqual(["work", "first", "faster", "steered", "more", "later"]);
    expect(payloads(own(reader.messages), "tool_call_output")[0]?.output).toBe("steered");
    expect(payloads(reader.messages, "text").map(({ text }) => text)).not.toContain("later");
    await expectLawful(server, id, reader.messages);
    const { children } = (await api(server, "GET", at(id, "/messages"))).body;
    const page = (await api(server, "GET", at(childId, `/messages?before=${children[childId]}`))).body.messages;
    expect(page.at(-1).payload).toMatchObject({ type: "request_end" });
    expect(payloads(page, "text").at(-1)?.text).toBe("steered");
  });
});

test("a child's tool whose output is held back shows life on its parent's stream too", async () => {
  const server = await startOmnid();
  const id = await makeSession(server, { approvalMode: "allow-all" });
  const reader = await follow(server, id);
  const taskId = await prompt(server, id, "/subagent /run seq 20000; sleep 1; echo end");
  const childId = await childOf(reader);
  const { data } = await reader.until(({ data }) => data.type === "tool_progress");
  expect(data).toMatchObject({ origin: [childId], toolCallId: "call_demo_1" });
  expect(data.bytes).toBeGreaterThan(0);
  const figures = await fetch(`${server.url}/metrics`).then((response) => response.text());
  expect(figures).toMatch(/^omnid_subagents_running 1$/m);
  expect(figures).toMatch(/^omnid_tasks_running 1$/m);
  await reader.untilEnded(taskId);
});

describe("approvals", () => {
  test("E13: of two children that use one call id both are asked about on the parent's stream, and answered at the child", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server);
    family(upstream, [delegate("one", "two"), answer("both")], {
      one: [run("same", "echo from-one"), answer("one ran")],
      two: [run("same", "echo from-two"), answer("two was denied")],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    for (const [number, callId] of ["sub_0", "sub_1"].entries()) {
      await reader.until(
        ({ data }) => data.type === "approval_request" && data.toolCall.payload.tool_call_id === callId,
      );
      expect(await decide(server, id, callId, "allow")).toBe(204);
      // The first child asks first, whichever of the two would have been faster.
      await reader.until(
        () => reader.serverEvents("approval_request").filter(({ origin }) => origin !== undefined).length > number,
      );
    }
    await reader.until(({ data }) => data.type === "task_state" && data.pendingApprovals === 2);
    const children = [await childOf(reader, 0), await childOf(reader, 1)] as [string, string];
    const open = (await api(server, "GET", at(id, "/approvals"))).body.approvals;
    expect(open.map(({ sessionId, origin }: Loose) => [sessionId, origin])).toEqual(
      children.map((child) => [child, [child]]),
    );
    expect(open.map(({ toolCall }: Loose) => toolCall.payload.tool_call_id)).toEqual(["same", "same"]);
    expect((await viewOf(server, id)).pendingApprovals).toBe(2);
    for (const child of children) {
      const [view, ...rest] = (await api(server, "GET", at(child, "/approvals"))).body.approvals;
      expect([view.sessionId, view.origin, rest]).toEqual([child, undefined, []]);
    }
    // One who connects now is told of both.
    const late = await follow(server, id);
    await late.until(() => late.serverEvents("approval_request").length === 2);
    expect(late.serverEvents("approval_request").map(({ type: _, ...view }) => view)).toEqual(open);

    expect(await decide(server, id, "same", "allow")).toBe(404);
    const before = reader.events.length;
    expect(await decideAt(server, open[1], "deny")).toBe(204);
    expect(await decideAt(server, open[1], "allow")).toBe(409);
    await reader.until(({ data }) => data.type === "task_state" && data.pendingApprovals === 1, before);
    expect(await decideAt(server, open[0], "allow")).toBe(204);
    await reader.untilEnded(taskId);
    await expectLawful(server, id, reader.messages);
    for (const child of children) await expectChild(server, child, reader.messages);
    const decided = (child: string) => payloads(ofChild(reader.messages, child), "approval_decision");
    expect(children.map((child) => decided(child).map(({ decision, decided_by }) => [decision, decided_by]))).toEqual([
      [["allow", "user"]],
      [["deny", "user"]],
    ]);
    expect(payloads(ofChild(reader.messages, children[0]), "tool_call_output")[0]?.output).toContain("from-one");
    const last = upstream.requests.at(-1)?.body.messages ?? [];
    expectPaired(last);
    expect(outputsIn(last)).toEqual(["one ran", "two was denied"]);
  });

  test("the parent's mode is the child's, and a change of it decides what is pending there", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const held = gate();
    family(upstream, [delegate("one"), answer("done")], {
      one: [
        { steps: [held, ...call(0, "c", "exec_command", { cmd: "echo ran" }), ...finish("tool_calls")] },
        answer("ok"),
      ],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    const childId = await childOf(reader);
    await api(server, "PATCH", at(id), { approvalMode: "read-only" });
    held.open();
    await reader.until(({ data }) => data.type === "approval_request");
    expect(await viewOf(server, childId)).toMatchObject({ approvalMode: "read-only", pendingApprovals: 1 });
    await api(server, "PATCH", at(id), { approvalMode: "allow-all" });
    await reader.untilEnded(taskId);
    expect(payloads(ofChild(reader.messages, childId), "approval_decision")).toMatchObject([
      { decision: "allow", decided_by: "policy" },
    ]);
    await expectLawful(server, id, reader.messages);
    await expectChild(server, childId, reader.messages);
  });

  test("no other mode is set at a child while its parent's holds; its own Tasks afterwards have one of their own", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const held = gate();
    family(upstream, [delegate("one"), answer("done")], {
      one: [
        { steps: [held, ...call(0, "c", "exec_command", { cmd: "echo ran" }), ...finish("tool_calls")] },
        answer("ok"),
      ],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    const childId = await childOf(reader);
    await vi.waitFor(async () => expect((await viewOf(server, childId)).state).toBe("running"));
    const refused = await api(server, "PATCH", at(childId), { approvalMode: "always-ask", title: "mine" });
    expect([refused.status, refused.body.error.code]).toEqual([409, "task_in_progress"]);
    expect(await viewOf(server, childId)).toMatchObject({ approvalMode: "allow-all", title: "child one" });
    const same = await api(server, "PATCH", at(childId), { approvalMode: "allow-all", title: "mine" });
    expect([same.status, same.body.title]).toEqual([200, "mine"]);
    held.open();
    await reader.untilEnded(taskId);

    await api(server, "PATCH", at(id), { approvalMode: "read-only" });
    expect((await viewOf(server, childId)).approvalMode).toBe("allow-all");
    const changed = await api(server, "PATCH", at(childId), { approvalMode: "always-ask" });
    expect([changed.status, changed.body.approvalMode]).toEqual([200, "always-ask"]);
  });

  test("E10: an approval of a child that nobody answers is denied by the clock", async () => {
    const { upstream, server } = await scripted({ OMNID_APPROVAL_TIMEOUT_MS: "300" });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const held = gate();
    family(upstream, [delegate("one"), answer("done")], {
      one: [
        { steps: [held, ...call(0, "c", "exec_command", { cmd: "echo ran" }), ...finish("tool_calls")] },
        answer("ok"),
      ],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    const childId = await childOf(reader);
    await api(server, "PATCH", at(id), { approvalMode: "always-ask" });
    held.open();
    await reader.untilEnded(taskId);
    expect(payloads(ofChild(reader.messages, childId), "approval_decision")).toMatchObject([
      { decision: "deny", decided_by: "timeout" },
    ]);
    await expectLawful(server, id, reader.messages);
  });
});

describe("an interrupt", () => {
  test("of the parent ends its children first, whatever they do, and the next prompt pairs every call", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("speaks", "runs"), answer("Go on.")], {
      speaks: [{ steps: say("half of"), end: "never" }],
      runs: [run("c", "echo begun; sleep 60")],
    });
    const reader = await follow(server, id);
    await prompt(server, id, "go");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("begun"));
    await reader.untilPayload("partial_text", ({ text }) => text === "half of");
    const began = performance.now();
    expect((await api(server, "POST", at(id, "/abort"))).status).toBe(202);
    await reader.untilEnded();
    // Of the minute that the command takes.
    expect(performance.now() - began).toBeLessThan(20_000);
    await expectLawful(server, id, reader.messages);
    const children = pointers(reader.messages);
    expect(children).toHaveLength(2);
    for (const child of children) await expectChild(server, child, reader.messages);
    for (const child of children)
      expect(payloads(ofChild(reader.messages, child), "abort")).toEqual([{ type: "abort", reason: "user" }]);
    const ends = reader.messages.flatMap((message) => {
      const { type } = message.payload as Loose;
      return type === "abort" || (type === "tool_call_output" && message.origin === undefined)
        ? [`${message.origin === undefined ? "parent" : "child"} ${type}`]
        : [];
    });
    expect(ends.at(-1)).toBe("parent abort");
    expect(ends.filter((each) => each === "child abort")).toHaveLength(2);
    expect(ends.indexOf("child abort")).toBeLessThan(ends.indexOf("parent tool_call_output"));
    await prompt(server, id, "And now?");
    await untilIdle(server, id);
    const { messages } = upstream.requests.at(-1)?.body ?? { messages: [] };
    expectPaired(messages);
    expect(outputsIn(messages)).toEqual(Array(2).fill("[interrupted: tool aborted by user]"));
  });

  test("E3: of the parent while a child's approval is pending resolves it on both streams", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server);
    family(upstream, [delegate("one")], { one: [run("c", "echo ran")] });
    const reader = await follow(server, id);
    await prompt(server, id, "go");
    await reader.until(({ data }) => data.type === "approval_request");
    await decide(server, id, "sub_0", "allow");
    await reader.until(({ data }) => data.type === "approval_request" && data.origin !== undefined);
    await api(server, "POST", at(id, "/abort"));
    const end = await reader.untilEnded();
    expect(end.data).toMatchObject({ state: "idle", pendingApprovals: 0 });
    const [childId] = pointers(reader.messages) as [string];
    expect(payloads(ofChild(reader.messages, childId), "approval_decision")).toMatchObject([
      { decision: "deny", decided_by: "abort" },
    ]);
    await expectLawful(server, id, reader.messages);
    await expectChild(server, childId, reader.messages);
    expect((await api(server, "GET", at(childId, "/approvals"))).body.approvals).toEqual([]);
  });

  test.each<[string, (server: { url: string }, child: string) => Promise<unknown>]>([
    ["abort of the child", (server, child) => api(server, "POST", at(child, "/abort"))],
    ["DELETE of the child", (server, child) => api(server, "DELETE", at(child))],
  ])("by %s ends the call, and the parent goes on", async (what, interrupt) => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("one"), answer("Without it, then.")], {
      one: [
        {
          steps: [
            ...say("so far"),
            ...call(0, "c", "exec_command", { cmd: "echo begun; sleep 60" }),
            ...finish("tool_calls", usage(10, 5)),
          ],
        },
      ],
    });
    const reader = await follow(server, id);
    const taskId = await prompt(server, id, "go");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("begun"));
    const childId = await childOf(reader);
    await interrupt(server, childId);
    const { data } = await reader.untilEnded(taskId);
    expect(data.ended.status).toBe("completed");
    await expectLawful(server, id, reader.messages);
    expect(payloads(own(reader.messages), "tool_call_output")).toMatchObject([
      { output: "so far\n[interrupted: the subagent was aborted]", stop_reason: "aborted" },
    ]);
    expect(payloads(ofChild(reader.messages, childId), "abort")).toMatchObject([
      { reason: what.startsWith("abort") ? "user" : "session_deleted" },
    ]);
    expect((await viewOf(server, id)).usage.total).toBe(15 + 15 + 15);
    if (what.startsWith("abort")) await expectChild(server, childId, reader.messages);
    else expect((await api(server, "GET", at(childId))).status).toBe(404);
  });

  test("D12: DELETE of the parent stops its children and takes them along", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("one", "two")], {
      one: [run("c", "echo begun; exec sleep 61.5")],
      two: [{ steps: say("half"), end: "never" }],
    });
    const reader = await follow(server, id);
    await prompt(server, id, "go");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("begun"));
    await reader.untilPayload("partial_text", ({ text }) => text === "half");
    const children = pointers(reader.messages);
    const childReader = await follow(server, children[0] as string);
    expect((await api(server, "DELETE", at(id))).status).toBe(204);
    await Promise.all([reader.ended, childReader.ended]);
    expect(upstream.requests).toHaveLength(3);
    expect(payloads(reader.messages, "abort")).toEqual(Array(3).fill({ type: "abort", reason: "session_deleted" }));
    for (const gone of [id, ...children]) expect((await api(server, "GET", at(gone))).status).toBe(404);
    expect((await api(server, "GET", `/api/sessions?parent=${id}`)).body.sessions).toEqual([]);
    const figures = await fetch(`${server.url}/metrics`).then((response) => response.text());
    expect(figures).toMatch(/^omnid_sessions 0$/m);
    expect(figures).toMatch(/^omnid_tasks_running 0$/m);
    const processes = execFileSync("ps", ["-eo", "args"]).toString();
    expect(processes).not.toContain("sleep 61.5");
  });
});

describe("usage", () => {
  test("a child's counts in its own numbers and in its parent's Session, not in the parent's token_usage", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("one", "two"), answer("done")], {
      one: [run("c", "true"), answer("ok")],
      two: [answer("ok")],
    });
    const reader = await follow(server, id);
    await reader.untilEnded(await prompt(server, id, "go"));
    const listedFor = (await api(server, "GET", `/api/sessions?parent=${id}`)).body.sessions as Loose[];
    const children = ["child one", "child two"].map(
      (title) => listedFor.find((child) => child.title === title).sessionId as string,
    );
    const totals = await Promise.all([id, ...children].map(async (each) => (await viewOf(server, each)).usage.total));
    expect(totals).toEqual([30 + 30 + 15, 30, 15]);
    expect(payloads(own(reader.messages), "token_usage").at(-1)?.session.total).toBe(30);
    const [listed] = (await api(server, "GET", "/api/sessions")).body.sessions;
    expect(listed.usage.total).toBe(75);
    // What a child used stays used.
    await api(server, "DELETE", at(children[0] as string));
    expect((await viewOf(server, id)).usage.total).toBe(75);
    // And what it uses later counts too, once.
    upstream.by(() => answer("more"));
    await prompt(server, children[1] as string, "more");
    await untilIdle(server, children[1] as string);
    expect((await viewOf(server, id)).usage.total).toBe(90);
  });
});

describe("caps", () => {
  test("OMNID_MAX_TASKS=1: a child works in the place of its parent", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_TASKS: "1" } });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    const { data } = await reader.untilEnded(await prompt(server, id, "/subagent /run echo heron"));
    expect(data.ended.status).toBe("completed");
    expect(payloads(own(reader.messages), "tool_call_output")[0]?.output).toContain("heron");
  });

  test("OMNID_MAX_SESSIONS holds for children too, and the model is told", async () => {
    const server = await startOmnid({ env: { OMNID_MAX_SESSIONS: "1" } });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const reader = await follow(server, id);
    const { data } = await reader.untilEnded(await prompt(server, id, "/subagent /run echo heron"));
    expect(data.ended.status).toBe("completed");
    expect(payloads(reader.messages, "tool_call_output")).toMatchObject([
      { stop_reason: "failed", output: expect.stringContaining("No subagent could be started") },
    ]);
    await expectLawful(server, id, reader.messages);
  });
});
