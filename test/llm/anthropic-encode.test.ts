import { describe, expect, test } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import { encodeAnthropic } from "../../src/llm/wire/anthropic-messages-encode.js";
import { assistantText, imageUrl, inlineData, toolCall, userText } from "../../src/protocol/builders.js";
import {
  bodyOf,
  call,
  encode,
  GO,
  go,
  type Json,
  output,
  PNG,
  PNG_BLOCK,
  result,
  signed,
  spec,
  text,
  use,
} from "./anthropic-support.js";
import { AT, llmRequest } from "./support.js";

describe("the request", () => {
  const headers = (model: Partial<ModelSpec>) => encodeAnthropic(llmRequest(), spec(model)).headers;
  const url = (baseUrl: string) => encodeAnthropic(llmRequest(), spec({ baseUrl })).url;

  test("goes to the messages of the base URL, whether or not that has the version in it, and keeps its query", () => {
    expect(url("https://api.anthropic.com")).toBe("https://api.anthropic.com/v1/messages");
    expect(url("https://api.anthropic.com/v1/")).toBe("https://api.anthropic.com/v1/messages");
    expect(url("https://h/anthropic?a=1")).toBe("https://h/anthropic/v1/messages?a=1");
  });

  test("names its version, and carries the key as a bearer too for everyone but Anthropic", () => {
    const own = headers({ baseUrl: "https://api.anthropic.com", apiKey: "sk-1" });
    expect(own).toMatchObject({ "anthropic-version": "2023-06-01", "x-api-key": "sk-1" });
    expect(own.authorization).toBeUndefined();
    expect(headers({ baseUrl: "https://anthropic.com.evil.example", apiKey: "sk-1" })).toMatchObject({
      "x-api-key": "sk-1",
      authorization: "Bearer sk-1",
    });
    expect(headers({})).not.toHaveProperty("x-api-key");
    expect(headers({})).not.toHaveProperty("authorization");
  });

  test("always has an output limit: the configured one, or the family's", () => {
    const limit = (modelId: string, maxOutputTokens?: number) =>
      bodyOf([go], maxOutputTokens === undefined ? { modelId } : { modelId, maxOutputTokens }).max_tokens;
    expect(limit("claude-sonnet-4-5", 9)).toBe(9);
    expect(limit("claude-3-opus-20240229")).toBe(4096);
    expect(limit("claude-3-5-haiku-latest")).toBe(8192);
    expect(limit("claude-opus-4-20250514")).toBe(32_000);
    expect(limit("claude-opus-4-8")).toBe(64_000);
    expect(limit("kimi-k2")).toBe(8192);
  });

  test("holds system blocks, tools with an object's schema, and no field that nobody asked for", () => {
    const parameters = { type: "object", properties: { x: {} }, anyOf: [{ required: ["x"] }] };
    const tools = [
      { name: "a", description: "A", parameters },
      { name: "b", description: "B" },
    ];
    const mark = { cache_control: { type: "ephemeral" } };
    expect(bodyOf([go], {}, { tools })).toEqual({
      model: "claude-sonnet-4-5",
      max_tokens: 64_000,
      stream: true,
      system: [{ ...text("be brief"), ...mark }],
      tools: [
        { name: "a", description: "A", input_schema: { type: "object", properties: { x: {} } } },
        { name: "b", description: "B", input_schema: { type: "object", properties: {} }, ...mark },
      ],
      tool_choice: { type: "auto" },
      messages: [{ role: "user", content: [{ ...text("go"), ...mark }] }],
    });
    expect(bodyOf([go], {}, { systemPrompt: " " })).not.toHaveProperty("system");
  });
});

