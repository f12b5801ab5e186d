import { describe, expect, test } from "vitest";
import { THINKING_LEVELS } from "../../src/engine/ports.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import { encodeGemini } from "../../src/llm/wire/gemini-encode.js";
import {
  assistantText,
  inlineData,
  thinking,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { StopReason } from "../../src/protocol/payloads.js";
import { contentsOf, type Json } from "./gemini-support.js";
import { AT, fromOf, llmRequest, modelSpec } from "./support.js";

const FROM = fromOf("gemini");

const OURS = { protocol: "gemini", baseUrl: "https://g.test" } as const;
const bodyOf = (request: Parameters<typeof llmRequest>[0] = {}, model: Partial<ModelSpec> = {}): Json =>
  JSON.parse(encodeGemini(llmRequest(request), modelSpec({ ...OURS, ...model })).body) as Json;
const call = (id: string, fidelity?: Json, args = "{}", name = "f") =>
  toolCall(AT, { name, arguments: args, tool_call_id: id, ...(fidelity === undefined ? {} : { fidelity }) });
const output = (id: string, text = "out", more: { images?: string[]; stop_reason?: StopReason } = {}) =>
  toolCallOutput(AT, { output: text, tool_call_id: id, ...more });
const PNG = "data:image/png;base64,AAAA";
const INLINE = { inlineData: { mimeType: "image/png", data: "AAAA" } };

describe("the request", () => {
  const to = (model: Partial<ModelSpec>) => encodeGemini(llmRequest(), modelSpec({ ...OURS, apiKey: "k-1", ...model }));

  test.each<[string, string, string]>([
    ["https://g.test", "gemini-2.5-pro", "https://g.test/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"],
    ["https://g.test/v1beta/", "models/m", "https://g.test/v1beta/models/m:streamGenerateContent?alt=sse"],
    [
      "https://g.test/proxy?a=b",
      "tunedModels/t 1",
      "https://g.test/proxy/v1beta/tunedModels/t%201:streamGenerateContent?a=b&alt=sse",
    ],
    [
      "https://v.test/v1/projects/p/locations/l/publishers/google",
      "m",
      "https://v.test/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent?alt=sse",
    ],
    [
      "https://v.test/v1beta1/publishers/google",
      "m",
      "https://v.test/v1beta1/publishers/google/models/m:streamGenerateContent?alt=sse",
    ],
  ])("for %s and %s goes to %s", (baseUrl, modelId, url) => {
    expect(to({ baseUrl, modelId }).url).toBe(url);
  });

  test("carries the key in one header, which for a Vertex project is a bearer token's", () => {
    expect(to({}).headers).toMatchObject({ "x-goog-api-key": "k-1" });
    expect(to({}).headers.authorization).toBeUndefined();
    const vertex = to({ baseUrl: "https://v.test/v1/projects/p/locations/l/publishers/google" }).headers;
    expect(vertex).toMatchObject({ authorization: "Bearer k-1" });
    expect(vertex["x-goog-api-key"]).toBeUndefined();
    const { headers, body, url } = encodeGemini(llmRequest(), modelSpec(OURS));
    expect(JSON.stringify([headers, body, url])).not.toMatch(/k-1|undefined/);
  });

  test("holds the system prompt apart, the limit, and the contents last", () => {
    const body = bodyOf({}, { thinking: false, maxOutputTokens: 99 });
    expect(body).toEqual({
      systemInstruction: { parts: [{ text: "be brief" }] },
      generationConfig: { maxOutputTokens: 99 },
      contents: [{ role: "user", parts: [{ text: "hello" }] }],
    });
    expect(Object.keys(body).at(-1)).toBe("contents");
    expect(bodyOf({ systemPrompt: " " }, { thinking: false })).toEqual({ contents: body.contents });
  });

  test("declares tools by names of its alphabet; one that takes nothing has no schema", () => {
    const parameters = { type: "object", properties: { a: { type: "string" } } };
    const tools = [
      { name: "a.b:c-d", description: "A", parameters },
      { name: "9 lives", description: "B" },
      { name: "x".repeat(80), description: "C", parameters: { type: "object", properties: {} } },
    ];
    const body = bodyOf({ tools, messages: [userText(AT, "go"), call("1", undefined, "{}", "9 lives"), output("1")] });
    const [{ functionDeclarations: declared }] = body.tools as [{ functionDeclarations: Json[] }];
    expect(declared[0]).toEqual({ name: "a.b:c-d", description: "A", parametersJsonSchema: parameters });
    expect(declared[1]).toEqual({ name: expect.stringMatching(/^_9_lives_[0-9a-f]{8}$/), description: "B" });
    expect(declared[2]).toEqual({ name: expect.stringMatching(/^x{55}_[0-9a-f]{8}$/), description: "C" });
    expect(body.toolConfig).toEqual({ functionCallingConfig: { mode: "AUTO" } });
    const sent = JSON.stringify(body.contents);
    expect(sent.match(new RegExp(`"name":"${String(declared[1]?.name)}"`, "g"))).toHaveLength(2);
    expect(sent).not.toContain("9 lives");
  });
});

describe("thinking", () => {
  const config = (modelId: string, thinkingLevel: (typeof THINKING_LEVELS)[number]) =>
    (bodyOf({ thinkingLevel }, { modelId }).generationConfig as { thinkingConfig?: Json } | undefined)?.thinkingConfig;

  test.each<[string, (string | number)[]]>([
    ["gemini-3-pro-preview", ["low", "low", "high", "high", "high", "high"]],
    ["gemini-3.1-pro-preview", ["low", "low", "medium", "high", "high", "high"]],
    ["gemini-3-flash-preview", ["minimal", "low", "medium", "high", "high", "high"]],
    ["gemini-3.7-flash", ["low", "low", "medium", "high", "high", "high"]],
    ["gemini-2.5-pro", [128, 2048, 8192, 24576, 32768, 32768]],
    ["gemini-2.5-flash", [0, 2048, 8192, 24576, 24576, 24576]],
    ["gemini-flash-latest", [0, 2048, 8192, 24576, 24576, 24576]],
  ])("of %s is asked for by its family's means, never by two", (modelId, values) => {
    const key = typeof values[0] === "string" ? "thinkingLevel" : "thinkingBudget";
    THINKING_LEVELS.slice(1).forEach((level, n) => {
      const shown = level === "none" ? {} : { includeThoughts: true };
      expect(config(modelId, level)).toEqual({ ...shown, [key]: values[n] });
    });
    expect(config(modelId, "default")).toEqual({ includeThoughts: true });
  });

  test.each([
    ["gemini-2.5-flash", 2000, [0, 500, 1000, 1500, 1500, 1500]],
    ["gemini-2.5-flash", 8192, [0, 2048, 4096, 6144, 6144, 6144]],
    ["gemini-2.5-flash", 65_536, [0, 2048, 8192, 24_576, 24_576, 24_576]],
    ["gemini-2.5-pro", 400, [128, 128, 200, 300, 300, 300]],
    ["gemini-2.5-flash-lite", 1000, [0, 512, 512, 750, 750, 750]],
    ["gemini-2.5-flash-lite", 512, [0, 0, 0, 0, 0, 0]],
  ])("of %s leaves room for the answer below a limit of %i tokens", (modelId, maxOutputTokens, budgets) => {
    THINKING_LEVELS.slice(1).forEach((thinkingLevel, n) => {
      const { generationConfig } = bodyOf({ thinkingLevel }, { modelId, maxOutputTokens });
      const thinkingBudget = budgets[n] as number;
      const thinkingConfig = thinkingBudget === 0 || thinkingLevel === "none" ? {} : { includeThoughts: true };
      expect(generationConfig).toEqual({ maxOutputTokens, thinkingConfig: { ...thinkingConfig, thinkingBudget } });
    });
  });

  test("is not spoken of to older models, or to those that have none", () => {
    expect(config("gemini-2.0-flash", "high")).toBeUndefined();
    expect(bodyOf({ thinkingLevel: "high" }, { modelId: "gemini-2.5-pro", thinking: false })).not.toHaveProperty(
      "generationConfig",
    );
  });
});

describe("contents", () => {
  test("responses stand right behind their calls, in call order, before images and the user's words", () => {
    const sent = contentsOf([
      userText(AT, "go"),
      assistantText(AT, "I look."),
      call("a", undefined, '{"x":1}'),
      call("b", undefined, " ", "g"),
      output("b", "no", { stop_reason: "failed", images: [PNG] }),
      output("a", "yes"),
      output("nobody"),
      userText(AT, "and?"),
    ]);
    expect(sent).toEqual([
      { role: "user", parts: [{ text: "go" }] },
      {
        role: "model",
        parts: [
          { text: "I look." },
          { functionCall: { name: "f", args: { x: 1 } } },
          { functionCall: { name: "g", args: {} } },
        ],
      },
      {
        role: "user",
        parts: [
          { functionResponse: { name: "f", response: { output: "yes" } } },
          { functionResponse: { name: "g", response: { error: "no" } } },
          { text: "[image from g]" },
          INLINE,
          { text: "and?" },
        ],
      },
    ]);
  });

  test("F1: a call without an output gets a response all the same, one that was cut off is left out with it", () => {
    const cut = toolCall(AT, { name: "f", arguments: '{"x', tool_call_id: "c", stop_reason: "aborted" });
    const [, said, back] = contentsOf([userText(AT, "go"), call("a"), cut]);
    expect(said?.parts).toHaveLength(1);
    expect(back?.parts).toEqual([{ functionResponse: { name: "f", response: { error: expect.any(String) } } }]);
  });

  test("roles take turns, the user first and last, and nothing is sent empty", () => {
    expect(contentsOf([]).map(({ role }) => role)).toEqual(["user"]);
    expect(contentsOf([userText(AT, ""), userText(AT, " \n")]).map(({ role }) => role)).toEqual(["user"]);
    const sent = contentsOf([assistantText(AT, "a"), userText(AT, " "), assistantText(AT, ""), assistantText(AT, "b")]);
    expect(sent.map(({ role }) => role)).toEqual(["user", "model", "user"]);
    expect(sent[1]?.parts).toEqual([{ text: "a" }, { text: "b" }]);
    expect(contentsOf([userText(AT, "a"), thinking(AT, "hm"), userText(AT, "b")])).toEqual([
      { role: "user", parts: [{ text: "a" }, { text: "b" }] },
    ]);
  });

  test("half a character never goes out, in a text or in a key of arguments", () => {
    const { body } = encodeGemini(
      llmRequest({
        messages: [
          userText(AT, "a\ud83d"),
          call("a", undefined, '{"\\udc00":"\\ud83d\\ude42"}'),
          output("a", "\ude42"),
        ],
      }),
      modelSpec(OURS),
    );
    expect(body).not.toMatch(/\\ud/);
    expect(body).toContain('"a\ufffd"');
    expect(body).toContain('{"\ufffd":"🙂"}');
  });

  test("arguments that are not an object are sent as one that holds them", () => {
    expect(contentsOf([userText(AT, "go"), call("a", undefined, "[1]"), output("a")])[1]?.parts).toEqual([
      { functionCall: { name: "f", args: { unparsed_arguments: "[1]" } } },
    ]);
  });
});

describe("what goes back verbatim", () => {
  const step = (fidelity: Json | undefined, ids = ["a", "b"], model: Partial<ModelSpec> = {}) =>
    contentsOf(
      [
        userText(AT, "go"),
        ...ids.map((id, n) => call(id, n === 0 ? fidelity : { from: FROM })),
        ...ids.map((id) => output(id)),
      ],
      model,
    );
  const signatures = (parts: Json[] | undefined) => parts?.map(({ thoughtSignature }) => thoughtSignature);
  const THREE = { provider: "google", modelId: "gemini-3-pro-preview" };

  test("F8: a call's signature goes back in its part, and the unsigned one beside it stays unsigned", () => {
    expect(signatures(step({ thought_signature: "S+/=", from: FROM })[1]?.parts)).toEqual(["S+/=", undefined]);
  });

  test("F9: what another model signed or hid is dropped, its media is shown as the assistant's", () => {
    const from = "other/model";
    const sent = contentsOf([
      userText(AT, "go"),
      thinking(AT, "hm", { fidelity: { thought_signature: "T", from } }),
      thinking(AT, "", { fidelity: { part: { executableCode: {} }, from } }),
      thinking(AT, "so", { fidelity: { signature: "EqQB" } }),
      assistantText(AT, "a", { fidelity: { thought_signature: "S", from } }),
      inlineData(AT, {
        role: "assistant",
        mime_type: "image/png",
        data: "AAAA",
        fidelity: { thought_signature: "M", from },
      }),
    ]);
    expect(sent.slice(1)).toEqual([
      { role: "model", parts: [{ text: "a" }] },
      { role: "user", parts: [{ text: "[from the assistant]" }, INLINE] },
    ]);
  });

  test("a step that another model made is signed by the documented stand-in, once, and for Gemini 3 only", () => {
    const foreign = { thought_signature: "S", provider_call_id: "x", from: "other/model" };
    const stand = "skip_thought_signature_validator";
    expect(signatures(step(foreign, ["a", "b"], THREE)[1]?.parts)).toEqual([stand, undefined]);
    expect(signatures(step(foreign, ["a", "b"], { ...THREE, modelId: "gemini-pro-latest" })[1]?.parts)).toEqual([
      stand,
      undefined,
    ]);
    expect(signatures(step(foreign, ["a", "b"], { ...THREE, modelId: "gemini-2.5-pro" })[1]?.parts)).toEqual([
      undefined,
      undefined,
    ]);
    const own = { thought_signature: "S", from: "google/gemini-3-pro-preview" };
    expect(signatures(step(own, ["a", "b"], THREE)[1]?.parts)).toEqual(["S", undefined]);
  });

  test("ids go back to the model that gave them, on call and response alike, and to no other", () => {
    const idsOf = (fidelity: Json | undefined) =>
      step(fidelity, ["a"])
        .flatMap(({ parts }) => parts.map((part) => (part.functionCall ?? part.functionResponse) as Json | undefined))
        .flatMap((named) => (named === undefined ? [] : [named.id]));
    expect(idsOf({ from: FROM })).toEqual(["a", "a"]);
    expect(idsOf({ provider_call_id: "its own", from: FROM })).toEqual(["its own", "its own"]);
    expect(idsOf({ provider_call_id: null, from: FROM })).toEqual([undefined, undefined]);
    expect(idsOf({ provider_call_id: "its own", from: "other/model" })).toEqual([undefined, undefined]);
    expect(idsOf(undefined)).toEqual([undefined, undefined]);
  });

  test("an id that is repeated within a batch gives way to ours", () => {
    const own = { provider_call_id: "0", from: FROM };
    const sent = contentsOf([userText(AT, "go"), call("a", own), call("b", own), output("a"), output("b")]);
    const ids = sent
      .slice(1)
      .map(({ parts }) => parts.map((part) => ((part.functionCall ?? part.functionResponse) as Json).id));
    expect(ids).toEqual([
      ["a", "b"],
      ["a", "b"],
    ]);
  });
});
