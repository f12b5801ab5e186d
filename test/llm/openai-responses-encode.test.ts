import { describe, expect, test } from "vitest";
import type { LLMRequest, ThinkingLevel } from "../../src/engine/ports.js";
import { type ModelSpec, originMark } from "../../src/llm/model-spec.js";
import { encodeResponses } from "../../src/llm/wire/openai-responses-encode.js";
import {
  assistantText,
  imageUrl,
  inlineData,
  thinking,
  toolCall,
  toolCallOutput,
  userText,
} from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import { expectRules, type Item } from "./openai-responses-rules.js";
import { spec } from "./openai-responses-support.js";
import { AT, fromOf, llmRequest } from "./support.js";

function bodyOf(messages: CompleteMessage[], model: Partial<ModelSpec> = {}, request: Partial<LLMRequest> = {}): Item {
  return JSON.parse(encodeResponses(llmRequest({ messages, ...request }), spec(model)).body) as Item;
}

function encode(messages: CompleteMessage[], model: Partial<ModelSpec> = {}): Item[] {
  const input = bodyOf(messages, model).input as Item[];
  expectRules(input);
  return input;
}

const from = fromOf("openai-responses");
const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const said = (text: string, more: object = {}) => ({
  ...{ type: "message", role: "assistant", content: [{ type: "output_text", text, annotations: [] }] },
  ...more,
});
const call = (id: string, args = "{}", fidelity?: Item) =>
  toolCall(AT, { name: "f", arguments: args, tool_call_id: id, ...(fidelity === undefined ? {} : { fidelity }) });
const output = (id: string, text = "out", images?: string[]) =>
  toolCallOutput(AT, { output: text, tool_call_id: id, ...(images === undefined ? {} : { images }) });
const hidden = (n: number, more: object = {}) =>
  thinking(AT, "", { fidelity: { id: `rs_${n}`, encrypted_content: `e${n}`, summary: [], from, ...more } });
const sent = (n: number) => ({ type: "reasoning", id: `rs_${n}`, encrypted_content: `e${n}`, summary: [] });
const file = (mime_type: string, data: string | Buffer) =>
  inlineData(AT, { role: "user", data: Buffer.from(data).toString("base64"), mime_type, file_name: "it" });
const PNG = "data:image/png;base64,AAAA";
const IMAGE = { type: "input_image", image_url: PNG, detail: "auto" };

describe("the request", () => {
  test("goes to the path behind the base URL, keeps its query, and carries the key in one header only", () => {
    const send = (model: Partial<ModelSpec>) => encodeResponses(llmRequest(), spec({ apiKey: "sk-1", ...model }));
    const plain = send({ baseUrl: "http://h:1/v1/" });
    expect(plain.url).toBe("http://h:1/v1/responses");
    expect(plain.headers.authorization).toBe("Bearer sk-1");
    const azure = send({ baseUrl: "https://x.openai.azure.com/openai/v1?api-version=1" });
    expect(azure.url).toBe("https://x.openai.azure.com/openai/v1/responses?api-version=1");
    expect(azure.headers).toMatchObject({ "api-key": "sk-1" });
    expect(azure.headers.authorization).toBeUndefined();
    expect(encodeResponses(llmRequest(), spec()).headers.authorization).toBeUndefined();
  });

  test("stores nothing, asks a reasoning model for what must come back, and sends no reasoning by default", () => {
    const plain = {
      ...{ model: "one", stream: true, store: false, stream_options: { include_obfuscation: false } },
      ...{ prompt_cache_key: "session-1", instructions: "be brief", input: [user("hello")] },
    };
    expect(bodyOf([userText(AT, "hello")])).toEqual({ ...plain, include: ["reasoning.encrypted_content"] });
    expect(bodyOf([userText(AT, "hello")], { thinking: false })).toEqual(plain);
    expect(bodyOf([], {}, { systemPrompt: " " }).instructions).toBeUndefined();
    expect(bodyOf([], { maxOutputTokens: 9 })).toMatchObject({ max_output_tokens: 9 });
  });

  test("describes tools flat and not strict, under names that the protocol takes", () => {
    const tools = [
      { name: "a", description: "A", parameters: { type: "object" } },
      { name: "b.c", description: "B" },
    ];
    const [a, b] = bodyOf([], {}, { tools }).tools as [Item, Item];
    expect(a).toEqual({ type: "function", name: "a", description: "A", parameters: { type: "object" }, strict: false });
    expect(b).toMatchObject({ parameters: { type: "object", properties: {} }, strict: false });
    const history = [toolCall(AT, { name: "b.c", arguments: "{}", tool_call_id: "1" }), output("1")];
    expect(encode(history)[0]?.name).toBe(b.name);
  });

  test.each<[Partial<ModelSpec>, string[], string[]]>([
    [{ provider: "openai" }, ["prompt_cache_key", "stream_options", "include"], []],
    [{ provider: "azure" }, ["prompt_cache_key", "stream_options", "include"], []],
    [{ baseUrl: "https://api.x.ai/v1" }, ["include"], ["prompt_cache_key", "stream_options"]],
    [{ baseUrl: "https://openrouter.ai/api/v1" }, ["include"], ["prompt_cache_key", "stream_options"]],
    [{ provider: "lmstudio" }, [], ["prompt_cache_key", "stream_options", "include"]],
    [{ provider: "deepseek" }, [], ["prompt_cache_key", "stream_options", "include"]],
  ])("%j is sent the fields %j and not %j", (model, present, absent) => {
    const fields = Object.keys(bodyOf([], model));
    expect(fields).toEqual(expect.arrayContaining(present));
    expect(fields.filter((field) => absent.includes(field))).toEqual([]);
  });
});

