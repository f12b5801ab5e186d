// A Task's own stream: that Task from its beginning to its end, whenever it is opened or opened again, and nothing else.

import { expect, test } from "vitest";
import type { Session } from "../../src/session/session.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { ended, hostOn, listReader, made } from "../support/sessions.js";
import { gate } from "../support/upstream.js";

const says = (...words: string[]): Script => ({ steps: words.map((say) => ({ say })) });

async function withModel(...scripts: Script[]) {
  const host = await hostOn({ model: scriptedModel(scripts) });
  const session = await made(host.create({ approvalMode: "allow-all" }, null));
  const whole = listReader();
  session.follow(whole, {});
  return { session, whole };
}

/** Reads a Task's own stream to its end. */
async function ownOf(session: Session, taskId: string, lastEventId?: string) {
  const reader = listReader();
  const isOver = gate();
  session.follow({ ...reader, end: isOver.open }, { untilTask: taskId, ...(lastEventId && { lastEventId }) });
  return { reader, over: isOver.opened };
}

const said = (events: { data: Record<string, unknown> }[]) =>
  events.flatMap(({ data }) => {
    const { type, text } = (data.payload ?? {}) as { type?: string; text?: string };
    return type === "text" ? [text] : [];
  });
const endsIn = (events: { data: Record<string, unknown> }[]) =>
  events.flatMap(({ data }) => (data.ended as { taskId: string } | undefined)?.taskId ?? []);

test("resumed after its end, with other Tasks since: the rest of it, its end, and nothing of theirs", async () => {
  const { session, whole } = await withModel(says("a", "A"), says("b", "B"), says("c", "C"));
  const tasks: string[] = [];
  for (const input of ["1", "2", "3"]) {
    tasks.push((await made(session.submit(input, {}))).taskId);
    await session.settled();
  }
  const ids = whole.events.flatMap(({ id, name }) => (name === undefined && id !== undefined ? [id] : []));
  const lastOf = (text: string) =>
    whole.events.findLast(({ data }) => JSON.stringify(data).includes(`"text":"${text}"`))?.id as string;
  for (const [index, taskId] of tasks.entries()) {
    const { reader, over } = await ownOf(session, taskId, `${ids[0]?.split("-")[0]}-0`);
    await over;
    expect(said(reader.events).join("")).toBe(["aA", "bB", "cC"][index]);
    expect(endsIn(reader.events)).toEqual([taskId]);
    expect(reader.events.at(-1)?.data).toMatchObject({ ended: { taskId, status: "completed" } });
  }
  // From its last message on there is its end alone.
  const { reader, over } = await ownOf(session, tasks[0] as string, lastOf("B"));
  await over;
  expect(reader.events.map(({ data }) => data.type)).toEqual(["task_state"]);
});

test("resumed while another Task is in the middle of a word: it ends at its own end", async () => {
  const rest = gate();
  const { session, whole } = await withModel(says("one"), {
    steps: [{ say: "tw" }, { wait: rest.opened }, { say: "o" }],
  });
  const { taskId } = await made(session.submit("1", {}));
  await session.settled();
  const first = whole.events.find(({ name }) => name === undefined)?.id as string;
  await made(session.submit("2", {}));
  await whole.until(({ data }) => JSON.stringify(data).includes('"tw"'));
  const { reader, over } = await ownOf(session, taskId, first);
  await over;
  expect(JSON.stringify(reader.events)).not.toContain("tw");
  expect(said(reader.events)).toEqual(["one"]);
  rest.open();
  await session.settled();
});

test("of a Task that waits: how things stand, then nothing until it begins, then all of it", async () => {
  const rest = gate();
  const asked = gate();
  const { session, whole } = await withModel(
    { steps: [{ say: "fir" }, { wait: rest.opened }, { say: "st" }] },
    { steps: [{ say: "sec" }, { wait: asked.opened }, { say: "ond" }] },
    says("third"),
  );
  await made(session.submit("1", {}));
  await whole.until(({ data }) => JSON.stringify(data).includes('"fir"'));
  const second = await made(session.submit("2", { whenBusy: "queue" }));
  const third = await made(session.submit("3", { whenBusy: "queue" }));
  const streams = await Promise.all([second, third].map(({ taskId }) => ownOf(session, taskId)));
  for (const { reader } of streams)
    expect(reader.events.map(({ data }) => [data.type, data.state, data.queued])).toEqual([
      ["task_state", "running", 2],
    ]);
  rest.open();
  await whole.until(({ data }) => JSON.stringify(data).includes('"sec"'));
  // One that was cut off before its Task began, and comes back with what it had.
  const back = await ownOf(session, second.taskId, streams[0]?.reader.events[0]?.id);
  asked.open();
  await whole.until((event) => ended(event) && endsIn([event])[0] === third.taskId);
  await Promise.all([...streams, back].map(({ over }) => over));
  const all = [...streams, back].map(({ reader }) => reader);
  expect(all.map(({ events }) => said(events).join(""))).toEqual(["second", "third", "second"]);
  expect(all.map(({ events }) => endsIn(events))).toEqual([[second.taskId], [third.taskId], [second.taskId]]);
  for (const { events } of all) expect(JSON.stringify(events)).not.toContain("fir");
  // Nothing of it is missing: from its `task_state` of running on it has what everybody has.
  const from = whole.events.findIndex(({ data }) => data.type === "task_state" && data.taskId === third.taskId);
  expect(all[1]?.events.slice(1)).toEqual(whole.events.slice(from));
});

test("of a Task that is taken back while it waits: its end", async () => {
  const rest = gate();
  const { session, whole } = await withModel({ steps: [{ say: "fir" }, { wait: rest.opened }, { say: "st" }] });
  const { taskId: first } = await made(session.submit("1", {}));
  const { taskId } = await made(session.submit("2", { whenBusy: "queue" }));
  const { reader, over } = await ownOf(session, taskId);
  await made(session.recall(taskId));
  await over;
  expect(endsIn(reader.events)).toEqual([taskId]);
  expect(reader.messages).toEqual([]);
  rest.open();
  await whole.until((event) => ended(event) && endsIn([event])[0] === first);
});
