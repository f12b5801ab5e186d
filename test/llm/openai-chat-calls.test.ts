import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { complete, decodeText, delta, segmentsOf, sse } from "./support.js";

const call = (id: string, name: string, args: string) => ({ type: "tool_call", id, name, arguments: args });
const toolDelta = (...calls: object[]): object => delta({ tool_calls: calls });
const stops = (messages: OmniMessage[]) =>
  complete(messages).map((message) => (message.payload as { stop_reason?: string }).stop_reason);

describe("segments", () => {
  test("empty content beside tool calls opens no text segment", () => {
    const { messages } = decodeText(
      sse(
        delta({ content: "", tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "{}" } }] }),
        "[DONE]",
      ),
    );
    expect(segmentsOf(messages)).toEqual([call("a", "f", "{}")]);
  });

  test("a call whose arguments are whole closes when text begins, before the stream ends", () => {
    const { messages } = decodeText(
      sse(
        toolDelta({ index: 0, id: "a", function: { name: "f", arguments: '{"x":1}' } }),
        delta({ content: "meanwhile" }),
      ),
    );
    expect(stops(messages)).toEqual([undefined, "malformed"]);
  });

  test("a call with arguments that go on after its end makes the answer malformed, not the call longer", () => {
    const { messages, outcome } = decodeText(
      sse(
        toolDelta({ index: 0, id: "a", function: { name: "f", arguments: "{}" } }),
        delta({ content: "x" }),
        toolDelta({ index: 0, function: { arguments: '{"x":1}' } }),
        delta({}, "tool_calls"),
        "[DONE]",
      ),
    );
    expect(outcome).toMatchObject({ status: "malformed", error: { kind: "malformed" } });
    expect(segmentsOf(messages)[0]).toEqual(call("a", "f", "{}"));
  });

  test.each([["null"], ['""'], ['"  "'], ['"{}"']])(
    "F12: arguments %s are a complete call without arguments",
    (args) => {
      const { messages, outcome } = decodeText(
        sse(
          toolDelta({ index: 0, id: "a", function: { name: "f", arguments: JSON.parse(args) } }),
          delta({}, "tool_calls"),
          "[DONE]",
        ),
      );
      expect(outcome.status).toBe("completed");
      expect(stops(messages)).toEqual([undefined]);
    },
  );

  test("F10: calls without index and without id are told apart by their names", () => {
    const { messages } = decodeText(
      sse(
        toolDelta({ function: { name: "f", arguments: '{"x":1}' } }, { function: { name: "f", arguments: '{"x":1}' } }),
        toolDelta({ function: { name: "g", arguments: "{}" } }),
        delta({}, "stop"),
      ),
    );
    expect(segmentsOf(messages).map(({ name, arguments: args }) => [name, args])).toEqual([
      ["f", '{"x":1}'],
      ["f", '{"x":1}'],
      ["g", "{}"],
    ]);
    expect(new Set(segmentsOf(messages).map(({ id }) => id)).size).toBe(3);
  });

  test("a name that comes again in every fragment is neither glued nor a new call", () => {
    const part = (args: string) => toolDelta({ index: 0, id: "a", function: { name: "f", arguments: args } });
    const { messages } = decodeText(sse(part('{"x"'), part(":1}"), part(""), part('{"x":1}'), delta({}, "tool_calls")));
    expect(segmentsOf(messages)).toEqual([call("a", "f", '{"x":1}')]);
  });

  test("a call without a name is a call all the same, for its output to say so; an entry with nothing in it is none", () => {
    const { messages, outcome } = decodeText(
      sse(toolDelta({ index: 0, id: "a", function: { name: "", arguments: "{}" } }), toolDelta({ index: 1 }), "[DONE]"),
    );
    expect(outcome.status).toBe("completed");
    expect(segmentsOf(messages)).toMatchObject([{ name: "", arguments: "{}" }]);
  });

  test("a call without a name in an answer that was cut is none", () => {
    const { messages } = decodeText(sse(toolDelta({ index: 0, id: "a", function: { arguments: '{"x"' } })));
    expect(segmentsOf(messages)).toEqual([]);
  });

  test("half a call and [DONE] without a finish_reason is malformed", () => {
    const { messages, outcome } = decodeText(
      sse(toolDelta({ index: 0, id: "a", function: { name: "f", arguments: '{"x"' } }), "[DONE]"),
    );
    expect(outcome.status).toBe("malformed");
    expect(stops(messages)).toEqual(["malformed"]);
  });

  test("the legacy function_call is a tool call with an id of ours", () => {
    const { messages, outcome } = decodeText(
      sse(
        delta({ function_call: { name: "f", arguments: '{"x"' } }),
        delta({ function_call: { arguments: ":1}" } }),
        delta({}, "function_call"),
      ),
    );
    expect(outcome).toMatchObject({ status: "completed", finishReason: "function_call" });
    expect(segmentsOf(messages)).toMatchObject([{ name: "f", arguments: '{"x":1}' }]);
  });

  test("ids that the Session has seen, that are odd, or that come twice are replaced and kept beside", () => {
    const { messages } = decodeText(
      sse(
        toolDelta(
          { index: 0, id: "seen", function: { name: "f", arguments: "{}" } },
          { index: 1, id: "with space", function: { name: "f", arguments: "{}" } },
          { index: 2, id: "new", function: { name: "f", arguments: "{}" } },
          { index: 3, id: "new", function: { name: "g", arguments: "{}" } },
          { index: 4, function: { name: "f", arguments: "{}" } },
        ),
        delta({}, "tool_calls"),
      ),
      { isTaken: (id) => id === "seen" },
    );
    const calls = complete(messages).map(({ payload }) => payload as Record<string, unknown>);
    const ids = calls.map((payload) => String(payload.tool_call_id));
    expect(ids[2]).toBe("new");
    expect(new Set(ids).size).toBe(5);
    for (const id of ids) expect(id).toMatch(/^[A-Za-z0-9_.:-]{1,64}$/);
    expect(calls.map((payload) => (payload.fidelity as Record<string, unknown> | undefined)?.provider_call_id)).toEqual(
      ["seen", "with space", undefined, "new", undefined],
    );
  });

  test("fragments of calls in any interleaving give the calls in order of first appearance", () => {
    const args = fc.array(fc.string({ minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.array(args, { minLength: 1, maxLength: 4 }), fc.infiniteStream(fc.nat()), (calls, picks) => {
        const texts = calls.map((parts) => JSON.stringify({ v: parts.join("") }));
        const queues = texts.map((text, index) =>
          text.split(/(?<=[\s\S]{3})/).map((part, n) => ({
            index,
            ...(n === 0 ? { id: `id${index}` } : {}),
            function: { ...(n === 0 ? { name: `f${index}` } : {}), arguments: part },
          })),
        );
        const chunks: object[] = queues.map((queue) => toolDelta(queue.shift()!));
        for (
          let left = queues.filter((q) => q.length > 0);
          left.length > 0;
          left = queues.filter((q) => q.length > 0)
        ) {
          chunks.push(toolDelta(left[picks.next().value % left.length]!.shift()!));
        }
        const { messages } = decodeText(sse(...chunks, delta({}, "tool_calls")));
        expect(segmentsOf(messages)).toEqual(texts.map((text, index) => call(`id${index}`, `f${index}`, text)));
      }),
      { numRuns: 200 },
    );
  });
});

test("long arguments that are not whole are not read again for every segment that follows", () => {
  const half = `{"x":"${"y".repeat(50_000)}}`;
  const chunks = [toolDelta({ index: 0, id: "a", function: { name: "f", arguments: half } })];
  for (let n = 0; n < 50; n += 1) chunks.push(delta({ content: "t" }), delta({ reasoning_content: "r" }));
  const parse = vi.spyOn(JSON, "parse");
  onTestFinished(() => parse.mockRestore());
  decodeText(sse(...chunks, delta({}, "stop"), "[DONE]"));
  const long = parse.mock.calls.filter(([text]) => String(text).startsWith('{"x"'));
  expect(long.length).toBeLessThanOrEqual(4);
});

test("a count of tokens that nobody can believe is none", () => {
  for (const count of [1e300, 1.7e308, -5, 2 ** 60, "12", null]) {
    const usage = { prompt_tokens: count, completion_tokens: 3, total_tokens: count };
    const { outcome } = decodeText(sse(delta({ content: "x" }, "stop"), { choices: [], usage }, "[DONE]"));
    expect(Number.isSafeInteger(outcome.usage.total)).toBe(true);
    expect(outcome.usage.total).toBeLessThan(1e6);
  }
});
