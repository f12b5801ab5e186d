import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LLMRequest } from "../../src/engine/ports.js";
import type { ModelSpec } from "../../src/llm/model-spec.js";
import { encodeChat } from "../../src/llm/wire/openai-chat-encode.js";
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
import { AT, fromOf, llmRequest, modelSpec } from "./support.js";

const FROM = fromOf("openai-chat");

type Json = Record<string, unknown>;

function bodyOf(messages: CompleteMessage[], model: Partial<ModelSpec> = {}, request: Partial<LLMRequest> = {}): Json {
  return JSON.parse(encodeChat(llmRequest({ messages, ...request }), modelSpec(model)).body) as Json;
}
const encode = (messages: CompleteMessage[], model: Partial<ModelSpec> = {}): Json[] =>
  (bodyOf(messages, model).messages as Json[]).slice(1);

const call = (id: string, args = "{}", fidelity?: Json) =>
  toolCall(AT, { name: "f", arguments: args, tool_call_id: id, ...(fidelity === undefined ? {} : { fidelity }) });
const output = (id: string, text = "out", images?: string[]) =>
  toolCallOutput(AT, { output: text, tool_call_id: id, ...(images === undefined ? {} : { images }) });
const PNG = "data:image/png;base64,AAAA";

describe("the request", () => {
  test("goes to the path behind the base URL, keeps its query, and carries the key in one header only", () => {
    const call = (model: Partial<ModelSpec>) => encodeChat(llmRequest(), modelSpec({ apiKey: "sk-1", ...model }));
    const plain = call({ baseUrl: "http://h:1/v1/" });
    expect(plain.url).toBe("http://h:1/v1/chat/completions");
    expect(plain.headers.authorization).toBe("Bearer sk-1");
    const azure = call({ baseUrl: "https://x.openai.azure.com/openai/deployments/d?api-version=1" });
    expect(azure.url).toBe("https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1");
    expect(azure.headers).toMatchObject({ "api-key": "sk-1" });
    expect(azure.headers.authorization).toBeUndefined();
    expect(encodeChat(llmRequest(), modelSpec()).headers.authorization).toBeUndefined();
  });

  test("holds the system prompt first, then the context, and streams with usage", () => {
    expect(bodyOf([userText(AT, "hello")])).toEqual({
      model: "one",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "be brief" },
        { role: "user", content: "hello" },
      ],
    });
  });

  test("describes tools as functions; a tool without parameters takes an empty object", () => {
    const tools = [
      { name: "a", description: "A", parameters: { type: "object" } },
      { name: "b", description: "B" },
    ];
    expect(bodyOf([], {}, { tools }).tools).toEqual([
      { type: "function", function: { name: "a", description: "A", parameters: { type: "object" } } },
      { type: "function", function: { name: "b", description: "B", parameters: { type: "object", properties: {} } } },
    ]);
  });

  test.each<[Partial<ModelSpec>, Json]>([
    [{ provider: "openai", baseUrl: "https://api.openai.com/v1" }, { reasoning_effort: "high" }],
    [{ provider: "mine", baseUrl: "https://openrouter.ai/api/v1" }, { reasoning: { effort: "high" } }],
    [{ provider: "deepseek" }, { thinking: { type: "enabled" } }],
    [{ provider: "qwen" }, { enable_thinking: true }],
    [{ provider: "vllm" }, { chat_template_kwargs: { enable_thinking: true } }],
    [{ provider: "groq" }, { reasoning_effort: "high", reasoning_format: "parsed" }],
    [{ provider: "somebody" }, { reasoning_effort: "high" }],
  ])("%j asks for thinking in its own way, and for nothing by default or without the ability", (model, fields) => {
    const none = bodyOf([], model);
    expect(bodyOf([], model, { thinkingLevel: "high" })).toEqual({ ...none, ...fields });
    expect(bodyOf([], { ...model, thinking: false }, { thinkingLevel: "high" })).toEqual(none);
  });

  test.each([
    ["o3", "none", "low"],
    ["o3", "max", "high"],
    ["gpt-5-mini", "none", "minimal"],
    ["gpt-5-mini", "xhigh", "high"],
    ["gpt-5.5", "none", "none"],
    ["gpt-5.5", "max", "xhigh"],
    ["gpt-6.1-sol", "none", "low"],
    ["gpt-6-luna", "none", "none"],
  ] as const)("%s is asked for the level %s by a word that it takes", (modelId, thinkingLevel, word) => {
    expect(bodyOf([], { provider: "openai", modelId }, { thinkingLevel })).toMatchObject({ reasoning_effort: word });
  });

  test("next to tools, newer models of OpenAI's are asked for no effort but none, which they would refuse", () => {
    const tools = [{ name: "f", description: "" }];
    const asked = (model: Partial<ModelSpec>, thinkingLevel: "none" | "high") =>
      bodyOf([], { provider: "openai", ...model }, { thinkingLevel, tools }).reasoning_effort;
    expect(asked({ modelId: "gpt-5.5" }, "high")).toBeUndefined();
    expect(asked({ modelId: "gpt-5.5" }, "none")).toBe("none");
    expect(asked({ modelId: "gpt-6.1-sol" }, "none")).toBeUndefined();
    expect(asked({ modelId: "gpt-5" }, "high")).toBe("high");
    expect(asked({ modelId: "gpt-5.5", provider: "somebody" }, "high")).toBe("high");
  });

  test("an output limit goes under the name that the provider knows", () => {
    expect(bodyOf([], { provider: "openai", maxOutputTokens: 9 })).toMatchObject({ max_completion_tokens: 9 });
    expect(bodyOf([], { maxOutputTokens: 9 })).toMatchObject({ max_tokens: 9 });
    expect(bodyOf([], { provider: "mistral" }).stream_options).toBeUndefined();
  });
});

