import { describe, expect, test } from "vitest";
import { TURNS_CUT } from "../../src/engine/engine-notes.js";
import { sizeOf, sizeOfAll, withoutOldest } from "../../src/engine/shorten.js";
import { imageUrl, userText } from "../../src/protocol/builders.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { compactor, expectLawfulRecords, folded, Story, textsOf } from "../support/compaction.js";
import { counts, type Script, scriptedModel } from "../support/engine.js";
import { AT } from "../support/messages.js";

const good: Script = { steps: [{ say: "All of it." }] };
const tooLong: Script = {
  steps: [],
  outcome: { status: "failed", usage: counts(0, 0), error: { kind: "context_overflow", message: "too long" } },
};

/** Eight Tasks of two calls each, about 600 characters apiece. */
function long(): Story {
  const story = new Story();
  for (let n = 0; n < 8; n++)
    story
      .prompt(`prompt ${n} ${"x".repeat(100)}`)
      .turn("", { calls: 2 })
      .turn(`said ${n}`);
  return story;
}
const contextOf = (story: Story): CompleteMessage[] => folded(story.records).context.assemble();

function expectPairs(messages: readonly CompleteMessage[]): void {
  const calls = messages.flatMap((m) => (isPayload(m, "tool_call") ? [m.payload.tool_call_id] : []));
  const outputs = messages.flatMap((m) => (isPayload(m, "tool_call_output") ? [m.payload.tool_call_id] : []));
  expect(outputs).toEqual(calls);
}

describe("what is left of a context that is too long", () => {
  test("F4: at every length the calls that stay have their outputs, it begins with the user's word, and the end stays", () => {
    const messages = contextOf(long());
    const all = sizeOfAll(messages);
    for (let max = 0; max <= all; max += 50) {
      const rest = withoutOldest(messages, max, AT);
      if (rest === undefined) {
        expect(max).toBeGreaterThanOrEqual(all - 50);
        continue;
      }
      expectPairs(rest);
      expect(rest[0]?.payload).toEqual({ type: "text", role: "user", text: TURNS_CUT });
      expect(rest.at(-1)).toEqual(messages.at(-1));
      expect(textsOf(rest).filter((text) => text === TURNS_CUT)).toHaveLength(1);
    }
  });

  test("a summary in front stays, and the last turn always does", () => {
    const summary = userText(AT, "[context_summary]\nbefore\n[/context_summary]");
    const messages = contextOf(long());
    const rest = withoutOldest([summary, ...messages], 1, AT);
    expect(rest).toEqual([summary, userText(AT, TURNS_CUT), messages.at(-1)]);
    expect(withoutOldest([summary, messages.at(-1)!], 1, AT)).toBeUndefined();
  });

  test("an image does not count by its bytes", () => {
    expect(sizeOf(imageUrl(AT, `data:image/png;base64,${"A".repeat(1e6)}`))).toBeLessThan(10_000);
  });
});

test("a summary's Request that would not fit the window is cut from the oldest turns and says so", async () => {
  const story = long();
  story.prompt("last").turn("calling", { calls: 1, total: 1_100 });
  const model = scriptedModel([good]);
  const it = compactor(story.records, { model, contextWindow: 1_000 });
  expect(await it.run()).toBe("completed");
  const sent = model.requests[0]?.messages ?? [];
  expect(textsOf(sent)[0]).toBe(TURNS_CUT);
  expect(sent.length).toBeGreaterThan(20);
  expectPairs(sent);
  expectLawfulRecords(it);
});

test("one that fits goes out whole", async () => {
  const model = scriptedModel([good]);
  const story = long();
  await compactor(story.records, { model, contextWindow: 1_000 }).run();
  expect(model.requests[0]?.messages.slice(0, -1)).toEqual(contextOf(story));
});

test("where the provider still finds it too long it is halved, at once and without using up a try, until it fits", async () => {
  const model = scriptedModel([tooLong, tooLong, good]);
  const it = compactor(long().records, { model });
  expect(await it.run("context")).toBe("completed");
  expect(it.waits).toEqual([]);
  const sizes = model.requests.map(({ messages }) => sizeOfAll(messages.slice(0, -1)));
  expect(sizes[1]).toBeLessThan((sizes[0] as number) / 2 + 200);
  expect(sizes[2]).toBeLessThan((sizes[1] as number) / 2 + 200);
  for (const { messages } of model.requests) expectPairs(messages);
});

test("F20: a provider that finds everything too long ends it after a bounded number of Requests", async () => {
  const model = scriptedModel(Array.from({ length: 40 }, () => tooLong));
  const it = compactor(long().records, { model, retry: { baseMs: 0, maxMs: 0, limit: 5 } });
  expect(await it.run("context")).toBe("failed");
  expect(model.requests.length).toBeLessThanOrEqual(8);
  expect(it.failures).toMatchObject([{ kind: "context_overflow" }]);
});
