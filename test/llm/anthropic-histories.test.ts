// Any history, however it came about, becomes a body that the protocol's rules allow.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { THINKING_LEVELS } from "../../src/engine/ports.js";
import { originMark } from "../../src/llm/model-spec.js";
import { encodeAnthropic } from "../../src/llm/wire/anthropic-messages-encode.js";
import {
  assistantText,
  imageUrl,
  inlineData,
  inlineThinking,
  thinking,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import type { Fidelity } from "../../src/protocol/payloads.js";
import { type Body, brokenRules } from "./anthropic-rules.js";
import { spec } from "./anthropic-support.js";
import { AT, llmRequest } from "./support.js";

const MODELS = ["claude-3-haiku-20240307", "claude-sonnet-4-5", "claude-opus-4-6", "claude-opus-4-7", "claude-fable-5"];
const PNG = "data:image/png;base64,AAAA";
const OWN = "own";

const words = fc.constantFrom("words", "", " \n", "\ud800 half", "北🙂");
// Few ids, so that they repeat within a batch and across batches; some outside of the alphabet, some that collide.
const id = fc.constantFrom("a", "b", "a.b", "a_b", "functions.add:0", "call_1");
const from = fc.constantFrom(OWN, "other/model");
const args = fc.constantFrom("{}", "", '{"x":"\\ud800"}', '{"x', "[1]", "null");
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const userSaid = fc.oneof(
  words.map((said) => userText(AT, said)),
  fc.constantFrom(PNG, "https://x/y", "data:image/svg+xml,%3C", "data:,", "").map((url) => imageUrl(AT, url)),
  fc
    .constantFrom("application/pdf", "text/plain", "image/bmp", "application/zip")
    .map((mime_type) => inlineData(AT, { role: "user", data: "AP8=", mime_type })),
);

const serverBlocks = fc.subarray([
  { type: "server_tool_use", id: "s1", name: "web_search", input: {} },
  { type: "web_search_tool_result", tool_use_id: "s1", content: [] },
  { type: "server_tool_use", id: "s2", name: "web_search", input: {} },
  { type: "web_search_tool_result", tool_use_id: "s2", content: [] },
  { type: "compaction", content: "so far" },
]);
const before = fc.record({ blocks_before: serverBlocks, from }) as fc.Arbitrary<Fidelity>;

let signatures = 0;
const thought: fc.Arbitrary<CompleteMessage> = fc.oneof(
  fc.tuple(words, from).map(([said, whose]) => {
    signatures += 1;
    return thinking(AT, said, { fidelity: { signature: `sig${signatures}`, from: whose } });
  }),
  from.map((whose) => {
    signatures += 1;
    return thinking(AT, "", { fidelity: { redacted_thinking: `sig${signatures}`, from: whose } });
  }),
  maybe(fc.constant({ from: OWN })).map((fidelity) =>
    thinking(AT, "unsigned", fidelity === undefined ? {} : { fidelity }),
  ),
  before.map((fidelity) => thinking(AT, "", { fidelity })),
  fc.constant(inlineThinking(AT, { data: "AAAA", mime_type: "image/png" })),
);
const said: fc.Arbitrary<CompleteMessage> = fc.oneof(
  fc
    .tuple(words, maybe(before))
    .map(([text, fidelity]) => assistantText(AT, text, fidelity === undefined ? {} : { fidelity })),
  thought,
);
const called = fc
  .record({
    id,
    args,
    name: fc.constantFrom("f", "mcp.x/y", "", "n".repeat(90)),
    cut: fc.boolean(),
    own: maybe(fc.tuple(id, from)),
  })
  .map(({ id: tool_call_id, args: text, name, cut, own }) =>
    toolCall(AT, {
      name,
      arguments: text,
      tool_call_id,
      ...(own === undefined ? {} : { fidelity: { provider_call_id: own[0], from: own[1] } }),
      ...(cut ? { stop_reason: "malformed" as const } : {}),
    }),
  );
const answered = fc
  .record({
    id,
    output: words,
    images: maybe(fc.constantFrom<string[]>([PNG], ["nothing"], [PNG, PNG])),
    failed: fc.boolean(),
  })
  .map(({ id: tool_call_id, output, images, failed }) =>
    toolCallOutput(AT, {
      output,
      tool_call_id,
      ...(images === undefined ? {} : { images }),
      ...(failed ? { stop_reason: "failed" as const } : {}),
    }),
  );

/** A turn as it should be, with some outputs missing, doubled, or nobody's. */
const turn = fc
  .record({
    said: fc.array(said, { maxLength: 4 }),
    calls: fc.array(called, { maxLength: 3 }),
    outputs: fc.array(answered, { maxLength: 4 }),
    user: fc.array(userSaid, { maxLength: 2 }),
  })
  .map((parts): CompleteMessage[] => [...parts.said, ...parts.calls, ...parts.outputs, ...parts.user]);
/** Messages in no order at all, as a damaged or imported Trace may hold them. */
const heap: fc.Arbitrary<CompleteMessage[]> = fc.array(
  fc.oneof(userSaid, said, called, answered) as fc.Arbitrary<CompleteMessage>,
  { maxLength: 6 },
);
const history = fc.array(fc.oneof({ weight: 3, arbitrary: turn }, heap), { maxLength: 6 });

/** The same history with what is `own` marked as this model's. */
function ownedBy(messages: readonly CompleteMessage[], name: string): CompleteMessage[] {
  return messages.map((message) => {
    const fidelity = (message.payload as { fidelity?: Fidelity }).fidelity;
    if (fidelity?.from !== OWN) return message;
    return { ...message, payload: { ...message.payload, fidelity: { ...fidelity, from: name } } } as CompleteMessage;
  });
}

function send(messages: readonly CompleteMessage[], modelId: string, thinkingLevel: (typeof THINKING_LEVELS)[number]) {
  const model = spec({ modelId });
  const tools = [{ name: "f", description: "", parameters: { oneOf: [] } }];
  const request = llmRequest({ messages: ownedBy(messages, originMark(model)), thinkingLevel, tools });
  const json = encodeAnthropic(request, model).body;
  return { json, body: JSON.parse(json) as Body };
}

const bare = ({ messages }: Body): string =>
  JSON.stringify(
    messages.map(({ role, content }) => [role, content.map(({ cache_control: _mark, ...block }) => block)]),
  );

describe("any history", () => {
  const model = fc.constantFrom(...MODELS);
  const level = fc.constantFrom(...THINKING_LEVELS);

  test("F1 F4 F9: the body breaks no rule, wherever the history is cut off in front or behind", () => {
    fc.assert(
      fc.property(history, model, level, fc.nat(), fc.nat(), (groups, modelId, thinkingLevel, skip, keep) => {
        const all = groups.flat();
        const first = all.length === 0 ? 0 : skip % all.length;
        for (const messages of [all, all.slice(first), all.slice(0, keep % (all.length + 1))]) {
          const { json, body } = send(messages, modelId, thinkingLevel);
          expect(brokenRules(body, json)).toEqual([]);
        }
      }),
      { numRuns: 150 },
    );
  });

  test("F5: every signature of this model's goes out once, in order, and none of another's", () => {
    fc.assert(
      fc.property(history, (groups) => {
        const all = groups.flat();
        const given = all.flatMap(({ payload }) => {
          const { signature, redacted_thinking, from: whose } = (payload as { fidelity?: Fidelity }).fidelity ?? {};
          return whose === OWN ? (signature ?? redacted_thinking ?? []) : [];
        });
        const sent = send(all, "claude-sonnet-4-5", "high").body.messages.flatMap(({ content }) =>
          content.flatMap(({ signature, data }) => signature ?? data ?? []),
        );
        expect(sent).toEqual(given);
      }),
    );
  });

  test("a longer context begins with the bytes of the shorter one, cache marks aside", () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 6 }), (turns) => {
        // Each turn begins with something said and ends with something of the user's: a Request could go out there.
        const groups = turns.map((each) => [assistantText(AT, "so"), ...each, userText(AT, "and?")]);
        const encode = (count: number) =>
          bare(send([userText(AT, "go"), ...groups.slice(0, count).flat()], "claude-sonnet-4-5", "default").body);
        const whole = encode(groups.length);
        for (let count = 0; count < groups.length; count++) {
          expect(whole.startsWith(encode(count).slice(0, -1))).toBe(true);
        }
      }),
    );
  });
});
