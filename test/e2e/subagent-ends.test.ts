// Parents and children across the end of a process, in any way, and across a reader's absence.

import { describe, expect, test, vi } from "vitest";
import { PartialAggregator } from "../../src/protocol/aggregate.js";
import { isPartial, isSessionMeta } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import { childOf, delegate, expectChild, family, ofChild, pointers } from "../support/family.js";
import { gated, throughAll } from "../support/gated.js";
import { type Server, startOmnid } from "../support/server.js";
import { answer, calls, finish, say, startUpstream, think } from "../support/upstream.js";
import {
  api,
  asked,
  at,
  decide,
  expectLawful,
  expectPaired,
  follow,
  history,
  type Loose,
  makeSession,
  payloads,
  prompt,
  untilIdle,
} from "./api.js";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

async function scripted(env: Record<string, string> = {}) {
  const upstream = await startUpstream();
  const server = await startOmnid({ config: upstream.config(), env: { OMNID_RETRY_LIMIT: "0", ...env } });
  return { upstream, server };
}

const run = (id: string, cmd: string) => calls({ id, name: "exec_command", args: { cmd } });
const own = (messages: readonly OmniMessage[]) => messages.filter(({ origin }) => origin === undefined);
const totalOf = async (server: Pick<Server, "url">, id: string): Promise<number> =>
  (await api(server, "GET", at(id))).body.usage.total;

describe("a process that ends", () => {
  test.each<["SIGKILL" | "SIGTERM", string]>([
    ["SIGKILL", "server_restarted"],
    ["SIGTERM", "shutdown"],
  ])("by %s closes a child that only waited for a person, and its parent with it", async (signal, reason) => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server);
    family(upstream, [delegate("waits")], { waits: [run("c", "echo ran")] });
    const reader = await follow(server, id);
    await prompt(server, id, "go");
    await decide(server, id, await asked(reader), "allow");
    await reader.until(({ data }) => data.type === "approval_request" && data.origin !== undefined);
    const childId = await childOf(reader);
    await server.stop(signal);
    await reader.ended;
    const next = await server.restart();
    // Nobody has opened it since: it is closed all the same.
    const listed = (await api(next, "GET", `/api/sessions?parent=${id}`)).body.sessions;
    expect(listed).toMatchObject([{ sessionId: childId, state: "idle", pendingApprovals: 0 }]);
    for (const each of [id, childId]) {
      const { records } = await history(next, each);
      expect(payloads(records, "abort")).toEqual([{ type: "abort", reason }]);
      expect(validateStream(records, { mode: "trace" })).toEqual([]);
      expect((await api(next, "GET", at(each))).body).toMatchObject({ state: "idle", pendingApprovals: 0 });
    }
    const { records } = await history(next, childId);
    expect(payloads(records, "approval_decision")).toMatchObject([{ decision: "deny", decided_by: "abort" }]);
    expect(await totalOf(next, id)).toBe(30);
    const page = (await api(next, "GET", at(id, "/messages"))).body;
    expect(page.children, "the new Channel has carried nothing").toBeUndefined();
    family(upstream, [answer("Go on.")], {});
    await prompt(next, id, "And now?");
    await untilIdle(next, id);
    expectPaired(upstream.requests.at(-1)?.body.messages ?? []);
    await expectLawful(next, id, own(reader.messages), { running: true });
    expect(await totalOf(next, id)).toBe(45);
  });

  test("F1: by SIGKILL with children at work loses nothing that the parent's stream showed of them", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    family(upstream, [delegate("speaks", "runs", "is done")], {
      speaks: [{ steps: [...think("hm"), ...say("half of")], end: "never" }],
      runs: [run("c", "echo begun; sleep 60")],
      "is done": [answer("done already")],
    });
    const reader = await follow(server, id);
    await prompt(server, id, "go");
    await reader.untilPayload("partial_tool_call_output", ({ output }) => output.includes("begun"));
    await reader.untilPayload("partial_text", ({ text }) => text === "half of");
    await reader.untilPayload("tool_call_output", ({ output }) => output === "done already");
    await server.stop("SIGKILL");
    await reader.ended;
    const next = await server.restart();
    const children = pointers(reader.messages);
    expect(children).toHaveLength(3);
    const used: number[] = [];
    for (const child of children) {
      const { records } = await history(next, child);
      const shown = ofChild(reader.messages, child).filter((message) => !isPartial(message));
      expect(records.filter((record) => shown.some((each) => JSON.stringify(each) === JSON.stringify(record)))).toEqual(
        shown,
      );
      expect(validateStream(records, { mode: "trace" })).toEqual([]);
      used.push(await totalOf(next, child));
    }
    expect(await totalOf(next, id)).toBe(15 + used.reduce((sum, each) => sum + each, 0));
    const [listed] = (await api(next, "GET", "/api/sessions")).body.sessions;
    expect(listed.usage.total).toBe(await totalOf(next, id));
    family(upstream, [answer("Go on.")], {});
    await prompt(next, id, "And now?");
    await untilIdle(next, id);
    expectPaired(upstream.requests.at(-1)?.body.messages ?? []);
  });
});

