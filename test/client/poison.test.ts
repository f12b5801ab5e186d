// What no view expects, in the history and on the stream: following goes on behind it.

import { expect, onTestFinished, test } from "vitest";
import { emptyView, type HistoryRecord, reduceView, type View } from "../../src/client/index.js";
import { assistantText } from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { AT, allowed, callOf, from, said } from "../support/messages.js";
import { FakeHost, frameOf, isLive, isWaiting } from "./fake-host.js";
import { until } from "./until.js";

const names = ["__proto__", "constructor", "hasOwnProperty", "toString"];

test.each(names)("a child named %s is a child like any other", async (name) => {
  const host = new FakeHost();
  const following = host.client.session("session-1").follow();
  onTestFinished(() => following.close());
  await until(following, isLive);
  host.do(...from(name, said(["Good day"])).map((message) => ({ kind: "say", message }) as const));
  host.do(...said(["Done"]).map((message) => ({ kind: "say", message }) as const));
  const view = await until(following, ({ messages }) => messages.length === 2);
  expect(Object.keys(view.children)).toEqual([name]);
  expect(childOf(view, name)?.since).toHaveLength(1);
  expect(host.streamsFrom()).toHaveLength(1);
});

test.each(names)("a history with a child named %s has its records, and its approvals are asked", (name) => {
  const [record] = from(name, [assistantText(AT, "Good day")]) as [OmniMessage];
  const page = { messages: [], cursor: "5-0", children: JSON.parse(`{${JSON.stringify(name)}:1}`) };
  const records = [{ ...record, ordinal: 0 }] as unknown as HistoryRecord[];
  const approval = { type: "approval_request", sessionId: name, toolCall: callOf("call-1"), requestedAt: AT } as const;
  let view = reduceView(emptyView("session-1"), { type: "history", page });
  expect(childOf(view, name)).toEqual({ before: [], since: [], count: 1, isRead: false, isBehind: false });
  view = reduceView(view, { type: "child_records", sessionId: name, records });
  expect(childOf(view, name)).toMatchObject({ isRead: true, before: { length: 1 } });
  view = reduceView(view, { type: "server_event", id: undefined, event: approval });
  expect(view.approvals).toHaveLength(1);
});

test("a message that cannot be taken makes the history be read again, once and after a wait", async () => {
  const host = new FakeHost();
  const following = host.client.session("session-1").follow();
  onTestFinished(() => following.close());
  await until(following, isLive);
  for (const message of said(["Good day"])) {
    const frames = host.model.take({ kind: "say", message });
    // Its origin is a number.
    host.write(frames.map((frame) => frameOf({ ...frame, data: frame.data.replace("{", '{"origin":5,') })).join(""));
  }
  const { stale, connection } = await until(following, isWaiting);
  expect(stale).toBe("unreadable");
  expect(connection).toMatchObject({ code: "unreadable", attempt: 1, retryAt: host.time.now() + 500 });
  host.time.advance(500);
  const view = await until(following, isLive);
  expect(view).toMatchObject({ stale: null, messages: { length: 2 } });
  host.do(...said(["and more"]).map((message) => ({ kind: "say", message }) as const));
  await until(following, ({ messages }) => messages.length === 3);
  expect(host.calls.filter((call) => call === "messages")).toHaveLength(2);
});

test("an approval of another shape does not keep the history from being taken", async () => {
  const host = new FakeHost();
  const following = host.client.session("session-1").follow();
  onTestFinished(() => following.close());
  await until(following, isLive);
  const request = { type: "approval_request", sessionId: "session-1" };
  host.write(frameOf({ event: "server_event", id: undefined, data: JSON.stringify(request) }));
  host.do({ kind: "say", message: allowed("call-1") });
  await until(following, isWaiting);
  following.retryNow();
  const view = await until(following, isLive);
  expect(view).toMatchObject({ stale: null, approvals: [], messages: { length: 2 } });
});

const childOf = ({ children }: View, name: string) => Object.entries(children).find(([id]) => id === name)?.[1];
