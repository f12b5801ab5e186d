// Parents and children under random plans, answers and interrupts, held to the validator and to what a parent's stream
// promises of its children. Real Sessions on a real disk; only the model is scripted.

import fc from "fast-check";
import { expect, test, vi } from "vitest";
import type { LLMClient, LLMOutcome, LLMRequest } from "../../src/engine/ports.js";
import { isPartial, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { SegmentWriter } from "../../src/protocol/segment.js";
import { compareStreamWithTrace, validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import { counts } from "../support/engine.js";
import { ofChild, pointers } from "../support/family.js";
import { ended, hostOn, type ListReader, listReader, recordsOf } from "../support/sessions.js";

vi.setConfig({ testTimeout: 240_000 });

/** What a child does in one Request. */
interface Turn {
  words: number;
  /** Files that it writes, in one batch. */
  writes: number;
  /** How many turns of the event loop lie between two words. */
  pause: number;
  fails: boolean;
}

type Action = "abort parent" | "abort child" | "delete child" | "allow all" | "ask again" | "steer child";

interface Plan {
  children: Turn[][];
  decisions: boolean[];
  actions: { at: number; action: Action; child: number }[];
}

const turn: fc.Arbitrary<Turn> = fc.record({
  words: fc.nat(5),
  writes: fc.nat(2),
  pause: fc.nat(2),
  fails: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});

const plan: fc.Arbitrary<Plan> = fc.record({
  children: fc.array(fc.array(turn, { minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 3 }),
  decisions: fc.array(fc.boolean(), { minLength: 1, maxLength: 8 }),
  actions: fc.array(
    fc.record({
      at: fc.integer({ min: 1, max: 120 }),
      action: fc.constantFrom<Action>(
        "abort parent",
        "abort child",
        "delete child",
        "allow all",
        "ask again",
        "steer child",
      ),
      child: fc.nat(2),
    }),
    { maxLength: 3 },
  ),
});

/** All ids are those of the provider, and the same in every child. */
function familyModel({ children }: Plan): LLMClient & { requests: LLMRequest[] } {
  const requests: LLMRequest[] = [];
  const left = children.map((turns) => [...turns]);
  let isDelegated = false;
  return {
    requests,
    async *stream(request) {
      requests.push(request);
      const writer = new SegmentWriter(() => new Date().toISOString());
      const [first] = request.messages;
      const name = first !== undefined && isPayload(first, "text") ? /^child (\d)$/.exec(first.payload.text)?.[1] : "";
      const turns = name === undefined || name === "" ? undefined : left[Number(name)];
      const next = turns?.shift();
      const text = writer.openText();
      for (let word = 0; word < (next?.words ?? 1); word++) {
        for (let pause = 0; pause < (next?.pause ?? 0); pause++) await new Promise((resolve) => setImmediate(resolve));
        if (request.signal.aborted) return { status: "aborted", usage: counts(1, 1) };
        text.append(`word${word} `);
        yield writer.take();
      }
      text.end();
      if (next?.fails === true) {
        writer.endAll("failed");
        yield* taken(writer);
        return { status: "failed", usage: counts(1, 1), error: { kind: "invalid_request", message: "no" } };
      }
      const calls: [string, object][] =
        turns !== undefined
          ? Array.from({ length: next?.writes ?? 0 }, (_, index) => [
              "write_file",
              { file_path: `f${index}`, content: "x" },
            ])
          : isDelegated
            ? []
            : children.map((_, index) => ["run_subagent", { prompt: `child ${index}`, description: `${index}` }]);
      if (turns === undefined) isDelegated = true;
      for (const [index, [tool, args]] of calls.entries()) {
        const call = writer.openToolCall();
        const id = `${turns === undefined ? "sub" : `call${turns.length}`}_${index}`;
        call.identify(tool, request.isCallIdTaken(id) ? `again_${requests.length}_${index}` : id);
        call.append(JSON.stringify(args));
        call.end();
      }
      yield* taken(writer);
      return { status: "completed", usage: counts(1, 1) } satisfies LLMOutcome;
    },
  };
}

function* taken(writer: SegmentWriter): Generator<readonly OmniMessage[]> {
  const due = writer.take();
  if (due.length > 0) yield due;
}

/** Answers what is asked and does what the plan says, when the stream has come that far. */
function acting(
  host: SessionManager,
  parent: Session,
  { decisions, actions }: Plan,
  done: Promise<unknown>[],
): ListReader {
  const reader = listReader();
  const { write } = reader;
  let answered = 0;
  const childOf = async (index: number) => {
    const all = pointers(reader.messages);
    const id = all[index % Math.max(1, all.length)];
    return id === undefined ? undefined : host.find(id, null);
  };
  const act: Record<Action, (child: number) => Promise<unknown>> = {
    "abort parent": () => parent.abort(),
    "abort child": async (child) => (await childOf(child))?.abort(),
    "delete child": async (child) => {
      const session = await childOf(child);
      return session === undefined ? undefined : host.remove(session.id, null);
    },
    "allow all": () => parent.patch({ approvalMode: "allow-all" }),
    "ask again": () => parent.patch({ approvalMode: "always-ask" }),
    "steer child": async (child) => (await childOf(child))?.steer("hurry"),
  };
  let seen = 0;
  reader.write = (bytes) => {
    const before = reader.events.length;
    const result = write.call(reader, bytes);
    for (const { name, data } of reader.events.slice(before)) {
      if (name === undefined) {
        seen += 1;
        for (const { at, action, child } of actions) if (at === seen) done.push(act[action](child));
      } else if (data.type === "approval_request") {
        const decision = decisions[answered++ % decisions.length] ? "allow" : "deny";
        const { sessionId, toolCall } = data as { sessionId: string; toolCall: OmniMessage };
        const id = (toolCall.payload as { tool_call_id: string }).tool_call_id;
        done.push(host.find(sessionId, null).then((session) => session?.decide(id, { decision })));
      }
    }
    return result;
  };
  return reader;
}

/** Everything that its Channel has carried. */
async function streamOf(session: Session): Promise<OmniMessage[]> {
  const reader = listReader();
  session.follow(reader, { lastEventId: session.history({}).cursor.replace(/-\d+$/, "-0") });
  reader.leave();
  return reader.messages;
}

async function expectFamily(host: SessionManager, parent: Session, seen: readonly OmniMessage[]): Promise<void> {
  expect(validateStream(seen, { mode: "stream" })).toEqual([]);
  const records = await recordsOf(parent);
  expect(validateStream(records, { mode: "trace" })).toEqual([]);
  expect(compareStreamWithTrace(seen, records)).toEqual([]);
  let used = parent.ownUsage.total;
  for (const id of pointers(seen)) {
    const child = await host.find(id, null);
    if (child === undefined) continue;
    const own = await streamOf(child);
    const all = await recordsOf(child);
    expect(validateStream(all, { mode: "trace" })).toEqual([]);
    expect(validateStream(own, { mode: "stream" })).toEqual([]);
    expect(compareStreamWithTrace(own, all)).toEqual([]);
    const shown = ofChild(seen, id);
    if (shown.length > 0) expect(shown).toEqual([all[0], ...own]);
    used += child.ownUsage.total;
    expect(shown.length > 0 ? parent.history({}).children?.[id] : all.length).toBe(all.length);
  }
  expect(parent.view().usage.total).toBeGreaterThanOrEqual(used);
  expect(parent.view()).toMatchObject({ state: "idle", pendingApprovals: 0 });
  expect(parent.history({}).live).toBeUndefined();
}

test("D12 E3: whatever children do, and whoever interrupts whom, streams and Traces are lawful and agree", async () => {
  let children = 0;
  let interrupted = 0;
  await fc.assert(
    fc.asyncProperty(plan, async (drawn) => {
      const model = familyModel(drawn);
      const host = await hostOn({ model, process: { retry: { baseMs: 0, maxMs: 0, limit: 0 } } });
      const made = await host.create({}, null);
      if (!made.ok) throw new Error(made.message);
      const parent = made.value;
      const done: Promise<unknown>[] = [];
      const reader = acting(host, parent, drawn, done);
      parent.follow(reader, {});
      await parent.submit("go", {});
      await reader.until(ended);
      await parent.settled();
      await Promise.all(done);
      await expectFamily(host, parent, reader.messages);
      // What comes next is paired, whatever was interrupted.
      const second = await parent.submit("and now?", {});
      if (!second.ok) throw new Error(second.message);
      await reader.until(({ data }) => (data.ended as { taskId?: string } | undefined)?.taskId === second.value.taskId);
      await parent.settled();
      expectPairedContext(model.requests.at(-1));
      children += pointers(reader.messages).length;
      if (reader.messages.some((message) => isPayload(message, "abort"))) interrupted += 1;
      await host.drain(0);
    }),
    { numRuns: 60 },
  );
  // Far below what 60 plans come to, so that chance does not fail it: only that there were some.
  expect(children).toBeGreaterThan(10);
  expect(interrupted).toBeGreaterThan(0);
});

/** Every call in the context is followed by its output, once, in call order; nothing of a child is in it. */
function expectPairedContext(request: LLMRequest | undefined): void {
  const messages = request?.messages ?? [];
  expect(messages.some(isPartial)).toBe(false);
  expect(messages.every(({ origin }) => origin === undefined)).toBe(true);
  const calls = messages.flatMap((message) => (isPayload(message, "tool_call") ? [message.payload.tool_call_id] : []));
  const outputs = messages.flatMap((message) =>
    isPayload(message, "tool_call_output") ? [message.payload.tool_call_id] : [],
  );
  expect(outputs).toEqual(calls);
  expect(calls.every((id) => !id.startsWith("call"))).toBe(true);
}
