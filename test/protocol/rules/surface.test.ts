import { expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import { AT, begin, from, Meter, metaOf, said, traceOf } from "../../support/messages.js";

const stream = [begin(), ...said("hello"), ...new Meter().tail()];
const rulesOf = (messages: OmniMessage[], mode: "stream" | "trace") =>
  validateStream(messages, { mode, running: true }).map(({ rule }) => rule);

test("a stream without Trace-only records and a Trace without fragments pass", () => {
  expect(rulesOf(stream, "stream")).toEqual([]);
  expect(rulesOf(traceOf(stream), "trace")).toEqual([]);
});

test.each([
  ["session_meta on the main stream", [metaOf(), ...stream], "stream"],
  ["a Prompt on the stream", [make.userText(AT, "list"), ...stream], "stream"],
  ["steering on the stream", [...stream, make.asSteering(make.userText(AT, "hurry"), "steer-1")], "stream"],
  ["an image of a person on the stream", [make.imageUrl(AT, "https://example.org/a.png"), ...stream], "stream"],
  [
    "a file of a person on the stream",
    [make.inlineData(AT, { role: "user", data: "AA==", mime_type: "a/b" }), ...stream],
    "stream",
  ],
  ["a Trace without session_meta", traceOf(stream).slice(1), "trace"],
  ["a fragment in a Trace", traceOf(stream).toSpliced(3, 0, ...said("x").slice(0, 1)), "trace"],
] as const)("caught: %s", (_, messages, mode) => expect(rulesOf([...messages], mode)).toEqual(["surface"]));

test("a child's chain begins with its session_meta, and has only that one", () => {
  const head = [begin(), make.subagent(AT, "one")];
  const child = (...messages: OmniMessage[]) => [...head, ...from("one", messages)];
  expect(rulesOf(child(metaOf("one"), ...stream), "stream")).toEqual([]);
  expect(rulesOf(child(...stream), "stream")).toEqual(["surface"]);
  expect(rulesOf(child(metaOf("one"), ...stream, metaOf("one")), "stream")).toEqual(["surface"]);
});
