import { describe, expect, test } from "vitest";
import { emptyView, type History, reduceView, type View } from "../../src/client/index.js";
import {
  approvalDecision,
  asSteering,
  compactionBegin,
  imageUrl,
  inlineData,
  requestBegin,
  requestEnd,
  sessionMeta,
  subagent,
  userText,
  withOrigin,
} from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { Item, ToolItem } from "../../src/web/item-types.js";
import { askedOf, itemsOf } from "../../src/web/items.js";
import { promptAt } from "../../src/web/said.js";
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

const isRecord = (message: OmniMessage) => !String((message.payload as { type?: string }).type).startsWith("partial_");
const pageOf = (messages: OmniMessage[], live: OmniMessage[] = []): History =>
  ({
    messages: [metaOf(), ...messages].filter(isRecord).map((message, ordinal) => ({ ...message, ordinal })),
    cursor: "1-0",
    ...(live.length > 0 ? { live: { fragments: live } } : {}),
  }) as unknown as History;
const viewOf = (page: History): View => reduceView(emptyView("s"), { type: "history", page });
const viewFrom = (messages: OmniMessage[], live: OmniMessage[] = []): View => viewOf(pageOf(messages, live));
const itemsFrom = (messages: OmniMessage[], live: OmniMessage[] = []) => itemsOf(viewFrom(messages, live));
const toolIn = (items: readonly Item[]) => items.find((item): item is ToolItem => item.kind === "tool") as ToolItem;
const runningWith = (messages: OmniMessage[]): View => {
  const view = viewFrom(messages);
  const event = {
    type: "task_state",
    state: "running",
    queued: 0,
    pendingApprovals: 0,
    records: view.confirmed,
  } as const;
  return reduceView(view, { type: "server_event", id: undefined, event });
};

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
    expect(toolIn(itemsOf(runningWith([...called("a"), allowed("a")]))).state).toBe("running");
    expect(toolIn(itemsOf(runningWith(called("a")))).state).toBe("waiting");
  });

  test("E3: an approval that an abort settled is neither shown as open nor taken when it comes late", () => {
    const messages = [...called("a"), denied("a", "abort"), outputOf("a", "[interrupted]", "aborted"), aborted()];
    const toolCall = called("a").at(-1) as never;
    const event = { type: "approval_request", sessionId: "s", toolCall, requestedAt: AT } as const;
    const view = reduceView(viewFrom(messages), { type: "server_event", id: undefined, event });
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
  let view = viewFrom([]);
  const keys = new Set<string>();
  for (const [index, message] of said(["one ", "two"]).entries()) {
    view = reduceView(view, { type: "message", id: `1-${index + 1}`, message });
    const items = itemsOf(view);
    expect(items).toHaveLength(1);
    keys.add(items[0]?.key ?? "");
  }
  expect(keys.size).toBe(1);
});

test("what is complete is not folded again for a fragment: its items stay the same objects", () => {
  const before = viewFrom([userText(AT, "hi"), ...twoCalls(), ...said("Done.")]);
  const [start] = said("More") as [OmniMessage];
  const after = reduceView(before, { type: "message", id: "1-1", message: start });
  const items = itemsOf(before);
  expect(
    itemsOf(after)
      .slice(0, items.length)
      .every((item, index) => item === items[index]),
  ).toBe(true);
});

test("a compaction is one row that holds its summary, not what the model said for it, and no Prompt comes twice", () => {
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
  expect(items.map((item) => ("text" in item ? item.text : item.kind))).toEqual(["hi", "compaction", "Hello.", "hi"]);
  expect(items[1]).toMatchObject({ status: "completed", summary: "They said hi." });
});

