import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { emptyView, type RequestError, type View } from "../../src/client/index.js";
import * as make from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { basePath } from "../../src/web/base-path.js";
import { lineDiff } from "../../src/web/diff.js";
import type { ToolItem } from "../../src/web/item-types.js";
import { type Keyed, ListMemory } from "../../src/web/list-memory.js";
import { notice, refusalText, sentence } from "../../src/web/notices.js";
import { endText } from "../../src/web/spoken.js";
import { activityOf, connectionText, lastRequest } from "../../src/web/standing.js";
import { approvalText, isRepeated, readArguments } from "../../src/web/tool-words.js";
import { indexAt, offsetsOf, rangeAt, WHOLE_UP_TO } from "../../src/web/virtual-window.js";
import { visibleText } from "../../src/web/visible-text.js";
import { AT } from "../support/messages.js";

test("arguments are read by name, the telling one apart; what is no object is shown as it is", () => {
  expect(readArguments('{"timeout_ms":5,"cmd":"ls\\npwd"}')).toMatchObject({
    telling: "ls\npwd",
    others: [{ name: "timeout_ms", value: "5" }],
    raw: "",
  });
  expect(readArguments("  ")).toEqual({ telling: "", others: [], raw: "", values: {} });
  for (const raw of ['{"cmd":"l', "[1]", "null", "7"]) expect(readArguments(raw).raw).toBe(raw);
});

test("a subagent's description is left out where its prompt begins with it, and only there", () => {
  const isLeftOut = (name: string, args: object) => isRepeated(name, readArguments(JSON.stringify(args)));
  const prompt = "Find the oldest file and name it";
  expect(isLeftOut("run_subagent", { prompt, description: prompt })).toBe(true);
  expect(isLeftOut("run_subagent", { prompt, description: "Find the oldest…" })).toBe(true);
  expect(isLeftOut("run_subagent", { prompt, description: "Old files" })).toBe(false);
  expect(isLeftOut("mcp__x__run", { prompt, description: prompt })).toBe(false);
});

test("the state of the connection is said in words, with the seconds that are left", () => {
  const now = Date.parse("2026-07-18T03:10:22.000Z");
  const waiting = (retryAt: number) =>
    ({ status: "waiting", attempt: 1, retryAt, reason: "it was closed", code: "closed" }) as const;
  expect(connectionText(waiting(now + 2_100), now, true)).toMatchObject({ text: "Reconnecting in 3 s" });
  expect(connectionText(waiting(now - 50), now, true)).toMatchObject({ text: "Reconnecting in 0 s" });
  expect(connectionText(waiting(now), now, false)).toMatchObject({ text: "Offline", tone: "lost" });
  expect(connectionText({ status: "live", resynced: true }, now, true).text).toBe("Live");
});

test.each<[Partial<RequestError>, string]>([
  [{ kind: "rate_limit", http_status: 429 }, "Try 2 in 3 s: rate limit reached (429)"],
  [{ kind: "overloaded", http_status: 503 }, "Try 2 in 3 s: provider overloaded (503)"],
  [{ kind: "network" }, "Try 2 in 3 s: connection to the provider failed"],
  [{ kind: "timeout" }, "Try 2 in 3 s: provider too slow"],
  [{ kind: "timeout", http_status: 500 }, "Try 2 in 3 s: error at the provider (500)"],
  [{ kind: "network", http_status: 502 }, "Try 2 in 3 s: error at the provider (502)"],
  [{ kind: "unknown", http_status: 500 }, "Try 2 in 3 s: error at the provider (500)"],
  [{ kind: "unknown", http_status: 409 }, "Try 2 in 3 s: request failed (409)"],
])("while a Request is tried again, what happened to it is said: %j", (error, text) => {
  const retryAt = "2026-07-18T03:10:22.000Z";
  const end = make.requestEnd(AT, { status: "timeout", error: { kind: "unknown", message: "m", ...error } });
  const view: View = {
    ...emptyView("s"),
    messages: [{ key: "1", message: end }],
    task: {
      state: "running",
      queued: 0,
      pendingApprovals: 0,
      records: 1,
      retry: { attempt: 1, retryAt, status: "timeout" },
    },
  };
  expect(activityOf(view, Date.parse(retryAt) - 2_500).text).toBe(text);
});

