import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RESPONSES_NAMES } from "../../src/llm/wire/responses-names.js";
import { wireToolName } from "../../src/llm/wire/tool-names.js";
import { isPayload } from "../../src/protocol/guards.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import {
  added,
  argumentsDelta,
  call,
  completed,
  decodeBytes,
  decodeEvents,
  done,
  message,
  rawDelta,
  reasoning,
  summaryDelta,
  textDelta,
} from "./openai-responses-support.js";
import { complete, fromOf, segmentsOf, sse } from "./support.js";

const FROM = fromOf("openai-responses");

const fidelityOf = (messages: OmniMessage[]) =>
  complete(messages).map(({ payload }) => (payload as { fidelity?: Record<string, unknown> }).fidelity);
const calls = (messages: OmniMessage[]) => segmentsOf(messages).filter(({ type }) => type === "tool_call");
const retold = (...texts: string[]) => texts.map((text) => ({ type: "summary_text", text }));
const raw = (text: string) => [{ type: "reasoning_text", text }];

describe("reasoning", () => {
  test("hidden reasoning without an encrypted form leaves nothing", () => {
    expect(
      decodeEvents(added(0, reasoning()), done(0, reasoning({ encrypted_content: null })), completed()).messages,
    ).toEqual([]);
  });

  test("F5: the encrypted form is the end's, never the announcement's, and the response's only where no end came", () => {
    const [first, last] = [reasoning({ encrypted_content: "added" }), reasoning({ encrypted_content: "response" })];
    const ended = [added(0, first), done(0, reasoning({ encrypted_content: "done" })), completed([last])];
    expect(fidelityOf(decodeEvents(...ended).messages)).toEqual([
      { id: "rs_1", summary: [], encrypted_content: "done", from: FROM },
    ]);
    expect(fidelityOf(decodeEvents(added(0, first), completed([last])).messages)[0]).toMatchObject({
      encrypted_content: "response",
    });
    expect(decodeEvents(added(0, first), completed()).messages).toEqual([]);
  });

  test("a server's own members of a readable item are kept as they came", () => {
    const item = reasoning({
      encrypted_content: "e",
      format: "acme-v1",
      mood: null,
      status: "completed",
      content: raw("hm"),
    });
    expect(fidelityOf(decodeEvents(done(0, item), completed()).messages)).toEqual([
      { id: "rs_1", summary: [], encrypted_content: "e", format: "acme-v1", content: raw("hm"), from: FROM },
    ]);
  });

  test("of thoughts that are shown and cannot be read back, the text is kept once", () => {
    const shown = reasoning({ content: raw("hm"), encrypted_content: null, status: "completed" });
    expect(fidelityOf(decodeEvents(done(0, shown), completed()).messages)).toEqual([
      { id: "rs_1", summary: [], from: FROM },
    ]);
  });

  test("of a summary and raw thoughts that say the same, the one that came first is shown", () => {
    const both = reasoning({ summary: retold("short"), content: raw("long") });
    expect(segmentsOf(decodeEvents(rawDelta(0, "long"), done(0, both), completed()).messages)).toEqual([
      { type: "thinking", thinking: "long" },
    ]);
    expect(segmentsOf(decodeEvents(done(0, both), completed()).messages)).toEqual([
      { type: "thinking", thinking: "short" },
    ]);
  });

  test("text does not wait for raw thoughts to be ended, and does wait for a summary, whose encrypted form is due", () => {
    const text = (events: object[]) => {
      const { messages } = decodeBytes(sse(...events, added(1, message("")), textDelta(1, "so")));
      return messages.findIndex((each) => isPayload(each, "partial_text") && each.payload.text === "so");
    };
    const streamed = decodeEvents(rawDelta(0, "hm"), added(1, message("")), textDelta(1, "so"), rawDelta(0, " yes"));
    expect(segmentsOf(streamed.messages)).toEqual([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "so" },
      { type: "thinking", thinking: " yes" },
    ]);
    // Behind the start, the delta, the stop and the whole of the thoughts; and of the summary only once it is closed.
    expect(text([rawDelta(0, "hm")])).toBe(5);
    const { messages } = decodeEvents(summaryDelta(0, 0, "hm"), added(1, message("")), textDelta(1, "so"));
    expect(complete(messages).map(({ payload }) => (payload as { stop_reason?: string }).stop_reason)).toEqual([
      "malformed",
      "malformed",
    ]);
  });
});