describe("messages", () => {
  test("one assistant message holds a turn's text and calls, its outputs follow at once and in call order", () => {
    expect(
      encode([
        userText(AT, "go"),
        thinking(AT, "hm"),
        assistantText(AT, "on it"),
        call("a"),
        call("b", ""),
        output("b", "2"),
        output("a", "1"),
        userText(AT, "and?"),
      ]),
    ).toEqual([
      { role: "user", content: "go" },
      {
        role: "assistant",
        content: "on it",
        tool_calls: [
          { id: "a", type: "function", function: { name: "f", arguments: "{}" } },
          { id: "b", type: "function", function: { name: "f", arguments: "{}" } },
        ],
      },
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "2" },
      { role: "user", content: "and?" },
    ]);
  });

  test("images of tool results go in one user message behind all of the batch's outputs", () => {
    const sent = encode([call("a"), call("b"), output("a", "x", [PNG]), output("b", "y", [PNG, PNG])]);
    expect(sent.map(({ role }) => role)).toEqual(["assistant", "tool", "tool", "user"]);
    const parts = sent[3]?.content as Json[] | undefined;
    expect(parts?.filter(({ type }) => type === "image_url")).toHaveLength(3);
  });

  test("a model without vision is told of the images instead", () => {
    const sent = encode([imageUrl(AT, PNG), call("a"), output("a", "x", [PNG])], { vision: false });
    expect(JSON.stringify(sent)).not.toContain("AAAA");
    expect(sent.at(-1)).toMatchObject({ role: "tool", content: expect.stringContaining("1 image left out") });
  });

  test("an image, a text file and the text beside them are parts of one message", () => {
    const file = inlineData(AT, {
      role: "user",
      data: Buffer.from("a,b").toString("base64"),
      mime_type: "text/csv",
      file_name: "t.csv",
    });
    const [only, ...rest] = encode([userText(AT, "see"), imageUrl(AT, "https://x/y.png"), file]);
    expect(rest).toEqual([]);
    expect(only?.content).toEqual([
      { type: "text", text: "see" },
      { type: "image_url", image_url: { url: "https://x/y.png" } },
      { type: "text", text: "[file t.csv]\na,b\n[end of t.csv]" },
    ]);
  });

  test("two user texts stay two messages, except for servers that want roles to take turns", () => {
    const two = [userText(AT, "a"), userText(AT, "b")];
    expect(encode(two)).toEqual([
      { role: "user", content: "a" },
      { role: "user", content: "b" },
    ]);
    expect(encode(two, { provider: "vllm" })).toMatchObject([{ content: [{ text: "a" }, { text: "b" }] }]);
  });

  test("empty texts, reasoning without an answer and calls that were cut off unanswered are left out", () => {
    expect(
      encode([
        userText(AT, " "),
        thinking(AT, "hm", { fidelity: { reasoning_field: "reasoning" } }),
        toolCall(AT, { name: "f", arguments: '{"x', tool_call_id: "a", stop_reason: "aborted" }),
        userText(AT, "b"),
      ]),
    ).toEqual([{ role: "user", content: "b" }]);
  });

  test("arguments that are not an object are sent as one that holds them", () => {
    const [said] = encode([call("a", '{"x'), output("a")]);
    expect(said?.tool_calls).toMatchObject([{ function: { arguments: '{"unparsed_arguments":"{\\"x"}' } }]);
  });
});