test.each([
  ["the disk is full", "The disk is full."],
  ["exec_command is not known!", "exec_command is not known!"],
  ["workspace: must exist", "workspace: must exist."],
  ["modelId is not known", "modelId is not known."],
  ["omnid goes down", "omnid goes down."],
  ["HTTP 503", "HTTP 503."],
  [" ", ""],
])("a message is a sentence, and a name at its beginning stays as it is: %j", (text, shown) => {
  expect(sentence(text)).toBe(shown);
});

test("a refusal says each thing once", () => {
  const blank = { path: "input", message: "must not be blank" };
  expect(refusalText("the body does not fit: input: must not be blank", [blank])).toBe("input: must not be blank.");
  expect(
    refusalText("two lines hold no record", [
      { path: "3", message: "no JSON" },
      { path: "", message: "cut" },
    ]),
  ).toBe("Two lines hold no record; 3: no JSON; cut.");
});

test("how full the context is comes from the last Request that was counted, and from none behind a compaction", () => {
  const counts = (total: number) => ({ cache_read: 0, cache_write: total, output: 0, total });
  const usage = (total: number) => make.tokenUsage(AT, counts(total), counts(total));
  const of = (...messages: OmniMessage[]) =>
    lastRequest({ messages: messages.map((message, n) => ({ key: `${n}`, message })) as never })?.total;
  expect(of(usage(10), usage(20))).toBe(20);
  // A refused or interrupted Request counted nothing, and the context is what it was.
  expect(of(usage(10), usage(0))).toBe(10);
  const kind = { reason: "manual", mode: "summarize" } as const;
  const begins = make.compactionBegin(AT, { ...kind, context: 10, turns: 1 });
  const ends = make.compactionEnd(AT, { ...kind, status: "completed" });
  expect(of(usage(10), begins, usage(30), ends)).toBeUndefined();
  expect(of(usage(10), begins, usage(30), ends, usage(5))).toBe(5);
  expect(of(usage(10), begins, usage(30), make.compactionEnd(AT, { ...kind, status: "failed" }))).toBe(10);
});

const lines = fc.array(fc.constantFrom("a", "b", "c", ""), { maxLength: 12 });

test("a difference holds both texts, and what both share is not called changed", () => {
  fc.assert(
    fc.property(lines, lines, (before, after) => {
      const diff = lineDiff(before.map((line) => `${line}\n`).join(""), after.map((line) => `${line}\n`).join(""));
      const side = (kind: string) => diff.filter((line) => line.kind !== kind).map(({ text }) => text);
      expect(side("added")).toEqual(before);
      expect(side("removed")).toEqual(after);
    }),
  );
  expect(lineDiff("one\ntwo\nthree", "one\n2\nthree")).toEqual([
    { kind: "same", text: "one" },
    { kind: "removed", text: "two" },
    { kind: "added", text: "2" },
    { kind: "same", text: "three" },
  ]);
});

test("what is seen of a long list is in the page, and not much more than that", () => {
  const heights = fc.array(fc.integer({ min: 1, max: 900 }), { minLength: WHOLE_UP_TO + 1, maxLength: 400 });
  fc.assert(
    fc.property(heights, fc.double({ min: 0, max: 1, noNaN: true }), (list, at) => {
      const offsets = offsetsOf(list);
      const all = offsets.at(-1) ?? 0;
      const top = at * Math.max(0, all - 800);
      const { start, end } = rangeAt(offsets, top, 800);
      expect(offsets[start]).toBeLessThanOrEqual(top);
      expect(offsets[end]).toBeGreaterThanOrEqual(Math.min(all, top + 800));
      expect((offsets[end] ?? 0) - (offsets[start] ?? 0)).toBeLessThanOrEqual(800 + 2 * 900 + 2 * 900);
      const index = indexAt(offsets, top);
      expect(offsets[index]).toBeLessThanOrEqual(top);
    }),
  );
});