describe("calls", () => {
  test("F11: an id that the Session has seen is replaced, and the provider's own kept", () => {
    const { messages } = decodeBytes(sse(done(0, call("call_1", "{}")), completed()), {
      isTaken: (id) => id === "call_1",
    });
    const [only] = complete(messages).filter((each) => isPayload(each, "tool_call"));
    expect(only?.payload.tool_call_id).not.toBe("call_1");
    expect(only?.payload.fidelity).toEqual({ provider_call_id: "call_1", from: FROM });
  });

  test("a call that is confirmed under another place or announced twice is one call", () => {
    const moved = decodeEvents(added(0, call("a")), done(3, call("a", '{"x":1}')), completed());
    expect(calls(moved.messages)).toEqual([{ type: "tool_call", id: "a", name: "f", arguments: '{"x":1}' }]);
    const twice = decodeEvents(added(0, call("a")), added(1, call("a")), argumentsDelta(1, "{}"), completed());
    expect(twice.outcome.status).toBe("completed");
    expect(calls(twice.messages)).toMatchObject([{ id: "a", arguments: "{}" }]);
    const again = decodeEvents(done(0, call("a", "{}")), done(0, call("a", "{}")), completed([call("a", "{}")]));
    expect(calls(again.messages)).toHaveLength(1);
  });

  test("a tool's own name comes back where the protocol's alphabet had made it another", () => {
    const name = wireToolName("files.read", RESPONSES_NAMES);
    expect(name).not.toBe("files.read");
    const text = sse(done(0, call("a", "{}", { name })), completed());
    expect(calls(decodeBytes(text, { toolNames: ["f", "files.read"] }).messages)).toMatchObject([
      { name: "files.read" },
    ]);
    expect(calls(decodeBytes(text, { toolNames: ["f"] }).messages)).toMatchObject([{ name }]);
  });

  test("F12: arguments that are left out, blank or an object are read", () => {
    const parsed = (args: unknown) =>
      calls(decodeEvents(done(0, { ...call("a"), arguments: args }), completed()).messages)[0]?.arguments;
    expect([parsed(undefined), parsed(""), parsed(" "), parsed({ x: 1 })]).toEqual(["", "", "", '{"x":1}']);
  });

  test("a call is complete at its item's end, before the answer's", () => {
    const { messages } = decodeEvents(done(0, call("a", "{}")), added(1, call("b")), argumentsDelta(1, "{}"));
    expect(complete(messages).map(({ payload }) => (payload as { stop_reason?: string }).stop_reason)).toEqual([
      undefined,
      "malformed",
    ]);
  });
});

describe("odd servers", () => {
  test("items that all stand in one place are told apart by their announcement", () => {
    const { messages } = decodeEvents(
      ...[added(0, message("")), textDelta(0, "so"), added(0, call("a")), argumentsDelta(0, "{}")],
      ...[done(0, message("so")), done(0, call("a", "{}")), completed()],
    );
    expect(segmentsOf(messages)).toEqual([
      { type: "text", text: "so" },
      { type: "tool_call", id: "a", name: "f", arguments: "{}" },
    ]);
  });

  test("a list at the end whose places are others is not used, one that goes on is", () => {
    const text = [added(0, message("")), textDelta(0, "so"), done(0, message("so"))];
    const shifted = completed([{ type: "web_search_call" }, message("so")]);
    expect(segmentsOf(decodeEvents(...text, shifted).messages)).toEqual([{ type: "text", text: "so" }]);
    const longer = completed([message("so"), call("a", "{}")]);
    expect(segmentsOf(decodeEvents(...text, longer).messages)).toHaveLength(2);
  });

  test("types, members and events that nobody knows are passed over", () => {
    const { messages, outcome } = decodeEvents(
      ...[{ type: "response.queued" }, { type: "keepalive" }, {}, "[]", "null", "7", { type: 4, item: [] }],
      ...[added(0, { type: "mood" }), { type: "response.mood.delta", output_index: 0, delta: "x" }],
      ...[done(0, { type: "mood" }), textDelta(0, "ignored"), added(1, message("", { mood: 1 })), textDelta(1, "a", 9)],
      ...[{ type: "response.content_part.done", output_index: 1, part: { type: "audio" } }, completed()],
    );
    expect(outcome.status).toBe("completed");
    expect(segmentsOf(messages)).toEqual([{ type: "text", text: "a" }]);
    expect(fidelityOf(messages)).toEqual([{ before: [{ type: "mood" }], from: FROM }]);
  });
});

