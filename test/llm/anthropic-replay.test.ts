import { describe, expect, test } from "vitest";
import { originMark } from "../../src/llm/model-spec.js";
import { encodeAnthropic } from "../../src/llm/wire/anthropic-messages-encode.js";
import { assistantText, thinking } from "../../src/protocol/builders.js";
import type { CompleteMessage } from "../../src/protocol/message.js";
import type { Body } from "./anthropic-rules.js";
import {
  bodyOf,
  CLAUDE,
  call,
  encode,
  GO,
  go,
  hidden,
  type Json,
  output,
  signed,
  spec,
  text,
  use,
} from "./anthropic-support.js";
import { AT, fromOf, llmRequest } from "./support.js";

const FROM = fromOf("anthropic-messages");

describe("ids", () => {
  const ids = (messages: CompleteMessage[]) =>
    bodyOf(messages).messages.flatMap(({ content }) =>
      content.flatMap(({ type, id, tool_use_id }) => (type.startsWith("tool_") ? [id ?? tool_use_id] : [])),
    );

  test("are in the protocol's alphabet, one for one, and used once in a Request", () => {
    expect(
      ids([go, call("functions.add:0"), output("functions.add:0"), call("functions_add_0"), output("functions_add_0")]),
    ).toEqual(["functions_add_0", "functions_add_0", "functions_add_0_2", "functions_add_0_2"]);
    expect(new Set(ids([go, call("a"), output("a"), call("a"), output("a")])).size).toBe(2);
  });

  test("are the provider's own where they came from this model and are free", () => {
    const own = (id: string) => ({ provider_call_id: id, from: CLAUDE });
    const repeated = [go, call("x", "", own("0")), output("x"), call("y", "", own("0")), output("y")];
    expect(ids(repeated)).toEqual(["0", "0", "y", "y"]);
    expect(ids([go, call("x", "", { provider_call_id: "0", from: FROM }), output("x")])).toEqual(["x", "x"]);
  });
});

