import fc from "fast-check";
import { describe, expect, test } from "vitest";
import * as make from "../../src/protocol/builders.js";
import { isCompleteModelMessage, isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import type { StopReason } from "../../src/protocol/payloads.js";
import { type ContentSegment, SegmentWriter, ToolOutputWriter } from "../../src/protocol/segment.js";
import { type Violation, validateStream } from "../../src/protocol/validate.js";
import { AT, begin } from "../support/messages.js";

const now = () => AT;
const STOPS: (StopReason | undefined)[] = [undefined, "completed", "failed", "aborted", "timeout", "malformed"];
const text = fc.string({ unit: "binary", maxLength: 6 });

/** The faults of a model's messages, as they stand in an open Request. */
const faults = (messages: OmniMessage[]): Violation[] =>
  validateStream([begin(), ...messages], { mode: "stream", running: true }).filter(({ rule }) => rule === "segments");
const contentOf = (message: OmniMessage): unknown => {
  if (isPayload(message, "text")) return message.payload.text;
  if (isPayload(message, "thinking")) return message.payload.thinking;
  return isPayload(message, "tool_call") ? message.payload.arguments : undefined;
};

type Step =
  | { do: "open"; kind: "text" | "thinking" | "tool_call" }
  | { do: "append"; on: number; text: string }
  | { do: "identify"; on: number }
  | { do: "fidelity"; on: number }
  | { do: "end"; on: number; stop: StopReason | undefined }
  | { do: "take" };

const on = fc.nat({ max: 5 });
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant("open" as const),
      kind: fc.constantFrom("text" as const, "thinking" as const, "tool_call" as const),
    }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("append" as const), on, text }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("identify" as const), on }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("fidelity" as const), on }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("end" as const), on, stop: fc.constantFrom(...STOPS) }) },
  { weight: 2, arbitrary: fc.constant({ do: "take" as const }) },
);

interface Opened {
  kind: string;
  segment: ContentSegment;
  content: string;
  named: boolean;
  fidelity: boolean;
  stop: StopReason | undefined;
}

/** Plays the steps; a step on a segment that is not there or has ended is left out. */
function play(steps: Step[], last: StopReason | undefined): { out: OmniMessage[]; opened: Opened[] } {
  const writer = new SegmentWriter(now);
  const opened: Opened[] = [];
  const out: OmniMessage[] = [];
  for (const s of steps) {
    if (s.do === "take") out.push(...writer.take());
    else if (s.do === "open") {
      const segment =
        s.kind === "text" ? writer.openText() : s.kind === "thinking" ? writer.openThinking() : writer.openToolCall();
      opened.push({ kind: s.kind, segment, content: "", named: false, fidelity: false, stop: undefined });
    } else {
      const target = opened[s.on];
      if (target === undefined || target.segment.ended) continue;
      if (s.do === "append") {
        target.segment.append(s.text);
        target.content += s.text;
      } else if (s.do === "fidelity") {
        target.segment.setFidelity({ signature: String(s.on) });
        target.fidelity = true;
      } else if (s.do === "end") {
        target.segment.end(s.stop);
        target.stop = s.stop;
      } else if (target.kind === "tool_call") {
        (target.segment as ReturnType<SegmentWriter["openToolCall"]>).identify("exec_command", `call_${s.on}`);
        target.named = true;
      }
    }
  }
  for (const target of opened) if (!target.segment.ended) target.stop = last;
  writer.endAll(last);
  out.push(...writer.take());
  expect(opened.every(({ segment }) => segment.ended)).toBe(true);
  return { out, opened };
}