/** A page that does what the list says: rows of true heights, a scroll position that the browser keeps within bounds. */
class ModelPage {
  readonly memory = new ListMemory();
  items: Keyed[] = [];
  top = 0;
  readonly #heights: (key: string) => number;
  #drawn = { start: 0, end: 0, lead: 0, all: 0 };

  constructor(heights: (key: string) => number) {
    this.#heights = heights;
  }

  draw(): void {
    this.memory.take(this.items);
    const range = this.memory.range();
    const padding = this.memory.padding(range);
    const rows = this.items.slice(range.start, range.end).map(({ key }) => this.#heights(key));
    const all = padding.top + rows.reduce((sum, height) => sum + height, 0) + padding.bottom;
    this.#drawn = { ...range, lead: padding.top, all };
    const owed = this.memory.takeOwed();
    if (this.memory.isAtEnd) this.top = all;
    this.scrollTo(this.top + owed);
  }

  scrollTo(top: number): void {
    this.top = Math.max(0, Math.min(top, this.#drawn.all - 800));
    this.memory.see(this.top, 800);
  }

  /** The reader scrolls. */
  read(top: number): void {
    this.scrollTo(top);
    this.memory.isAtEnd = this.#drawn.all - this.top - 800 < 48;
  }

  measure(): void {
    const rows = this.items.slice(this.#drawn.start, this.#drawn.end);
    this.memory.measure(rows.map(({ key }) => [key, this.#heights(key)] as const));
  }

  /** Where each row in the page stands in the window. */
  places(): Map<string, number> {
    let place = this.#drawn.lead - this.top;
    return new Map(
      this.items.slice(this.#drawn.start, this.#drawn.end).map(({ key }) => {
        const at: [string, number] = [key, place];
        place += this.#heights(key);
        return at;
      }),
    );
  }
}

test("a row in sight keeps its place when rows above it are measured or loaded, wherever the reader is", () => {
  const step = fc.oneof(
    fc.record({ do: fc.constant("scroll" as const), by: fc.integer({ min: -800, max: 800 }) }),
    fc.record({ do: fc.constant("prepend" as const), by: fc.integer({ min: 1, max: 80 }) }),
    fc.record({ do: fc.constant("append" as const), by: fc.integer({ min: 1, max: 3 }) }),
    fc.record({ do: fc.constant("rest" as const), by: fc.constant(0) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.integer({ min: 1, max: 1_000 }), (steps, seed) => {
      const page = new ModelPage((key) => 30 + ((Number(key) * 7_919 + seed * 31) % 400));
      page.items = Array.from({ length: 300 }, (_, index) => ({ key: String(10_000 + index) }));
      const settle = () => {
        for (let n = 0; n < 3; n += 1) {
          page.draw();
          page.measure();
        }
        page.draw();
      };
      settle();
      for (const { do: what, by } of steps) {
        // Of rows that are drawn and not measured nobody has seen a place: the page measures before it is painted.
        if (what === "scroll") page.read(page.top + by);
        const before = page.places();
        if (what === "prepend") {
          const first = Number(page.items[0]?.key);
          page.items = [...Array.from({ length: by }, (_, n) => ({ key: String(first - by + n) })), ...page.items];
        }
        if (what === "append") {
          const last = Number(page.items.at(-1)?.key);
          page.items = [...page.items, ...Array.from({ length: by }, (_, n) => ({ key: String(last + 1 + n) }))];
        }
        if (what === "rest") page.memory.settle();
        settle();
        const after = page.places();
        const inSight = [...before].filter(([, place]) => place >= 0 && place < 800);
        if (page.memory.isAtEnd) continue;
        for (const [key, place] of inSight.slice(0, 1)) expect(after.get(key), key).toBeCloseTo(place, 3);
      }
    }),
  );
});

test.each([
  ["/", ""],
  ["/index.html", ""],
  ["/agents/", "/agents"],
  ["//", ""],
  ["//elsewhere.example/", "/elsewhere.example"],
  ["///elsewhere.example/a/", "/elsewhere.example/a"],
])("what is asked below the path %s stays with the host of the page", (pathname, base) => {
  expect(basePath(pathname)).toBe(base);
  expect(new URL(`${basePath(pathname)}/api/sessions`, "https://here.example").origin).toBe("https://here.example");
});

test.each([
  ["rm \u202etxt.cod\u202c", "rm ⟨U+202E⟩txt.cod⟨U+202C⟩"],
  ["a\u2066b\u2069\u200f\u061c", "a⟨U+2066⟩b⟨U+2069⟩⟨U+200F⟩⟨U+061C⟩"],
  ["ls\u200b\ufeff\u00ad\u2060", "ls⟨U+200B⟩⟨U+FEFF⟩⟨U+00AD⟩⟨U+2060⟩"],
  ["a\rb\u001b[2K\u0000\u007f\u0085", "a⟨U+000D⟩b⟨U+001B⟩[2K⟨U+0000⟩⟨U+007F⟩⟨U+0085⟩"],
  ["a\u00a0b\u3000c\u2028d\u3164\u2800", "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2028⟩d⟨U+3164⟩⟨U+2800⟩"],
  ["x\u{e0041}\ud800", "x⟨U+E0041⟩⟨U+D800⟩"],
  ["x\ufe0f a\u200db", "x⟨U+FE0F⟩ a⟨U+200D⟩b"],
])("what cannot be seen of what is decided on stands there by its number: %j", (text, visible) => {
  expect(visibleText(text)).toBe(visible);
});

test("what can be seen stays as it is: letters of any script, lines, tabs, emoji of several parts", () => {
  const text = "if a:\n\tprint('Grüße, שלום, 日本 नमस्ते') ❤\ufe0f 👩🏽\u200d💻 👩\u200d❤\ufe0f\u200d👨 ⟨⟩";
  expect(visibleText(text)).toBe(text);
});

describe("what a screen reader is told of a Task's end", () => {
  const ended = { taskId: "t" };
  const idle = { state: "idle", queued: 0, pendingApprovals: 0, records: 1 } as const;
  const told = (messages: OmniMessage[], how: Record<string, unknown>) => {
    const task = { ...idle, ended: { ...ended, ...how } } as View["task"];
    return endText({
      task,
      messages: messages.map((message, key) => ({ key: String(key), message })) as View["messages"],
    });
  };
  const before = [make.userText(AT, "one"), make.assistantText(AT, "an older answer")];
  const abort = (reason: string) => make.abort(AT, reason);

  test("is what was answered, without the marks of its Markdown", () => {
    const answer = make.assistantText(AT, "# Done\n\nIt is **very** `good`:\n\n- [a](https://x.example)\n- b");
    expect(told([...before, make.userText(AT, "two"), answer], { status: "completed" })).toBe(
      "Finished. Done It is very good: a b",
    );
  });

  test.each<[string, string, OmniMessage[]]>([
    ["You stopped this.", "aborted", [abort("user")]],
    ["Interrupted: the server was restarted.", "aborted", [abort("server_restarted")]],
    ["Stopped.", "aborted", []],
    ["The request to the model failed.", "timeout", []],
    ["Finished.", "completed", []],
  ])("is %j and nothing of an older Task", (text, status, more) => {
    expect(told([...before, make.userText(AT, "two"), ...more], { status })).toBe(text);
  });

  test("is why it failed, with what cannot be seen by its number", () => {
    const error = { kind: "unknown", message: "it \u001b[31mbroke" };
    expect(told(before, { status: "failed", error })).toBe("Failed: It ⟨U+001B⟩[31mbroke.");
  });
});

test("a notice shows what cannot be seen in a provider's error by its number", () => {
  expect(notice("k", "bad", "no\u202e \u001b]8;;x").text).toBe("no⟨U+202E⟩ ⟨U+001B⟩]8;;x");
});

test.each([
  ["failed", "policy", ""],
  ["cut", "policy", ""],
  ["done", "policy", "Allowed by the Session's mode"],
  ["failed", "user", "Allowed by you"],
])("of a call that is %s, decided by %s, it is said: %j", (state, decidedBy, text) => {
  expect(approvalText({ state, decidedBy } as ToolItem)).toBe(text);
});
