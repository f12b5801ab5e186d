import { describe, expect, test } from "vitest";
import { approvalDecision, compactionBegin, requestEnd, sessionMeta, userText } from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { HistoryPage, Item, ToolItem } from "../../src/web/types.d.ts";
import {
  AT,
  aborted,
  allowed,
  answered,
  called,
  compacted,
  denied,
  metaOf,
  outputOf,
  said,
  thought,
  twoCalls,
} from "../support/messages.js";
import { load } from "./modules.js";

const { emptyView, withEvent, withHistory } = await load("view.js");
const { itemsOf } = await load("items.js");

const isRecord = (message: OmniMessage) => !String((message.payload as { type?: string }).type).startsWith("partial_");
const pageOf = (messages: OmniMessage[], live: OmniMessage[] = []) =>
  ({
    messages: [metaOf(), ...messages].filter(isRecord).map((message, ordinal) => ({ ...message, ordinal })),
    cursor: "1-0",
    ...(live.length > 0 ? { live: { fragments: live } } : {}),
  }) as unknown as HistoryPage;
const running = {
  event: "server_event",
  data: '{"type":"task_state","state":"running","queued":0,"pendingApprovals":0,"records":0}',
};
const itemsFrom = (messages: OmniMessage[], live: OmniMessage[] = []): Item[] =>
  itemsOf(withHistory(emptyView(), pageOf(messages, live)));
const toolIn = (items: Item[]) => items.find((item): item is ToolItem => item.kind === "tool") as ToolItem;

test("an output hangs on its call, whatever the order of completion", () => {
  const tools = itemsFrom(twoCalls()).filter((item) => item.kind === "tool");
  expect(tools).toMatchObject([
    { args: '{"cmd":"ls"}', output: "a.txt\nb.txt\n", exitCode: 0, state: "done" },
    { args: '{"cmd":"pwd"}', output: "/data\n", state: "done" },
  ]);
});

describe("the state of a call", () => {
  test.each<[ToolItem["state"], OmniMessage[]]>([
    ["denied", [...called("a"), denied("a"), outputOf("a", "Tool call denied by user.", "aborted")]],
    ["aborted", [...called("a"), denied("a", "abort"), outputOf("a", "[interrupted]", "aborted")]],
    ["failed", [...called("a"), allowed("a"), outputOf("a", "no such tool", "failed")]],
    ["timeout", [...called("a"), allowed("a"), ...answered("a", "half", { stop: "timeout" })]],
    ["done", [...called("a"), allowed("a"), ...answered("a", "x", { exitCode: 3 })]],
    ["cut", called("a", '{"cmd":', "malformed")],
    ["cut", [...called("a"), allowed("a")]],
  ])("is %s", (state, messages) => {
    expect(toolIn(itemsFrom(messages)).state).toBe(state);
  });

  test("is running while its Task runs, and waiting until it is decided", () => {
    const view = (messages: OmniMessage[]) => ({
      ...withEvent(withHistory(emptyView(), pageOf(messages)), running),
      stale: null,
    });
    expect(toolIn(itemsOf(view([...called("a"), allowed("a")]))).state).toBe("running");
    expect(toolIn(itemsOf(view(called("a")))).state).toBe("waiting");
  });

  test("E3: an approval that an abort settled is neither shown as open nor taken when it comes late", () => {
    const messages = [...called("a"), denied("a", "abort"), outputOf("a", "[interrupted]", "aborted"), aborted()];
    const request = { type: "approval_request", sessionId: "s", toolCall: called("a").at(-1), requestedAt: AT };
    const view = withEvent(withHistory(emptyView(), pageOf(messages)), {
      event: "server_event",
      data: JSON.stringify(request),
    });
    expect(view.approvals).toEqual([]);
    expect(toolIn(itemsOf(view)).state).toBe("aborted");
  });
});

test("A18: open fragments of the history are shown with all they have, after the records", () => {
  const live = [{ ...said("Half an ans")[1] } as OmniMessage];
  (live[0]?.payload as { event_type: string }).event_type = "start";
  expect(itemsFrom([userText(AT, "hi"), ...thought("hm")], live)).toMatchObject([
    { kind: "user", text: "hi" },
    { kind: "thinking", text: "hm", open: false },
    { kind: "text", text: "Half an ans", open: true },
  ]);
});

test("a fragment and the message that replaces it are one element on the page", () => {
  let view = withHistory(emptyView(), pageOf([]));
  const keys = new Set<string>();
  for (const [index, message] of said(["one ", "two"]).entries()) {
    view = withEvent(view, { event: "", data: JSON.stringify(message), id: `1-${index + 1}` });
    const items = itemsOf(view);
    expect(items).toHaveLength(1);
    keys.add(items[0]?.key ?? "");
  }
  expect(keys.size).toBe(1);
});

test("a compaction shows its summary, not what the model said for it, and no Prompt twice", () => {
  const summary = "[context_summary]\nThey said hi.\n[/context_summary]";
  const meta = sessionMeta(AT, metaOf().payload);
  const items = itemsFrom([
    userText(AT, "hi"),
    ...compacted("completed", said("They said hi.").slice(-1)),
    meta,
    userText(AT, summary),
    userText(AT, "hi"),
    ...said("Hello."),
    userText(AT, "hi"),
  ]);
  expect(items.map((item) => ("text" in item ? item.text : item.kind))).toEqual([
    "hi",
    "The context was compacted.",
    "The conversation so far was summarised for the model.",
    "Hello.",
    "hi",
  ]);
});

test("an aborted compaction hides nothing of what comes after it", () => {
  const begun = compactionBegin(AT, { reason: "manual", mode: "summarize", context: 1, turns: 1 });
  expect(itemsFrom([begun, aborted(), ...said("Still here.")]).at(-1)).toMatchObject({ text: "Still here." });
});

test("a failed Request says why, one that is tried again says when", () => {
  const error = { kind: "overloaded" as const, message: "The provider is overloaded." };
  const items = itemsFrom([
    requestEnd(AT, { status: "timeout", error, attempt: 1, retry_in_ms: 2000 }),
    requestEnd(AT, { status: "timeout", error, attempt: 2 }),
  ]);
  expect(items).toMatchObject([
    { tone: "warn", text: "The provider is overloaded. Trying again after 2 s." },
    { tone: "bad", text: "The provider is overloaded." },
  ]);
});

test("a decision whose call is on an older page makes no card of its own", () => {
  const decision = approvalDecision(AT, { decision: "allow", tool_call_id: "old", decided_by: "user" });
  const page = { messages: [{ ...decision, ordinal: 7 }], cursor: "1-0", nextBefore: 7 } as unknown as HistoryPage;
  expect(itemsOf(withHistory(emptyView(), page))).toEqual([]);
});