describe("thinking", () => {
  const asked = (modelId: string, thinkingLevel: LLMRequest["thinkingLevel"], more: Partial<ModelSpec> = {}) => {
    const sent = encodeAnthropic(llmRequest({ thinkingLevel }), spec({ modelId, ...more }));
    const { thinking: how, output_config: config } = JSON.parse(sent.body) as Json;
    return { how, effort: (config as Json | undefined)?.effort, beta: sent.headers["anthropic-beta"] };
  };
  const BETA = "interleaved-thinking-2025-05-14";
  const off = { type: "disabled" };
  const adaptive = { type: "adaptive" };
  const shown = { type: "adaptive", display: "summarized" };
  const budget = (budget_tokens: number) => ({ type: "enabled", budget_tokens });

  test.each<[string, LLMRequest["thinkingLevel"], unknown, string | undefined, string | undefined]>([
    ["claude-3-5-sonnet-20241022", "high", undefined, undefined, undefined],
    ["claude-3-7-sonnet-20250219", "high", budget(16_384), undefined, undefined],
    ["claude-sonnet-4-20250514", "low", budget(2048), undefined, BETA],
    ["claude-opus-4-1-20250805", "max", budget(27_904), undefined, BETA],
    ["us.anthropic.claude-haiku-4-5-20251001-v1:0", "xhigh", budget(32_768), undefined, BETA],
    ["anthropic/claude-sonnet-4.5", "none", off, undefined, undefined],
    ["claude-opus-4-6", "xhigh", adaptive, "high", undefined],
    ["claude-sonnet-4-6", "none", off, undefined, undefined],
    ["claude-opus-4-7", "xhigh", shown, "xhigh", undefined],
    ["claude-opus-4-7", "none", undefined, undefined, undefined],
    ["claude-opus-5", "max", shown, "max", undefined],
    ["claude-sonnet-5", "none", off, undefined, undefined],
    ["claude-fable-5", "none", undefined, "low", undefined],
    ["claude-mythos-preview", "medium", shown, "medium", undefined],
    ["glm-4.6", "high", budget(6144), undefined, undefined],
    ["glm-4.6", "none", off, undefined, undefined],
  ])("%s at %s", (modelId, level, how, effort, beta) => {
    expect(asked(modelId, level)).toEqual({ how, effort, beta });
    const nothing = { how: undefined, effort: undefined, beta: undefined };
    expect(asked(modelId, "default")).toEqual(nothing);
    expect(asked(modelId, level, { thinking: false })).toEqual(nothing);
  });

  test.each([
    [1024, undefined, undefined, undefined],
    [1025, budget(1024), budget(1024), budget(1024)],
    [2000, budget(1024), budget(1024), budget(1500)],
    [4096, budget(1024), budget(2048), budget(3072)],
    [8000, budget(2048), budget(4000), budget(6000)],
    [20_000, budget(2048), budget(8192), budget(15_904)],
  ])(
    "a budget leaves room for the answer below a limit of %i tokens, and is asked for where any fits",
    (limit, ...how) => {
      const levels = ["low", "medium", "high"] as const;
      const model = { maxOutputTokens: limit };
      expect(levels.map((level) => asked("claude-sonnet-4-5", level, model).how)).toEqual(how);
    },
  );

  test("outputs for an answer without thinking are sent without asking for any", () => {
    const loop = [go, call("a"), output("a")];
    const level = { thinkingLevel: "high" } as const;
    expect(bodyOf(loop, {}, level)).not.toHaveProperty("thinking");
    expect(bodyOf([go, signed("hm", "U2ln"), call("a"), output("a")], {}, level)).toHaveProperty("thinking");
    expect(bodyOf([...loop, assistantText(AT, "done"), go], {}, level)).toHaveProperty("thinking");
    expect(bodyOf(loop, { modelId: "claude-opus-4-7" }, level)).toHaveProperty("thinking");
  });

  test("with thinking turned off, past thinking stays at home", () => {
    const body = bodyOf([go, signed("hm", "U2ln"), assistantText(AT, "ok"), go], {}, { thinkingLevel: "none" });
    expect(body.messages[1]?.content).toEqual([text("ok")]);
  });
});