describe("thinking", () => {
  const levels: ThinkingLevel[] = ["none", "low", "medium", "high", "xhigh", "max"];
  const effort = (modelId: string, level: ThinkingLevel, model: Partial<ModelSpec> = {}) =>
    (bodyOf([], { modelId, ...model }, { thinkingLevel: level }).reasoning as Item | undefined)?.effort;

  test.each([
    ["gpt-5.2", "none low medium high xhigh xhigh"],
    ["openai.gpt-5.6-luna", "none low medium high xhigh xhigh"],
    ["gpt-5.1-2025-11-13", "none low medium high high high"],
    ["gpt-5", "minimal low medium high high high"],
    ["openai/gpt-5-mini", "minimal low medium high high high"],
    ["gpt-5-2025-08-07", "minimal low medium high high high"],
    ["gpt-5-codex", "low low medium high high high"],
    ["gpt-5.1-codex-max", "low low medium high xhigh xhigh"],
    ["gpt-5.3-codex", "low low medium high xhigh xhigh"],
    ["gpt-5-pro", "high high high high high high"],
    ["gpt-5.2-pro", "medium medium medium high xhigh xhigh"],
    ["o4-mini-2025-04-16", "low low medium high high high"],
    ["openai/gpt-oss-20b", "low low medium high high high"],
    ["somebody-elses", "none low medium high xhigh xhigh"],
  ])("%s is asked for the nearest effort that it takes: %s", (modelId, words) => {
    expect(levels.map((level) => effort(modelId, level)).join(" ")).toBe(words);
  });

  test("a summary is asked for with the effort, not where there is nothing to retell", () => {
    const reasoning = (model: Partial<ModelSpec>, thinkingLevel: ThinkingLevel) =>
      bodyOf([], model, { thinkingLevel }).reasoning;
    expect(reasoning({}, "high")).toEqual({ effort: "high", summary: "auto" });
    expect(reasoning({}, "none")).toEqual({ effort: "none" });
    expect(reasoning({ provider: "vllm" }, "xhigh")).toEqual({ effort: "high" });
    expect(reasoning({}, "default")).toBeUndefined();
    expect(reasoning({ thinking: false }, "high")).toBeUndefined();
  });
});