describe("what goes back verbatim", () => {
  const details = [{ type: "reasoning.encrypted", data: "AA==", id: null }];
  const turn = (fidelity: Json) => [thinking(AT, "hm", { fidelity }), assistantText(AT, "ok")];

  test.each(["reasoning_content", "reasoning", "reasoning_text"])("F5: %s goes back under its own name", (field) => {
    expect(encode(turn({ reasoning_field: field, from: FROM }))).toEqual([
      { role: "assistant", content: "ok", [field]: "hm" },
    ]);
  });

  test("F5: reasoning_details go back as they came, beside the field they came with", () => {
    expect(encode(turn({ reasoning_field: "reasoning", reasoning_details: details, from: FROM }))).toEqual([
      { role: "assistant", content: "ok", reasoning: "hm", reasoning_details: details },
    ]);
    expect(encode(turn({ reasoning_field: "reasoning_details", reasoning_details: details }))).toEqual([
      { role: "assistant", content: "ok", reasoning_details: details },
    ]);
  });

  test("thinking parts go back inside content", () => {
    expect(encode(turn({ reasoning_field: "content[].thinking", from: FROM }))).toEqual([
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
          { type: "text", text: "ok" },
        ],
      },
    ]);
  });

  test("F9: nothing of another model's, or of another protocol's, goes out", () => {
    for (const fidelity of [
      { reasoning_field: "reasoning", reasoning_details: details, from: "other/model" },
      { signature: "EqQB" },
      { reasoning_field: "role" },
    ]) {
      expect(encode(turn(fidelity))).toEqual([{ role: "assistant", content: "ok" }]);
    }
    const foreign = { provider_call_id: "theirs", extra_content: { google: {} }, from: "other/model" };
    expect(JSON.stringify(encode([call("a", "{}", foreign), output("a")]))).not.toMatch(/theirs|google/);
  });

  test("the provider's own call id goes back, unless it is repeated within the batch", () => {
    const own = (id: string) => ({ provider_call_id: id, from: FROM });
    const sent = encode([
      ...[call("a", "{}", own("0")), output("a")],
      ...[call("b", "{}", own("1")), call("c", "{}", own("1")), call("1"), output("b"), output("c"), output("1")],
    ]);
    const ids = sent.map(({ tool_calls, tool_call_id }) =>
      tool_calls === undefined ? tool_call_id : (tool_calls as { id: string }[]).map(({ id }) => id),
    );
    expect(ids).toEqual([["0"], "0", ["b", "c", "1"], "b", "c", "1"]);
  });

  test("nine-character ids are one-to-one and the same in every Request", () => {
    const ids = ["abcdefghi", "call_1", "call_2", "x"];
    const history = ids.flatMap((id) => [call(id), output(id)]);
    const wireIds = (messages: CompleteMessage[]) =>
      encode(messages, { provider: "mistral" }).flatMap(({ tool_call_id }) => tool_call_id ?? []);
    const all = wireIds(history);
    expect(all[0]).toBe("abcdefghi");
    expect(new Set(all).size).toBe(ids.length);
    for (const id of all) expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
    expect(wireIds(history.slice(0, 4))).toEqual(all.slice(0, 2));
  });

  test("ids of more than 40 characters become short ones, one-to-one, and the same in every Request", () => {
    const ids = [`a${"x".repeat(200)}`, "y".repeat(41), "z".repeat(40), `b${"x".repeat(200)}`];
    const history = ids.flatMap((id) => [call(id), output(id)]);
    const sent = (messages: CompleteMessage[]) => {
      const encoded = encode(messages);
      const called = encoded.flatMap(({ tool_calls }) => ((tool_calls ?? []) as { id: string }[]).map(({ id }) => id));
      expect(encoded.flatMap(({ tool_call_id }) => tool_call_id ?? [])).toEqual(called);
      return called;
    };
    const all = sent(history);
    expect(all[2]).toBe(ids[2]);
    expect(new Set(all).size).toBe(ids.length);
    for (const id of all) expect(id.length).toBeLessThanOrEqual(40);
    expect(sent(history.slice(0, 4))).toEqual(all.slice(0, 2));
    // The model itself may take such an id for its next call.
    const [short] = all as [string];
    expect(new Set(sent([...history, call(short), output(short)])).size).toBe(ids.length + 1);
  });

  test("DeepSeek gets an empty reasoning_content where a turn with calls has none", () => {
    expect(encode([call("a"), output("a")], { provider: "deepseek" })[0]).toMatchObject({ reasoning_content: "" });
  });
});