describe("any answer", () => {
  const word = fc.string({ minLength: 1, maxLength: 6 });
  const cut = fc.array(word, { minLength: 1, maxLength: 4 });
  const item = fc.oneof(
    fc.record({ kind: fc.constant("message" as const), deltas: cut, phase: fc.constantFrom("commentary", undefined) }),
    fc.record({ kind: fc.constant("call" as const), value: word, at: fc.nat(9) }),
    fc.record({ kind: fc.constant("reasoning" as const), parts: fc.array(cut, { maxLength: 3 }), enc: fc.boolean() }),
  );
  type Spec = typeof item extends fc.Arbitrary<infer T> ? T : never;
  /** Which of the events that say the same thing are left out, and whose turn it is. */
  const delivery = fc.record({ streamed: fc.boolean(), announced: fc.boolean() });

  function lane(spec: Spec, place: number, how: { streamed: boolean; announced: boolean }): object[] {
    const { begun, deltas, ended } = eventsOf(spec, place);
    return [...(how.announced || !how.streamed ? [begun] : []), ...(how.streamed ? deltas : []), ended];
  }

  function eventsOf(spec: Spec, place: number): { begun: object; deltas: object[]; ended: object } {
    if (spec.kind === "message") {
      const { deltas, phase } = spec;
      const whole = message(deltas.join(""), phase === undefined ? {} : { phase });
      return {
        begun: added(place, message("")),
        deltas: deltas.map((d) => textDelta(place, d)),
        ended: done(place, whole),
      };
    }
    if (spec.kind === "call") {
      const args = JSON.stringify({ value: spec.value });
      const cuts = [args.slice(0, spec.at + 1), args.slice(spec.at + 1)];
      const deltas = cuts.map((d) => argumentsDelta(place, d));
      return { begun: added(place, call(`c${place}`)), deltas, ended: done(place, call(`c${place}`, args)) };
    }
    const deltas = spec.parts.flatMap((part, n) => part.map((d) => summaryDelta(place, n, d)));
    const summary = retold(...spec.parts.map((part) => part.join("")));
    const more = spec.enc ? { encrypted_content: `e${place}`, summary } : { summary };
    return { begun: added(place, reasoning()), deltas, ended: done(place, reasoning(more)) };
  }

  function segment(spec: Spec, place: number): object[] {
    if (spec.kind === "message") return [{ type: "text", text: spec.deltas.join("") }];
    if (spec.kind === "call") {
      return [{ type: "tool_call", id: `c${place}`, name: "f", arguments: JSON.stringify({ value: spec.value }) }];
    }
    const thinking = spec.parts.map((part) => part.join("")).join("\n\n");
    return thinking === "" && !spec.enc ? [] : [{ type: "thinking", thinking }];
  }

  test("gives its items in their order, whatever of it is streamed, repeated or interleaved", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(item, delivery), { minLength: 1, maxLength: 6 }),
        fc.array(fc.nat(), { maxLength: 60 }),
        (answer, picks) => {
          const lanes = answer.map(([spec, how], place) => lane(spec, place, how));
          const events: object[] = [];
          let started = 0;
          for (let n = 0; lanes.some((events) => events.length > 0); n++) {
            // Items are begun in order; those that are begun go on in any.
            const open = lanes.slice(0, started + 1).filter((events) => events.length > 0);
            const next = open[(picks[n] ?? 0) % open.length] as object[];
            if (next === lanes[started]) started++;
            events.push(next.shift() as object);
          }
          const { messages, outcome } = decodeEvents(...events, completed());
          expect(outcome.status).toBe("completed");
          expect(segmentsOf(messages)).toEqual(answer.flatMap(([spec], place) => segment(spec, place)));
          const encrypted = fidelityOf(messages).flatMap((fidelity) => fidelity?.encrypted_content ?? []);
          expect(encrypted).toEqual(
            answer.flatMap(([spec], place) => (spec.kind === "reasoning" && spec.enc ? [`e${place}`] : [])),
          );
        },
      ),
    );
  });
});
