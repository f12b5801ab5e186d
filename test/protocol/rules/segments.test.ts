import { describe, expect, test } from "vitest";
import * as make from "../../../src/protocol/builders.js";
import type { OmniMessage } from "../../../src/protocol/message.js";
import { validateStream } from "../../../src/protocol/validate.js";
import {
  AT,
  allowed,
  answered,
  begin,
  bend,
  called,
  Meter,
  outputOf,
  placeOf,
  said,
  thought,
  traceOf,
  twoCalls,
} from "../../support/messages.js";

const rulesOf = (stream: OmniMessage[]) => validateStream(stream, { mode: "stream" }).map(({ rule }) => rule);
const answer = (...segments: OmniMessage[]): OmniMessage[] => [begin(), ...segments, ...new Meter().tail()];

describe("a good stream passes", () => {
  test.each([
    ["segments of each kind, one after the other", answer(...thought(["a", "b"]), ...said("c"), ...said([]))],
    ["hidden reasoning: a segment without deltas", answer(...thought([]))],
    [
      "media of a model, which comes without fragments",
      answer(make.inlineThinking(AT, { data: "AA==", mime_type: "image/png" })),
    ],
    ["a complete text without fragments", answer(make.assistantText(AT, "hello"))],
    [
      "a denial's output without fragments",
      [
        begin(),
        ...called("a"),
        ...new Meter().tail(),
        make.approvalDecision(AT, { decision: "deny", tool_call_id: "a" }),
        outputOf("a", "Tool call denied by user.", "aborted"),
      ],
    ],
    [
      "an output with images, all in one delta",
      [
        begin(),
        ...called("a"),
        allowed("a"),
        ...answered("a", "[image]", { images: ["data:image/png;base64,AA=="] }),
        ...new Meter().tail(),
      ],
    ],
    ["an empty delta", answer(...said(["a", "", "b"]))],
    ["fragments cut inside a surrogate pair", answer(...said(["\ud83d", "\ude42"]))],
  ])("%s", (_, stream) => expect(validateStream(stream, { mode: "stream" })).toEqual([]));

  test("fragments of two tools and of the model interleave one by one", () => {
    const [a, b, text] = [answered("call_A", ["1", "2"]), answered("call_B", ["3", "4"]), said(["5", "6"])];
    const mixed = a.flatMap((message, i) => [message, b[i]!, text[i]!]);
    const stream = [begin(), ...called("call_A"), ...called("call_B"), allowed("call_A"), allowed("call_B"), ...mixed];
    expect(rulesOf([...stream, ...new Meter().tail()])).toEqual([]);
  });

  test("others' messages may fall between a stop and its complete message", () => {
    const text = said("look");
    const stream = [begin(), ...called("a"), ...text.slice(0, 3), allowed("a"), ...answered("a"), ...text.slice(3)];
    expect(rulesOf([...stream, ...new Meter().tail()])).toEqual([]);
  });

  test("an explicit completed is the same ending as none", () => {
    const text = bend(said("a"), 3, { stop_reason: "completed" });
    expect(rulesOf(answer(...text))).toEqual([]);
  });
});

describe("a bad stream is caught", () => {
  const text = said(["one ", "two"]);
  const output = (messages: OmniMessage[]) => [
    begin(),
    ...called("a"),
    allowed("a"),
    ...messages,
    ...new Meter().tail(),
  ];
  test.each([
    ["a start with content", answer(...bend(text, 0, { text: "one " }))],
    ["a stop with content", answer(...bend(text, 3, { text: "!" }))],
    ["no start", answer(...text.slice(1))],
    ["no stop", answer(...text.filter((_, i) => i !== 3))],
    ["fragments without the complete message", answer(...text.slice(0, 4))],
    ["a delta that is lost", answer(...text.filter((_, i) => i !== 1))],
    ["two deltas in the wrong order", answer(text[0]!, text[2]!, text[1]!, ...text.slice(3))],
    ["a delta after the stop", answer(...text.slice(0, 4), text[2]!, text[4]!)],
    ["a stop twice", answer(...text.slice(0, 4), text[3]!, text[4]!)],
    ["stop_reason only on the stop", answer(...bend(text, 3, { stop_reason: "timeout" }))],
    ["stop_reason only on the complete message", answer(...bend(text, 4, { stop_reason: "timeout" }))],
    ["stop_reason on a delta", answer(...bend(text, 1, { stop_reason: "timeout" }))],
    ["a second model segment inside the first", answer(...text.slice(0, 2), ...thought("hm"), ...text.slice(2))],
    [
      "a complete message of another kind inside a segment",
      answer(...text.slice(0, 2), make.thinking(AT, "hm"), ...text.slice(2)),
    ],
    [
      "a complete message of another kind in place of the segment's own",
      answer(...text.slice(0, 4), make.thinking(AT, "one two")),
    ],
    [
      "a call whose fragments bear another id",
      output(answered("a")).with(2, bend(called("a"), 1, { tool_call_id: "b" })[1]!),
    ],
    [
      "a call whose fragments bear another name",
      output(answered("a")).with(4, bend(called("a"), 3, { name: "other" })[3]!),
    ],
    ["output that differs from its deltas", output(bend(answered("a", "long text"), 3, { output: "long" }))],
    ["images that no delta carried", output(bend(answered("a"), 3, { images: ["data:image/png;base64,AA=="] }))],
    [
      "images that the complete message lacks",
      output(bend(answered("a", "x", { images: ["data:,"] }), 4, { images: undefined })),
    ],
    ["an output that restarts", output([...answered("a").slice(0, 2), ...answered("a")])],
    ["a tool's fragments without its complete output", output([outputOf("a", "x"), ...answered("a").slice(0, 2)])],
  ])("%s", (_, stream) => expect(new Set(rulesOf(stream))).toEqual(new Set(["segments"])));

  test("a segment left open by an interrupt", () => {
    const stream = [begin(), ...said("a").slice(0, 2), ...new Meter().tail("aborted"), make.abort(AT, "user")];
    expect(rulesOf(stream)).toEqual(["segments"]);
  });

  test("the violation says where and what", () => {
    const stream = twoCalls();
    const place = placeOf(stream, "tool_call_output", 1);
    expect(validateStream(bend(stream, place, { output: "a.txt\nX.txt\n" }), { mode: "stream" })).toEqual([
      {
        place,
        rule: "segments",
        toolCallId: "call_A",
        message: "tool_call_output differs from its deltas: 12 and 12 UTF-16 units, first at 6",
      },
    ]);
  });
});

test("a Trace holds complete messages without fragments, and that is no fault", () => {
  expect(validateStream(traceOf(twoCalls()), { mode: "trace" })).toEqual([]);
});