describe("messages", () => {
  test("an answer's blocks keep their order; results come at once and first, in call order, then what the user said", () => {
    expect(
      encode([
        go,
        assistantText(AT, "on it"),
        call("a", '{"x":1}'),
        call("b", ""),
        output("b", "2"),
        output("a", "1"),
        go,
      ]),
    ).toEqual([
      GO,
      { role: "assistant", content: [text("on it"), use("a", { x: 1 }), use("b")] },
      { role: "user", content: [result("a", "1"), result("b", "2"), text("go")] },
    ]);
  });

  test("F1: a call without an output is answered, and one that was cut off unanswered is not sent", () => {
    const cut = toolCall(AT, { name: "f", arguments: '{"x', tool_call_id: "c", stop_reason: "aborted" });
    const [, said, back] = encode([go, call("a"), call("b"), cut, output("b")]);
    expect(said?.content).toEqual([use("a"), use("b")]);
    expect(back?.content).toMatchObject([{ tool_use_id: "a", is_error: true }, result("b")]);
  });

  test("a failed output is an error; its images follow the results, others stay inside", () => {
    const images = [PNG];
    const [, , back] = encode([
      ...[go, call("a"), call("b"), call("c")],
      ...[output("a", "no", { images, stop_reason: "failed" }), output("b", " "), output("c", "", { images })],
      go,
    ]);
    expect(back?.content).toEqual([
      { ...result("a", "no"), is_error: true },
      result("b", "[no output]"),
      result("c", [PNG_BLOCK]),
      text("[images from f]"),
      PNG_BLOCK,
      text("go"),
    ]);
  });

  test("images go by data or by URL, a PDF as a document, a text file as text; what is refused is named", () => {
    const file = (mime_type: string, data: string) =>
      inlineData(AT, { role: "user", data, mime_type, file_name: "f.x" });
    const [only, ...rest] = encode([
      userText(AT, "see"),
      ...[PNG, "https://x/y.png", "data:image/svg+xml,%3Csvg/%3E", "ftp://x"].map((url) => imageUrl(AT, url)),
      file("image/jpeg", "QUFB"),
      file("application/pdf", "JVBE"),
      file("text/csv", Buffer.from("a,b").toString("base64")),
      file("application/zip", "AP8="),
    ]);
    expect(rest).toEqual([]);
    expect(only?.content).toEqual([
      text("see"),
      PNG_BLOCK,
      { type: "image", source: { type: "url", url: "https://x/y.png" } },
      text("[an image left out: this model takes no image/svg+xml]"),
      text("[an image left out: it cannot be read]"),
      { type: "image", source: { type: "base64", media_type: "image/jpeg", data: "QUFB" } },
      { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBE" }, title: "f.x" },
      text("[file f.x]\na,b\n[end of f.x]"),
      text("[f.x (application/zip) left out: this model cannot read it]"),
    ]);
  });

  test("a model without vision is told of the images instead", () => {
    const sent = encode([imageUrl(AT, PNG), call("a"), output("a", "x", { images: [PNG] })], { vision: false });
    expect(JSON.stringify(sent)).not.toContain("AAAA");
    expect(JSON.stringify(sent).match(/image left out/g)).toHaveLength(2);
  });

  test("empty texts go, and their neighbours of one role become one message", () => {
    expect(encode([go, userText(AT, " \n"), assistantText(AT, ""), go])).toEqual([
      { role: "user", content: [text("go"), text("go")] },
    ]);
    expect(encode([go, assistantText(AT, "a"), userText(AT, ""), call("x"), output("x")])[1]).toEqual({
      role: "assistant",
      content: [text("a"), use("x")],
    });
  });

  test("a context that begins or ends with the assistant, or holds nothing, is framed by the user", () => {
    expect(encode([assistantText(AT, "a")]).map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(encode([])).toMatchObject([{ role: "user" }]);
  });

  test("arguments that are not an object are sent as one that holds them", () => {
    expect(encode([go, call("a", "[1"), output("a")])[1]?.content).toEqual([use("a", { unparsed_arguments: "[1" })]);
  });

  test("a lone surrogate anywhere is replaced, a pair is not", () => {
    const sent = encode([
      userText(AT, "a\ud83d b🙂 \\ud83d"),
      call("a", '{"\\udc00":"\\ud800"}'),
      output("a", "\udfff"),
    ]);
    expect(sent[0]?.content).toEqual([text("a\ufffd b🙂 \\ud83d")]);
    expect(sent[1]?.content).toEqual([use("a", { "\ufffd": "\ufffd" })]);
    expect(sent[2]?.content).toEqual([result("a", "\ufffd")]);
  });
});