describe("SegmentWriter", () => {
  test("F10: however segments are interleaved, the stream keeps the discipline and every character", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.constantFrom(...STOPS), (steps, last) => {
        const { out, opened } = play(steps, last);
        expect(faults(out)).toEqual([]);
        const expected = opened
          .filter(({ kind, named, content, fidelity }) => (kind === "tool_call" ? named : content !== "" || fidelity))
          .map(({ kind, content, stop }) => [kind, content, stop === "completed" ? undefined : stop]);
        const complete = out.filter((message) => isCompleteModelMessage(message));
        expect(complete.map((m) => [m.payload.type, contentOf(m), m.payload.stop_reason])).toEqual(expected);
      }),
      { numRuns: 300 },
    );
  });

  test("when messages are taken changes only how fragments are cut, never what is said", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const often = play(
          steps.flatMap((s) => [s, { do: "take" as const }]),
          undefined,
        ).out;
        const once = play(
          steps.filter((s) => s.do !== "take"),
          undefined,
        ).out;
        expect(often).toEqual(once);
      }),
    );
  });

  test("a later segment waits, and goes out in one fragment when its turn comes", () => {
    const writer = new SegmentWriter(now);
    const [a, b] = [writer.openText(), writer.openText()];
    b.append("b1");
    b.append("b2");
    a.append("a");
    expect(writer.take()).toHaveLength(2);
    a.end();
    expect(writer.take().map(({ payload }) => payload)).toMatchObject([
      { event_type: "stop" },
      { type: "text", text: "a" },
      { event_type: "start" },
      { event_type: "delta", text: "b1b2" },
    ]);
  });

  test("an empty segment leaves nothing; hidden reasoning leaves an empty complete message with its fidelity", () => {
    const writer = new SegmentWriter(now);
    writer.openText().end();
    writer.openToolCall().end();
    const hidden = writer.openThinking();
    hidden.setFidelity({ data: "gAAAA" });
    hidden.end();
    const out = writer.take();
    expect(out.map(({ payload }) => "type" in payload && payload.type)).toEqual([
      "partial_thinking",
      "partial_thinking",
      "thinking",
    ]);
    expect(out.at(-1)?.payload).toMatchObject({ thinking: "", fidelity: { data: "gAAAA" } });
    expect(faults(out)).toEqual([]);
  });

  test("a call keeps the first id and name that it was given", () => {
    const writer = new SegmentWriter(now);
    const call = writer.openToolCall();
    call.identify("exec_command", "call_1");
    call.append("{}");
    call.identify("other", "call_2");
    call.end();
    expect(writer.take().at(-1)?.payload).toMatchObject({ name: "exec_command", tool_call_id: "call_1" });
  });

  test("media closes what is open and takes its place after it", () => {
    const writer = new SegmentWriter(now);
    writer.openText().append("see");
    writer.whole((at) => make.inlineData(at, { role: "assistant", data: "AA==", mime_type: "image/png" }));
    const out = writer.take();
    expect(out.map(({ payload }) => "type" in payload && payload.type).slice(-2)).toEqual(["text", "inline_data"]);
    expect(faults(out)).toEqual([]);
  });

  test("a fragment after the end is a bug, and throws", () => {
    const writer = new SegmentWriter(now);
    const segment = writer.openText();
    segment.end();
    expect(() => segment.append("late")).toThrow("after the end of a text segment");
  });

  test("B10: bytes grow with the text, not with its square", () => {
    const bytesOf = (deltas: number): number => {
      const writer = new SegmentWriter(now);
      const segment = writer.openText();
      for (let i = 0; i < deltas; i += 1) segment.append("word ");
      segment.end();
      return writer.take().reduce((sum, message) => sum + JSON.stringify(message).length, 0);
    };
    const perDelta = (bytesOf(2000) - bytesOf(1000)) / 1000;
    expect(perDelta).toBe((bytesOf(4000) - bytesOf(2000)) / 2000);
  });
});

describe("ToolOutputWriter", () => {
  const ending = fc.record(
    {
      images: fc.array(fc.constantFrom("data:image/png;base64,AA==", "data:,"), { maxLength: 3 }),
      exitCode: fc.nat({ max: 255 }),
      stop: fc.constantFrom("failed" as const, "aborted" as const, "timeout" as const),
    },
    { requiredKeys: [] },
  );

  test("whatever a tool says, in whatever pieces, keeps the discipline and ends in one complete output", () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), ending, (deltas, end) => {
        const writer = new ToolOutputWriter(now, "call_1");
        const out = [...deltas.flatMap((delta) => writer.append(delta)), ...writer.end(end)];
        expect(faults(out)).toEqual([]);
        expect(out.filter((message) => isCompleteModelMessage(message))).toEqual([out.at(-1)]);
        const images = end.images === undefined || end.images.length === 0 ? {} : { images: end.images };
        expect(out.at(-1)?.payload).toEqual({
          type: "tool_call_output",
          role: "user",
          output: deltas.join(""),
          tool_call_id: "call_1",
          ...images,
          ...(end.exitCode === undefined ? {} : { exit_code: end.exitCode }),
          ...(end.stop === undefined ? {} : { stop_reason: end.stop }),
        });
        expect(writer.content).toBe(deltas.join(""));
      }),
    );
  });

  test("ends once, and takes nothing after its end", () => {
    const writer = new ToolOutputWriter(now, "call_1");
    expect(writer.end()).toHaveLength(3);
    expect(writer.end({ stop: "aborted" })).toEqual([]);
    expect(writer.ended).toBe(true);
    expect(() => writer.append("late")).toThrow("output of call_1 after its end");
  });
});