describe("input", () => {
  test("an answer's items stand in their order, its outputs behind them in call order", () => {
    expect(
      encode([
        userText(AT, "go"),
        ...[hidden(1), assistantText(AT, "on it", { fidelity: { phase: "commentary", from } })],
        ...[hidden(2), call("a"), call("b", ""), output("b", "2"), output("a", "1")],
        userText(AT, "and?"),
      ]),
    ).toEqual([
      user("go"),
      ...[sent(1), said("on it", { phase: "commentary" }), sent(2)],
      { type: "function_call", call_id: "a", name: "f", arguments: "{}" },
      { type: "function_call", call_id: "b", name: "f", arguments: "{}" },
      { type: "function_call_output", call_id: "a", output: "1" },
      { type: "function_call_output", call_id: "b", output: "2" },
      user("and?"),
    ]);
  });

  test("images of tool results stay in the output; a model without vision is told of them", () => {
    const history = [call("a"), call("b"), output("a", "x", [PNG]), output("b", "", [PNG, PNG])];
    expect(encode(history).map(({ output }) => output)).toEqual([
      ...[undefined, undefined],
      [{ type: "input_text", text: "x" }, IMAGE],
      [IMAGE, IMAGE],
    ]);
    expect(JSON.stringify(encode(history, { vision: false }))).not.toContain("AAAA");
  });

  test("an image and files are parts of one message with the text beside them, each as the protocol takes it", () => {
    const [csv, bytes] = [file("text/csv", "a,b"), file("application/zip", Buffer.from([0x50, 0x4b, 0, 0xff]))];
    const pdf = file("application/pdf", Buffer.from([0x25, 0xff]));
    const all = [userText(AT, "see"), imageUrl(AT, "https://x/y.png"), csv, pdf, file("image/png", "abc"), bytes];
    const parts = [
      { type: "input_text", text: "see" },
      { type: "input_image", image_url: "https://x/y.png", detail: "auto" },
      { type: "input_text", text: "[file it]\na,b\n[end of it]" },
      { type: "input_file", filename: "it", file_data: "data:application/pdf;base64,Jf8=" },
      { type: "input_image", image_url: "data:image/png;base64,YWJj", detail: "auto" },
      { type: "input_text", text: "[it (application/zip) left out: this model does not read such files]" },
    ];
    expect(encode(all)).toEqual([{ type: "message", role: "user", content: parts }]);
    const types = (model: Partial<ModelSpec>) =>
      encode(all, model).flatMap(({ content }) => (content as Item[]).map(({ type }) => type));
    expect(types({ provider: "lmstudio" })).not.toContain("input_file");
    expect(new Set(types({ vision: false }))).toEqual(new Set(["input_text"]));
  });

  test("empty texts and calls that were cut off unanswered are left out; an empty output says so", () => {
    const cut = toolCall(AT, { name: "f", arguments: '{"x', tool_call_id: "a", stop_reason: "aborted" });
    expect(encode([userText(AT, " "), assistantText(AT, "\n"), cut, userText(AT, "b")])).toEqual([user("b")]);
    expect(encode([call("a"), output("a", "")])[1]?.output).toBe("[no output]");
  });

  test("F12: arguments that are not an object are sent as one that holds them, blank ones as an empty one", () => {
    const args = (text: string) => encode([call("a", text), output("a")])[0]?.arguments;
    expect([args('{"x'), args(" "), args('{ "a": 1 }')]).toEqual([
      '{"unparsed_arguments":"{\\"x"}',
      "{}",
      '{ "a": 1 }',
    ]);
  });

  test("half a surrogate pair does not go out, a whole one does", () => {
    const { body } = encodeResponses(llmRequest({ messages: [userText(AT, "a\ud83db 🙂")] }), spec());
    expect(body).toContain('"a\ufffdb 🙂"');
    const [, sent] = encode([userText(AT, "go"), call("a", '{"cmd":"echo \\ud800 \\ud83d\\ude42"}'), output("a")]);
    expect(sent?.arguments).toBe('{"cmd":"echo \\ufffd \\ud83d\\ude42"}');
  });
});

