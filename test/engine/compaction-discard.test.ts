import { expect, test } from "vitest";
import { asSteering, imageUrl, userText } from "../../src/protocol/builders.js";
import { compactor, expectLawfulRecords, Story, textsOf } from "../support/compaction.js";
import { kinds, scriptedModel } from "../support/engine.js";
import { AT, begin } from "../support/messages.js";

const settings = { mode: "discard" } as const;
const model = scriptedModel([]);
const picture = imageUrl(AT, "data:image/png;base64,AAAA");

test("a discarded context costs no Request: its begin and end are all there is", async () => {
  const it = compactor(new Story().prompt("first").turn("done").records, { model, settings });
  expect(await it.run()).toBe("completed");
  expect(kinds(it.stream)).toEqual(["compaction_begin", "compaction_end completed"]);
  expect(textsOf(it.context.assemble())).toEqual([
    "[context_summary]\nThe conversation before this point has been discarded.\n[/context_summary]",
  ]);
  it.append([begin()]);
  expectLawfulRecords({ trace: it.trace.slice(0, -1) });
});

test("the running Task's Prompt goes on in it, with its images, and nothing of the Task before", async () => {
  const story = new Story().prompt("first").turn("done").prompt("second", picture).turn("calling", { calls: 2 });
  const it = compactor(story.records, { model, settings });
  await it.run("context");
  const [summary, image, ...more] = it.context.assemble();
  expect(textsOf([summary!])[0]).toMatch(
    /^\[context_summary\]\n.* The task at hand, .*:\n\nsecond\n\[\/context_summary\]$/,
  );
  expect(image).toEqual(picture);
  expect(more).toEqual([]);
});

test("the same Prompt goes on through a second one, and steering is copied, not taken for it", async () => {
  const story = new Story().prompt("the task").turn("calling", { calls: 1 });
  const it = compactor(story.records, { model, settings });
  await it.run("turns");
  const more = new Story().turn("calling again", { calls: 1 }).records.slice(1);
  it.append([...more, asSteering(userText(AT, "steer"), "steer-1")]);
  await it.run("turns");
  const texts = textsOf(it.context.assemble());
  expect(texts[0]).toContain("\n\nthe task\n[/context_summary]");
  expect(texts.slice(1)).toEqual(["steer"]);
});

test("at a Task's last turn its Prompt is said to be answered", async () => {
  const it = compactor(new Story().prompt("the task").turn("done").records, { model, settings });
  await it.run("context");
  expect(textsOf(it.context.assemble())[0]).toContain("which has been answered:\n\nthe task\n");
});

test("a Prompt that no Request carried is copied word for word and is not in the text as well", async () => {
  const story = new Story().prompt("first").turn("done").prompt("too long");
  story.failed({ kind: "context_overflow", message: "too long" });
  const it = compactor(story.records, { model, settings });
  await it.run("context");
  const texts = textsOf(it.context.assemble());
  expect(texts).toEqual([expect.stringMatching(/^\[context_summary\]/), "too long"]);
  expect(texts[0]).not.toContain("too long");
});
