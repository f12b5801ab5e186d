// Whatever a history holds, what goes out is what the protocol takes, and what the model signed is in its place.

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { encodeGemini } from "../../src/llm/wire/gemini-encode.js";
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
import { violations } from "./gemini-rules.js";
import type { Content, Json } from "./gemini-support.js";
import { AT, llmRequest, modelSpec } from "./support.js";

const MODELS = ["gemini-3-pro-preview", "gemini-2.5-flash"] as const;
const nameOf = (modelId: string) => `google/${modelId}`;
const PNG = "data:image/png;base64,AAAA";

const words = fc.oneof(
  fc.constantFrom("", " ", "\n", "a", "北🙂é", "\ud83d", "\udc00x", "\\ud800"),
  fc.string({ unit: "grapheme", maxLength: 5 }),
);
/** Few, so that they repeat. */
const id = fc.constantFrom("a", "b", "c", "call_1");
const from = fc.constantFrom(...MODELS.map(nameOf), "other/model");
const signature = fc.option(fc.uuid(), { nil: undefined });
const stop = fc.constantFrom(undefined, undefined, "aborted" as const, "malformed" as const);

const fidelity = fc
  .record({ from, thought_signature: signature })
  .map(
    ({ thought_signature, ...rest }): Fidelity =>
      thought_signature === undefined ? rest : { thought_signature, ...rest },
  );
const perhaps = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const ending = (given: Fidelity | undefined, more: object = {}) => ({
  ...(given === undefined ? {} : { fidelity: given }),
  ...more,
});

const call = fc
  .record({
    id,
    name: fc.constantFrom("f", "read file", "x".repeat(70)),
    args: fc.constantFrom("", "{}", '{"a":1}', "[1]", '{"x', '{"\\ud800":"\\ud800"}'),
    given: perhaps(fidelity),
    providerId: fc.constantFrom(undefined, null, "0", "1"),
    stop,
  })
  .map(({ id: tool_call_id, name, args, given, providerId, stop: stop_reason }) => {
    const kept = given === undefined ? undefined : { ...given };
    if (kept !== undefined && providerId !== undefined) kept.provider_call_id = providerId;
    // A cut-off call carries nothing that would have to go back.
    const isCut = stop_reason !== undefined;
    return toolCall(AT, { name, arguments: args, tool_call_id, ...(isCut ? { stop_reason } : ending(kept)) });
  });

const output = fc
  .record({
    id,
    words,
    stop: fc.constantFrom(undefined, "failed" as const),
    images: fc.constantFrom<string[][]>([], [PNG], [PNG, "https://x.test/a.gif"]),
  })
  .map(({ id: tool_call_id, words: text, stop: stop_reason, images }) =>
    toolCallOutput(AT, { output: text, tool_call_id, images, ...(stop_reason === undefined ? {} : { stop_reason }) }),
  );

/** A part that shows nothing; with a signature where it would be empty without. */
const hidden = fc
  .record({
    from,
    thought_signature: fc.uuid(),
    part: fc.constantFrom({ text: "" }, { executableCode: { code: "1" } }),
  })
  .map((kept) => thinking(AT, "", { fidelity: kept }));

const message: fc.Arbitrary<CompleteMessage> = fc.oneof(
  { weight: 3, arbitrary: words.map((text) => userText(AT, text)) },
  {
    weight: 3,
    arbitrary: fc.tuple(words, perhaps(fidelity)).map(([text, kept]) => assistantText(AT, text, ending(kept))),
  },
  { weight: 2, arbitrary: fc.tuple(words, perhaps(fidelity)).map(([text, kept]) => thinking(AT, text, ending(kept))) },
  { weight: 6, arbitrary: call },
  { weight: 6, arbitrary: output },
  { weight: 1, arbitrary: hidden },
  {
    weight: 1,
    arbitrary: perhaps(fidelity).map((kept) =>
      inlineData(AT, { role: "assistant", mime_type: "image/png", data: "AAAA", ...ending(kept) }),
    ),
  },
  {
    weight: 1,
    arbitrary: fidelity.map((kept) => inlineThinking(AT, { mime_type: "image/png", data: "AAAA", fidelity: kept })),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(PNG, "https://x.test/a", "data:,x", "ftp://x").map((url) => imageUrl(AT, url)),
  },
);
/** Calls side by side, their outputs in any order and not all of them. */
const batch = fc
  .tuple(fc.array(call, { minLength: 2, maxLength: 4 }), fc.array(output, { maxLength: 4 }))
  .map(([calls, outputs]): CompleteMessage[] => [...calls, ...outputs]);
const history = fc
  .array(fc.oneof({ weight: 4, arbitrary: message.map((one) => [one]) }, { weight: 1, arbitrary: batch }), {
    maxLength: 16,
  })
  .map((groups) => groups.flat());
const model = fc.constantFrom(...MODELS);

const bodyOf = (messages: readonly CompleteMessage[], modelId: string): string =>
  encodeGemini(
    llmRequest({ messages, tools: [{ name: "read file", description: "R" }], thinkingLevel: "high" }),
    modelSpec({ provider: "google", modelId, protocol: "gemini" }),
  ).body;

const partsOf = (body: string): [string, Json][] =>
  (JSON.parse(body).contents as Content[]).flatMap(({ role, parts }) =>
    parts.map((part): [string, Json] => [role, part]),
  );

/** What this model signed, in order. */
function signedBy(messages: readonly CompleteMessage[], modelId: string): string[] {
  return messages.flatMap(({ payload }) => {
    const kept = (payload as { fidelity?: Fidelity }).fidelity;
    return kept?.from === nameOf(modelId) && typeof kept.thought_signature === "string" ? [kept.thought_signature] : [];
  });
}