describe("what goes back verbatim", () => {
  test("F5: signed, hidden and empty thinking go back in their places, byte for byte", () => {
    const sent = encode([
      go,
      hidden("UmVk+/=="),
      signed(" hm ", "U2ln"),
      assistantText(AT, " a "),
      signed("", "Qg=="),
      call("a"),
      output("a"),
    ]);
    expect(sent[1]?.content).toEqual([
      { type: "redacted_thinking", data: "UmVk+/==" },
      { type: "thinking", thinking: " hm ", signature: "U2ln" },
      text(" a "),
      { type: "thinking", thinking: "", signature: "Qg==" },
      use("a"),
    ]);
  });

  test("an answer that ends with thinking is closed by a line, and thinking without a signature is left out", () => {
    expect(encode([go, signed("hm", "U2ln"), go])[1]?.content).toEqual([
      { type: "thinking", thinking: "hm", signature: "U2ln" },
      text("[no answer followed]"),
    ]);
    expect(encode([go, thinking(AT, "hm", { fidelity: { from: CLAUDE } }), go])).toHaveLength(1);
  });

  test("models of others get their own unsigned thinking back", () => {
    const own = thinking(AT, "hm", { fidelity: { from: originMark(spec({ modelId: "glm-4.6" })) } });
    const json = encodeAnthropic(
      llmRequest({ messages: [go, own, assistantText(AT, "ok"), go] }),
      spec({ modelId: "glm-4.6" }),
    ).body;
    expect((JSON.parse(json) as Body).messages[1]?.content[0]).toEqual({
      type: "thinking",
      thinking: "hm",
      signature: "",
    });
  });

  test("F9: nothing of another model's goes out", () => {
    for (const fidelity of [
      { signature: "U2ln", from: "other/model" },
      { redacted_thinking: "UmVk", from: "other/model" },
      { reasoning_field: "reasoning" },
      { encrypted_content: "gAAA", id: "rs_1" },
      { blocks_before: [{ type: "fallback" }], from: "other/model" },
    ]) {
      expect(encode([go, thinking(AT, "hm", { fidelity }), assistantText(AT, "ok", { fidelity }), go])[1]).toEqual({
        role: "assistant",
        content: [text("ok")],
      });
    }
  });

  const search = { type: "server_tool_use", id: "s1", name: "web_search", input: { query: "x" } };
  const found = { type: "web_search_tool_result", tool_use_id: "s1", content: [{ encrypted_content: "RW5j" }] };
  const carrier = (...blocks_before: Json[]) => thinking(AT, "", { fidelity: { blocks_before, from: CLAUDE } });
  const following = (...blocks_before: Json[]) =>
    assistantText(AT, "so", { fidelity: { blocks_before, from: CLAUDE } });

  test("F5: a server tool and its result go back in front of what they came before", () => {
    expect(encode([go, assistantText(AT, "a"), following(search, found), go])[1]?.content).toEqual([
      text("a"),
      search,
      found,
      text("so"),
    ]);
  });

  test("F5: a mark on another's block is not sent, so that four stay four", () => {
    const marked = {
      type: "crystal",
      cache_control: { type: "ephemeral" },
      content: [{ cache_control: {}, x: 1 }, "y"],
    };
    const messages = [go, following(marked), go, following(marked), go];
    const { messages: sent } = bodyOf(messages, {}, { tools: [{ name: "f", description: "" }] });
    expect(sent[1]?.content).toEqual([{ type: "crystal", content: [{ x: 1 }, "y"] }, text("so")]);
  });

  test("blocks that an assistant may not send are left out, and so is what is no block", () => {
    const kinds = ["tool_result", "image", "document", "tool_use", "thinking"].map((type) => ({ type, id: "x" }));
    expect(encode([go, following(...kinds, text("kept")), go])[1]?.content).toEqual([text("kept"), text("so")]);
    const foreign = { blocks_before: [1, null, {}, { type: "text", text: "" }] };
    expect(encode([go, assistantText(AT, "so", { fidelity: foreign }), go])[1]?.content).toEqual([text("so")]);
  });

  test("half a pair is dropped, whichever half", () => {
    expect(encode([go, following(search), go])[1]?.content).toEqual([text("so")]);
    expect(encode([go, following(found), go])[1]?.content).toEqual([text("so")]);
    expect(encode([go, carrier(search), go])).toEqual([{ role: "user", content: [text("go"), text("go")] }]);
  });

  test("a pause goes back as it is, as the last word, and its result joins it in the same message", () => {
    expect(encode([go, carrier(search)])).toEqual([GO, { role: "assistant", content: [search] }]);
    expect(encode([go, carrier(search), following(found), go])[1]?.content).toEqual([search, found, text("so")]);
  });

  test("citations go back with their text, and only to their model", () => {
    const citations = [{ type: "web_search_result_location", encrypted_index: "SWR4" }];
    const cited = (from: string) => assistantText(AT, "so", { fidelity: { citations, from } });
    expect(encode([go, cited(CLAUDE), go])[1]?.content).toEqual([{ ...text("so"), citations }]);
    expect(encode([go, cited("other/model"), go])[1]?.content).toEqual([text("so")]);
  });
});

describe("cache marks", () => {
  const marked = (messages: CompleteMessage[]) =>
    bodyOf(messages, {}, { tools: [{ name: "f", description: "" }] }).messages.map(({ content }) =>
      content.flatMap((block, n) => ("cache_control" in block ? [n] : [])),
    );

  test("stand on the last block of the newest user turn and of the one before", () => {
    expect(marked([go])).toEqual([[0]]);
    const loop = [go, call("a"), call("b"), output("a"), output("b")];
    expect(marked(loop)).toEqual([[0], [], [1]]);
    expect(marked([...loop, go, call("c"), output("c")])).toEqual([[], [], [2], [], [0]]);
  });
});