describe("any context", () => {
  const step = fc.oneof(
    fc.constant("user" as const),
    fc.constant("text" as const),
    fc.constant("thinking" as const),
    fc.record({ calls: fc.integer({ min: 1, max: 3 }), drop: fc.boolean(), orphan: fc.boolean(), steer: fc.boolean() }),
  );

  function build(steps: (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): CompleteMessage[][] {
    return steps.map((each, n) => {
      if (each === "user") return [userText(AT, `u${n}`)];
      if (each === "text") return [assistantText(AT, `t${n}`)];
      if (each === "thinking") return [thinking(AT, `h${n}`, { fidelity: { reasoning_field: "reasoning" } })];
      const ids = Array.from({ length: each.calls }, (_, i) => `c${n}_${i}`);
      const outputs = ids.filter((_, i) => !(each.drop && i === 0)).map((id) => output(id, "x", [PNG]));
      return [
        ...ids.map((id) => call(id)),
        ...outputs.reverse(),
        ...(each.steer ? [userText(AT, `s${n}`)] : []),
        ...(each.orphan ? [output(`nobody${n}`)] : []),
      ];
    });
  }

  test("F1 F4: every batch of calls is followed at once by one output for each, and no output stands alone", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        let due: string[] = [];
        for (const message of encode(build(steps).flat())) {
          if (message.role === "tool") expect(message.tool_call_id).toBe(due.shift());
          else expect(due).toEqual([]);
          if (message.tool_calls !== undefined) due = (message.tool_calls as { id: string }[]).map(({ id }) => id);
          if (message.role !== "assistant") expect(message.content).not.toBe("");
          else expect(message.content !== null || message.tool_calls !== undefined).toBe(true);
        }
        expect(due).toEqual([]);
      }),
    );
  });

  test("a longer context begins with the bytes of the shorter one", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 10 }), (steps) => {
        const groups = build(steps);
        const whole = JSON.stringify(encode(groups.flat()));
        for (let count = 0; count < groups.length; count++) {
          // Cut where a Request could have gone out: behind something of the user's, before something of the assistant's.
          const [last, next] = [groups[count - 1]?.at(-1), groups[count]?.[0]];
          if (last?.payload.role !== "user" || next?.payload.role !== "assistant") continue;
          const part = JSON.stringify(encode(groups.slice(0, count).flat()));
          expect(whole.startsWith(part.slice(0, -1))).toBe(true);
        }
      }),
    );
  });
});

test("F4: no two calls of a turn share an id, also where a Trace holds a call twice", () => {
  const ids = (messages: CompleteMessage[]) =>
    encode(messages).flatMap(({ tool_calls, tool_call_id }) =>
      tool_calls === undefined ? (tool_call_id ?? []) : (tool_calls as Json[]).map(({ id }) => id),
    );
  expect(ids([userText(AT, "go"), call("a"), call("b"), call("a"), output("a"), output("a"), output("b")])).toEqual([
    ...["a", "b", "a_2"],
    ...["a", "b", "a_2"],
  ]);
  const own = (provider_call_id: string) => ({ provider_call_id, from: FROM });
  const crossed = [call("x", "{}", own("y")), call("y"), call("z", "{}", own("x"))];
  expect(ids([userText(AT, "go"), ...crossed])).toEqual(["x", "y", "z", "x", "y", "z"]);
});

test("F7: half a surrogate pair that arguments hide behind an escape does not go out, and nothing else of them changes", () => {
  for (const [args, sent] of [
    ['{"cmd":"echo \\ud800 hi", "n": 12345678901234567890}', '{"cmd":"echo \\ufffd hi", "n": 12345678901234567890}'],
    [
      '{"\\uDC00":"\\uD83D\\ude42 \\n\\u0041\\ud83d\\ud83d\\ude42"}',
      '{"\\ufffd":"\\uD83D\\ude42 \\n\\u0041\\ufffd\\ud83d\\ude42"}',
    ],
    ['{"path":"c:\\\\ud800"}', '{"path":"c:\\\\ud800"}'],
    ['{"x":"\ud800', '{"unparsed_arguments":"{\\"x\\":\\"\ufffd"}'],
  ] as const) {
    const [, said] = encode([userText(AT, "go"), call("a", args), output("a")]);
    expect(said).toMatchObject({ tool_calls: [{ function: { arguments: sent } }] });
  }
});

test("a name or a text that strict servers refuse goes out in a form that they take", () => {
  for (const name of ["functions.exec_command", "two\nlines", "", "n".repeat(10_000)]) {
    const messages = [
      userText(AT, "go \ud800"),
      toolCall(AT, { name, arguments: "{}", tool_call_id: "a" }),
      output("a"),
    ];
    const { body } = encodeChat(llmRequest({ messages }), modelSpec());
    expect(body).not.toContain("\\ud800");
    const sent = (JSON.parse(body) as { messages: { tool_calls?: { function: { name: string } }[] }[] }).messages;
    expect(sent.flatMap((message) => message.tool_calls ?? [])[0]?.function.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
  }
});
