// A child as it works: the stream leaves out its prompt and what else is in its Trace alone, a follower reads them.

import { expect, onTestFinished, test } from "vitest";
import { createClient, type View } from "../../src/client/index.js";
import { userText } from "../../src/protocol/builders.js";
import { AT, begin, from, metaOf, said } from "../support/messages.js";
import { startRealServer } from "../support/real-server.js";
import { FakeHost, isLive, refusal } from "./fake-host.js";
import type { Step } from "./model-server.js";
import { until } from "./until.js";

const CHILD = "session-child";
const say = (...messages: Parameters<typeof from>[1]): Step[] =>
  from(CHILD, messages).map((message) => ({ kind: "say", message }));
const prompted = (text: string): Step => ({ kind: "child-record", child: CHILD, message: userText(AT, text) });
const settled = ({ children }: View) => children[CHILD]?.isBehind === false;
const textsOf = ({ children }: View) =>
  [...(children[CHILD]?.before ?? []), ...(children[CHILD]?.since ?? [])].flatMap(({ message: { payload } }) =>
    "text" in payload && "role" in payload && payload.type === "text" ? [payload.text] : [],
  );

async function follow() {
  const host = new FakeHost();
  const following = host.client.session("session-1").follow();
  onTestFinished(() => following.close());
  await until(following, isLive);
  const reads = () => host.calls.filter((call) => call.endsWith(`${CHILD}/messages`)).length;
  return { host, following, reads };
}

test("a real child's prompt is in a view that saw the child start, as its Trace has it, without another look at the history", async () => {
  const { url } = await startRealServer();
  const client = createClient({ baseUrl: url });
  const { sessionId } = await client.sessions.create({ approvalMode: "allow-all" });
  const session = client.session(sessionId);
  const following = session.follow();
  onTestFinished(() => following.close());
  const steps: string[] = [];
  void (async () => {
    for await (const { type } of following) steps.push(type);
  })();
  await until(following, ({ task }) => task?.state === "idle");
  await session.submit("/subagent Say something");
  const view = await until(following, ({ task, gap, children }) => {
    const [child] = Object.values(children);
    return child !== undefined && !child.isBehind && task?.ended !== undefined && gap === null;
  });
  const [[child = "", { before, since }] = ["", { before: [], since: [] }]] = Object.entries(view.children);
  const { messages } = await client.session(child).messages();
  const bare = ({ timestamp, type, payload }: (typeof messages)[number] | View["messages"][number]["message"]) => ({
    timestamp,
    type,
    payload,
  });
  expect([...before, ...since].map(({ message }) => bare(message))).toEqual(messages.map(bare));
  expect(messages[1]?.payload).toMatchObject({ role: "user", text: "Say something" });
  expect(steps.filter((type) => type === "history")).toHaveLength(1);
});

test("what is said into a child later takes its place before the Request that it is for, and only what is new is read", async () => {
  const { host, following, reads } = await follow();
  host.do(...say(metaOf(CHILD)), prompted("look around"), ...say(begin(), ...said(["here"])));
  await until(following, settled);
  expect(textsOf(following.view)).toEqual(["look around", "here"]);
  host.do(prompted("look again"), ...say(begin()));
  await until(following, (view) => settled(view) && textsOf(view).length === 3);
  expect(textsOf(following.view)).toEqual(["look around", "here", "look again"]);
  expect(reads()).toBe(2);
  const { before = [], since = [] } = following.view.children[CHILD] ?? {};
  expect(new Set([...before, ...since].map(({ key }) => key)).size).toBe(before.length + since.length);
});

test("a child's records that cannot be read are read again; of one that is gone there is what the stream brought", async () => {
  const { host, following, reads } = await follow();
  host.instead.push(refusal(503, "not_ready"));
  host.do(...say(metaOf(CHILD)), prompted("look around"), ...say(begin(), ...said(["here"])));
  while (reads() === 0) await host.pass(0);
  expect(following.view.children[CHILD]).toMatchObject({ isBehind: true });
  while (reads() === 1) await host.pass(200);
  await until(following, settled);
  expect(textsOf(following.view)).toEqual(["look around", "here"]);
  host.instead.push(refusal(404, "session_not_found"));
  host.do(prompted("look again"), ...say(begin(), ...said(["well"])));
  await until(following, (view) => settled(view) && textsOf(view).length === 3);
  expect(textsOf(following.view)).toEqual(["look around", "here", "well"]);
  await host.pass(1_000);
  expect(reads()).toBe(3);
});

test("where there is no place for a stream a child is read, too", async () => {
  const host = new FakeHost();
  host.do(...say(metaOf(CHILD)), prompted("look around"), ...say(begin(), ...said(["here"])));
  const following = host.client.session("session-1").follow({ takeStreamSlot: async () => undefined });
  onTestFinished(() => following.close());
  await until(following, ({ children }) => children[CHILD]?.isRead === true);
  expect(following.view.connection.status).toBe("polling");
  expect(textsOf(following.view)).toEqual(["look around", "here"]);
});