test("an aborted compaction hides nothing of what comes after it", () => {
  const begun = compactionBegin(AT, { reason: "manual", mode: "summarize", context: 1, turns: 1 });
  const items = itemsFrom([begun, aborted(), ...said("Still here.")]);
  expect(items[0]).toMatchObject({ kind: "compaction", status: "aborted" });
  expect(items.at(-1)).toMatchObject({ text: "Still here." });
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
  const page = { messages: [{ ...decision, ordinal: 7 }], cursor: "1-0", nextBefore: 7 } as unknown as History;
  expect(itemsOf(viewOf(page))).toEqual([]);
});

test("a fork may begin before a Prompt, and end where a Request and all that it asked for had ended", () => {
  const complete = (messages: OmniMessage[]) => messages.filter(isRecord);
  const items = itemsFrom([
    userText(AT, "run it"),
    requestBegin(AT),
    ...complete(said("Running.")),
    ...complete(called("a")),
    requestEnd(AT, { status: "completed" }),
    allowed("a"),
    ...complete(answered("a", "x", { exitCode: 0 })),
    requestBegin(AT),
    ...complete(said("It ran.")),
    requestEnd(AT, { status: "completed" }),
  ]);
  // session_meta is 0, the Prompt 1, the output 7, the last Request's end 10.
  expect(items.flatMap((item) => ("forkAt" in item && "text" in item ? [[item.text, item.forkAt]] : []))).toEqual([
    ["run it", 0],
    ["Running.", 7],
    ["It ran.", 10],
  ]);
});

const LATER = "2026-07-18T03:11:00.000Z";
const DOT = "data:image/png;base64,AAAA";
const notes = inlineData(AT, { role: "user", data: "bm90ZXM=", mime_type: "text/plain", file_name: "notes.txt" });
const endOf = (status: "completed" | "failed") => [requestBegin(AT), requestEnd(AT, { status })];
const forksOf = (items: readonly Item[]) =>
  items.flatMap((item) => ("forkAt" in item ? [[item.kind, item.forkAt] as const] : []));

test("a Prompt is asked again as a whole: by its first text, or its first part where it has none", () => {
  const messages = [
    ...[imageUrl(AT, DOT), userText(AT, "what is"), notes, userText(AT, "in these?"), ...endOf("completed")],
    ...[imageUrl(AT, DOT), notes, ...endOf("completed")],
    ...[userText(AT, "nobody answered"), userText(LATER, "again"), imageUrl(LATER, DOT)],
    ...[asSteering(userText(LATER, "look"), "s1"), asSteering(imageUrl(LATER, DOT), "s1")],
  ];
  // session_meta is 0.
  expect(forksOf(itemsFrom(messages))).toEqual([
    ...[
      ["image", null],
      ["user", 0],
      ["file", null],
      ["user", null],
    ],
    ...[
      ["image", 6],
      ["file", null],
    ],
    ...[
      ["user", 10],
      ["user", 11],
      ["image", null],
    ],
    ...[
      ["user", null],
      ["image", null],
    ],
  ]);
  const view = viewFrom(messages);
  const picture = { type: "image_url", imageUrl: DOT };
  const file = { type: "file", fileName: "notes.txt", dataUrl: "data:text/plain;base64,bm90ZXM=" };
  const text = (words: string) => ({ type: "text", text: words });
  expect(promptAt(1, view)).toEqual({ input: [picture, text("what is"), file, text("in these?")], left: [] });
  expect(promptAt(7, view)).toEqual({ input: [picture, file], left: [] });
  expect(promptAt(11, view)).toEqual({ input: [text("nobody answered")], left: [] });
  expect(promptAt(12, view)).toEqual({ input: [text("again"), picture], left: [] });
});