describe("any history", () => {
  test("F1 F4 F9: is sent as the protocol takes it, cut by a compaction at any place", () => {
    fc.assert(
      fc.property(history, model, (messages, modelId) => {
        const expected = {
          wantsSignatures: modelId.startsWith("gemini-3"),
          ownSignatures: new Set(signedBy(messages, modelId)),
        };
        for (let cut = 0; cut <= messages.length; cut++) {
          expect(violations(bodyOf(messages.slice(cut), modelId), expected)).toEqual([]);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("F5 F8: brings back every signature of this model's once, in order, with what it signed", () => {
    fc.assert(
      fc.property(history, model, (messages, modelId) => {
        const parts = partsOf(bodyOf(messages, modelId)).map(([, part]) => part);
        const own = signedBy(messages, modelId);
        const sent = parts.filter((part) => own.includes(part.thoughtSignature as string));
        expect(sent.map((part) => part.thoughtSignature)).toEqual(own);
        for (const { payload } of messages) {
          const kept = (payload as { fidelity?: Fidelity }).fidelity;
          const part = sent.find(({ thoughtSignature }) => thoughtSignature === kept?.thought_signature);
          if (part === undefined || kept === undefined) continue;
          const { thoughtSignature: _, ...signed } = part;
          if (kept.part !== undefined) expect(signed).toEqual(kept.part);
          else if (payload.type === "thinking") expect(signed).toMatchObject({ thought: true });
          else if (payload.type === "text")
            expect(signed).toEqual({ text: payload.text.replace(/\p{Surrogate}/gu, "\ufffd") });
          else if (payload.type === "tool_call") expect(Object.keys(signed)).toEqual(["functionCall"]);
          else expect(signed).toHaveProperty("inlineData");
        }
      }),
    );
  });

  test("a longer one begins with the parts of the shorter one that was sent before", () => {
    fc.assert(
      fc.property(history, model, (messages, modelId) => {
        const whole = partsOf(bodyOf(messages, modelId));
        for (let count = 1; count < messages.length; count++) {
          // Where a Request could have gone out: behind something of the user's, before something of the model's.
          const [last, next] = [messages[count - 1], messages[count]];
          if (last?.payload.role !== "user" || next?.payload.role !== "assistant") continue;
          const part = partsOf(bodyOf(messages.slice(0, count), modelId));
          if (part.at(-1)?.[1].text === "[go on]") continue;
          // Where nothing of the user's came first, the opening words depend on what follows.
          if (part[0]?.[1].text !== whole[0]?.[1].text) continue;
          expect(whole.slice(0, part.length)).toEqual(part);
        }
      }),
    );
  });
});

describe("the written rules", () => {
  const good = { contents: [{ role: "user", parts: [{ text: "a" }] }] };
  const called = (calls: object[], answers: object[]) => [
    ...good.contents,
    { role: "model", parts: calls.map((functionCall) => ({ functionCall: { args: {}, ...functionCall } })) },
    {
      role: "user",
      parts: answers.map((functionResponse) => ({
        functionResponse: { response: { output: "" }, ...functionResponse },
      })),
    },
  ];
  const strict = { wantsSignatures: true, ownSignatures: new Set<string>() };
  const mild = { ...strict, wantsSignatures: false };

  test.each<[string, object, RegExp]>([
    ["no contents", { contents: [] }, /not specified/],
    ["two of one role", { contents: [...good.contents, ...good.contents] }, /role user, not model/],
    ["an empty text", { contents: [{ role: "user", parts: [{ text: "" }] }] }, /empty text/],
    ["a missing response", { contents: called([{ name: "f" }], []) }, /without their responses/],
    [
      "responses in another order",
      { contents: called([{ name: "f" }, { name: "g" }], [{ name: "g" }, { name: "f" }]) },
      /without/,
    ],
    [
      "a response too many",
      { contents: called([{ name: "f" }], [{ name: "f" }, { name: "f" }]) },
      /number of function responses/,
    ],
    ["a response of text", { contents: called([{ name: "f" }], [{ name: "f", response: "x" }]) }, /must be an object/],
    ["a name of spaces", { contents: called([{ name: "f f" }], [{ name: "f f" }]) }, /bad name/],
    [
      "ids that repeat",
      {
        contents: called(
          [
            { name: "f", id: "1" },
            { name: "f", id: "1" },
          ],
          [
            { name: "f", id: "1" },
            { name: "f", id: "1" },
          ],
        ),
      },
      /share an id/,
    ],
    [
      "level and budget",
      { ...good, generationConfig: { thinkingConfig: { thinkingLevel: "low", thinkingBudget: 1 } } },
      /together/,
    ],
    ["a lone surrogate", { contents: [{ role: "user", parts: [{ text: "\ud800" }] }] }, /surrogate/],
  ])("know %s", (_, body, complaint) => {
    expect(violations(JSON.stringify(body), mild).join("\n")).toMatch(complaint);
  });

  test("know a missing and a foreign signature, and take a well-formed body", () => {
    const body = JSON.stringify({ contents: called([{ name: "f" }], [{ name: "f" }]) });
    expect(violations(body, mild)).toEqual([]);
    expect(violations(body, strict)).toEqual(["Function call is missing a thought_signature"]);
    const foreign = {
      contents: [...good.contents, { role: "model", parts: [{ text: "", thoughtSignature: "x" }] }, ...good.contents],
    };
    expect(violations(JSON.stringify(foreign), mild)).toEqual(["a foreign signature x"]);
  });
});