describe("what goes back verbatim", () => {
  test("F5: encrypted reasoning with every member that it came with, in any form a provider gives it", () => {
    const summary = [{ type: "summary_text", text: "hm" }];
    for (const members of [
      { id: "rs_1", summary: [], encrypted_content: "gAAAA+/==" },
      { id: "1c1cae28", summary, encrypted_content: "rsn_5ZVrif4J0bXIqmWdledj7QIFe", format: "v1" },
    ]) {
      const { body } = encodeResponses(
        llmRequest({ messages: [thinking(AT, "hm", { fidelity: { ...members, from } }), assistantText(AT, "ok")] }),
        spec(),
      );
      expect((JSON.parse(body) as { input: Item[] }).input[0]).toEqual({ type: "reasoning", ...members });
    }
  });

  test("signed reasoning goes back in the clear only to a router that reads it", () => {
    const members = { summary: [], signature: "S+/=", content: [{ type: "reasoning_text", text: "hm" }] };
    const router = spec({ provider: "openrouter" });
    const fidelity = { ...members, from: originMark(router) };
    const messages = [thinking(AT, "hm", { fidelity }), assistantText(AT, "ok")];
    const { body } = encodeResponses(llmRequest({ messages }), router);
    expect((JSON.parse(body) as { input: Item[] }).input).toEqual([{ type: "reasoning", ...members }, said("ok")]);
    expect(encode([thinking(AT, "hm", { fidelity: { ...members, from } }), assistantText(AT, "ok")])).toEqual([
      said("ok"),
    ]);
  });

  test("reasoning that cannot be read back is not sent", () => {
    const thoughts = [{ id: "rs_1", summary: [] }, { id: "rs_1", encrypted_content: "" }, undefined];
    for (const fidelity of thoughts) {
      const thought = thinking(AT, "hm", fidelity === undefined ? {} : { fidelity: { ...fidelity, from } });
      expect(encode([thought, assistantText(AT, "ok")])).toEqual([said("ok")]);
    }
  });

  test("F7: reasoning goes with what it led to", () => {
    const cut = toolCall(AT, { name: "f", arguments: "", tool_call_id: "z", stop_reason: "malformed" });
    expect(encode([hidden(1), userText(AT, "b")])).toEqual([user("b")]);
    expect(encode([hidden(1), assistantText(AT, ""), userText(AT, "b")])).toEqual([user("b")]);
    expect(encode([hidden(1), hidden(2), cut, userText(AT, "b")])).toEqual([user("b")]);
    expect(encode([hidden(1), assistantText(AT, "a"), hidden(2), cut])).toEqual([sent(1), said("a")]);
    expect(encode([hidden(1), hidden(2), assistantText(AT, "a")])).toEqual([sent(1), sent(2), said("a")]);
  });

  test("what a hosted tool did stands where it did it", () => {
    const search = { type: "web_search_call", id: "ws_1", status: "completed" };
    expect(encode([hidden(1), hidden(2, { before: [search] }), assistantText(AT, "a")])).toEqual([
      ...[sent(1), search, sent(2), said("a")],
    ]);
    const foreign = hidden(2, { before: [search], from: "other/model" });
    expect(encode([hidden(1), foreign, assistantText(AT, "a")])).toEqual([said("a")]);
  });

  test("reasoning whose encrypted form came late goes where its text stood", () => {
    const shown = thinking(AT, "hm", { fidelity: { id: "rs_1", summary: [], from } });
    const late = hidden(1, { replaces: "rs_1" });
    expect(encode([shown, assistantText(AT, "a"), late, userText(AT, "b")])).toEqual([sent(1), said("a"), user("b")]);
    expect(encode([assistantText(AT, "a"), late, assistantText(AT, "b")])).toEqual([said("a"), said("b")]);
  });

  test("F9: nothing of another model's, or of another protocol's, goes out", () => {
    for (const fidelity of [
      { id: "rs_1", summary: [], encrypted_content: "theirs", from: "other/model" },
      { signature: "theirs", from: "anthropic/model" },
      { reasoning_field: "reasoning", reasoning_details: [{ data: "theirs" }], from },
    ]) {
      const text = assistantText(AT, "ok", { fidelity: { phase: "theirs", from: "other/model" } });
      expect(encode([thinking(AT, "hm", { fidelity }), text])).toEqual([said("ok")]);
    }
    const foreign = { provider_call_id: "theirs", from: "other/model" };
    expect(JSON.stringify(encode([call("a", "{}", foreign), output("a")]))).not.toMatch(/theirs/);
  });

  test("F11: a provider's own call id goes back once; where it comes again, ours does", () => {
    const own = (id: string) => ({ provider_call_id: id, from });
    const ids = encode([
      ...[call("call_1"), output("call_1")],
      ...[call("b", "{}", own("call_1")), output("b")],
      ...[call("c", "{}", own("0 0")), call("d", "{}", own("0 0")), output("c"), output("d")],
      ...[call("a".repeat(65)), output("a".repeat(65)), call("b"), output("b")],
    ]).flatMap(({ type, call_id }) => (type === "function_call" ? [call_id] : []));
    expect(ids.slice(0, 4)).toEqual(["call_1", "b", "0 0", "d"]);
    expect(new Set(ids).size).toBe(6);
  });
});

test("F5: of what a provider put among its hosted items only what needs no output goes back, and no orphan output", () => {
  const hosted = { type: "web_search_call", id: "ws_1", status: "completed" };
  const refused = [
    { type: "function_call_output", call_id: "c1", output: "x" },
    { type: "custom_tool_call", call_id: "c2", name: "f", input: "" },
    { type: "custom_tool_call_output", call_id: "c2", output: "x" },
    { type: "local_shell_call", call_id: "c3", action: {} },
    { type: "computer_call", call_id: "c4", action: {} },
    { type: "mcp_approval_request", id: "m1" },
    { type: "function_call", call_id: "c5", name: "f", arguments: "{}" },
    { type: "" },
    null,
  ];
  const answer = assistantText(AT, "so", { fidelity: { before: [...refused, hosted], from } });
  expect(encode([userText(AT, "go"), answer])).toEqual([user("go"), hosted, said("so")]);
  // Reasoning is refused without the item that it led to.
  const led = assistantText(AT, "so", { fidelity: { before: refused.slice(1, 2), from } });
  expect(encode([userText(AT, "go"), hidden(1), led])).toEqual([user("go"), said("so")]);
});