test("what cannot be sent again is named, and the rest is sent", () => {
  const broken = (data: string, type: string) =>
    inlineData(AT, { role: "user", data, mime_type: type, file_name: "a\u202eb" });
  const remote = imageUrl(AT, "https://a.example/dot.png");
  const messages = [userText(AT, "see"), broken("%%", "text/plain"), broken("AAAA", "text"), imageUrl(AT, "file:///a")];
  expect(promptAt(1, viewFrom([...messages, remote, imageUrl(AT, "data:image/png;base64,")]))).toEqual({
    input: [
      { type: "text", text: "see" },
      { type: "image_url", imageUrl: "https://a.example/dot.png" },
    ],
    left: ["a⟨U+202E⟩b", "a⟨U+202E⟩b", "a picture", "a picture"],
  });
});

test("a Prompt of which more may be on an older page is not asked again before that is there", () => {
  const page = (from: number) => {
    const records = [metaOf(), imageUrl(AT, DOT), userText(AT, "what is this?"), ...endOf("completed")];
    const messages = records.map((message, ordinal) => ({ ...message, ordinal })).slice(from);
    return { messages, cursor: "1-0", nextBefore: from } as unknown as History;
  };
  const half = viewOf(page(2));
  expect(forksOf(itemsOf(half))).toEqual([["user", null]]);
  const whole = reduceView(half, { type: "earlier", page: page(0) });
  expect(forksOf(itemsOf(whole))).toEqual([
    ["image", null],
    ["user", 0],
  ]);
});

test("pictures and files that a new context begins with once more are shown once", () => {
  const waiting = [userText(AT, "see"), imageUrl(AT, DOT), notes];
  const summary = userText(LATER, "[context_summary]\nNothing.\n[/context_summary]");
  const items = itemsFrom([
    ...waiting,
    ...endOf("failed"),
    ...compacted("completed", said("Nothing.").slice(-1)),
    ...[metaOf(), summary, ...waiting, imageUrl(LATER, DOT)],
  ]);
  expect(items.map(({ kind }) => kind).filter((kind) => kind !== "notice")).toEqual([
    "user",
    "image",
    "file",
    "compaction",
    "image",
  ]);
});

test("a child's messages are in a card of its own, and the same call id in it is another call", () => {
  let view = viewFrom([...called("a"), subagent(AT, "child-1")]);
  const own = [...called("a", '{"cmd":"date"}'), allowed("a")].map((message) => withOrigin(message, "child-1"));
  for (const [index, message] of own.entries()) {
    view = reduceView(view, { type: "message", id: `1-${index + 1}`, message });
  }
  const [call, card] = itemsOf(view) as [ToolItem, Extract<Item, { kind: "subagent" }>];
  expect(call).toMatchObject({ childId: undefined, decidedBy: "" });
  expect(card.items).toMatchObject([{ kind: "tool", childId: "child-1", args: '{"cmd":"date"}', decidedBy: "user" }]);
});

test("a child that the stream has not carried is shown by its own records, until it does", () => {
  const before = viewFrom([...called("a"), subagent(AT, "child-1")]);
  const own = [{ key: "r1", message: said("What it said.").at(-1) as OmniMessage }];
  const read = new Map([["child-1", { before: own, since: [], count: 1, isRead: true, isBehind: false }]]);
  const cardOf = (view: View) => itemsOf(view, read).at(-1) as Extract<Item, { kind: "subagent" }>;
  expect(cardOf(before).items).toMatchObject([{ kind: "text", text: "What it said." }]);
  let after = before;
  for (const [index, message] of thought("live").entries()) {
    after = reduceView(after, { type: "message", id: `1-${index + 1}`, message: withOrigin(message, "child-1") });
  }
  expect(cardOf(after).items).toMatchObject([{ kind: "thinking", text: "live" }]);
});

test("a subagent is told from others by how its prompt begins", () => {
  const child = (text: string) => ({
    before: [{ key: "1", message: userText(AT, text) }],
    since: [],
    count: 1,
    isRead: true,
    isBehind: false,
  });
  expect(askedOf(child("count the files"))).toBe("count the files");
  expect(askedOf(child("list\u202e them"))).not.toContain("\u202e");
  expect(askedOf(undefined)).toBe("");
});