describe("a reader", () => {
  test("A14: that was cut off in mid-child has, once back, what an uncut one saw", async () => {
    const server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: "2" } });
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const whole = await follow(server, id);
    const taskId = await prompt(server, id, "/subagent /run seq 3");
    let isOver = false;
    const over = whole.untilEnded(taskId).then(() => {
      isOver = true;
    });
    const messages: OmniMessage[] = [];
    let lastEventId = (await history(server, id)).cursor.replace(/-\d+$/, "-0");
    let cuts = 0;
    while (!isOver || messages.length < whole.messages.length) {
      // Room for more once it is over: a message that is longer has to fit at last.
      const reader = await follow(server, id, { lastEventId, cutAfterBytes: isOver ? 10_000 : 2_500 });
      const end = isOver ? reader.until(({ name }) => name !== undefined).catch(() => {}) : over;
      await Promise.race([reader.ended, end]);
      reader.close();
      messages.push(...reader.messages);
      lastEventId = reader.ids.at(-1) ?? lastEventId;
      cuts += 1;
    }
    expect(cuts).toBeGreaterThan(3);
    expect(messages).toEqual(whole.messages);
    await expectLawful(server, id, messages);
    await expectChild(server, pointers(messages)[0] as string, messages);
  });

  test("A5 A18: that takes a page and its children at any instant, then the stream from there, has what an uncut one has", async () => {
    const { upstream, server } = await scripted();
    const id = await makeSession(server, { approvalMode: "allow-all" });
    const whole = await follow(server, id);
    const words = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}${index} `);
    const one = gated({ steps: [...think(...words("t", 5)), ...say(...words("s", 8)), ...run("c", "seq 3").steps] });
    const rest = gated({ steps: [...say(...words("z", 8)), ...finish("stop")] });
    const two = gated({ steps: [...say(...words("y", 20)), ...finish("stop")] });
    family(upstream, [delegate("one", "two"), answer("both")], { one: [one.script, rest.script], two: [two.script] });
    const taskId = await prompt(server, id, "go");

    const pages: Loose[] = [];
    const look = async () => {
      const page = (await api(server, "GET", at(id, "/messages"))).body;
      const children: Record<string, OmniMessage[]> = {};
      for (const [child, count] of Object.entries(page.children ?? {}))
        children[child] = (await api(server, "GET", at(child, `/messages?before=${count}`))).body.messages;
      pages.push({ ...page, records: children });
    };
    // The children take turns, the one that is asked twice first.
    const turns = one.gates.flatMap((each, index) => [each, ...two.gates.slice(index * 2, index * 2 + 2)]);
    await throughAll(whole, [...turns, ...two.gates.slice(one.gates.length * 2), ...rest.gates], look);
    await whole.untilEnded(taskId);
    await look();
    await expectLawful(server, id, whole.messages);
    const children = pointers(whole.messages);
    for (const child of children) await expectChild(server, child, whole.messages);
    expect(
      pages.filter(({ live }) => live?.fragments.some(({ origin }: OmniMessage) => origin)).length,
    ).toBeGreaterThan(20);
    expect(Object.keys(pages.at(-1).children).sort()).toEqual([...children].sort());
    let compared = 0;
    for (const page of pages) compared += expectSeam(page, whole.messages);
    expect(compared).toBeGreaterThan(pages.length);
  });
});

/**
 * Rebuilds what a client has that took the page and then the stream behind its cursor: of each child every record that
 * the stream shows, and whole segments for those that were open.
 * @returns how many segments that were open in the page came out whole.
 */
function expectSeam(page: Loose, whole: readonly OmniMessage[]): number {
  const rest = whole.slice(Number(page.cursor.split("-")[1]));
  const open = new PartialAggregator();
  for (const fragment of page.live?.fragments ?? []) open.push(fragment);
  const amounts = rest.flatMap((message) => {
    const complete = open.push(message);
    return complete === undefined ? [] : [complete];
  });
  for (const made of amounts) {
    const { timestamp: _, ...expected } = made as OmniMessage & { timestamp: string };
    expect(rest).toContainEqual(expect.objectContaining({ payload: expect.objectContaining(expected.payload) }));
  }
  for (const child of pointers(whole)) {
    const had = (page.records[child] ?? []).map(({ ordinal: _, ...record }: Loose) => record as OmniMessage);
    const visible = had.filter(
      ({ type, payload }: Loose) =>
        type !== "model_msg" || payload.role !== "user" || payload.type === "tool_call_output",
    );
    const then = ofChild(rest, child).filter((message) => !isPartial(message));
    const all = ofChild(whole, child).filter((message) => !isPartial(message));
    expect([...visible, ...then]).toEqual(all);
    expect(all.filter(isSessionMeta)).toHaveLength(1);
  }
  return page.live === undefined ? 0 : amounts.length;
}
