// Whatever a history holds, the input keeps the protocol's rules.

import fc from "fast-check";
import { expect, test } from "vitest";
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

const FROM = fromOf("openai-responses");

const encode = (messages: CompleteMessage[]): Item[] =>
  (JSON.parse(encodeResponses(llmRequest({ messages }), spec()).body) as { input: Item[] }).input;

const PNG = "data:image/png;base64,AAAA";
const text = fc.constantFrom("", " ", "words", "half \ud83d", "whole 🙂");
const from = fc.constantFrom(FROM, "other/model", undefined);
const id = fc.constantFrom("0", "call_1", "a b", "x".repeat(70), "");
/** As long as it likes: who gave it takes it back. Here as long as the rules allow anybody's. */
const ownId = fc.constantFrom("0", "call_1", "a b", "");
const args = fc.constantFrom("", "{}", '{"x":1}', '{"x', "[1]");
const stop = fc.constantFrom(undefined, "aborted", "malformed");
const search = { type: "web_search_call", id: "ws_1", status: "completed" };

const kept = (members: Item, origin: string | undefined): Item =>
  origin === undefined ? members : { ...members, from: origin };

const thought = fc
  .record({ text, from, encrypted: fc.constantFrom("e+/=", "", undefined), hosted: fc.boolean(), late: fc.boolean() })
  .map((it) =>
    thinking(AT, it.text, {
      fidelity: kept(
        {
          ...{ id: "rs_1", summary: [] },
          ...(it.encrypted === undefined ? {} : { encrypted_content: it.encrypted }),
          ...(it.hosted ? { before: [search] } : {}),
          ...(it.late ? { replaces: "rs_1" } : {}),
        },
        it.from,
      ),
    }),
  );
const words = fc
  .record({ text, from, phase: fc.constantFrom("commentary", "final_answer") })
  .map((it) => assistantText(AT, it.text, { fidelity: kept({ phase: it.phase }, it.from) }));
const media = fc.constant(inlineData(AT, { role: "assistant", data: "AAAA", mime_type: "image/png" }));
const called = fc.record({ id, own: ownId, args, from, stop, name: fc.constantFrom("f", "a.b/c", "") }).map((it) =>
  toolCall(AT, {
    ...{ name: it.name, arguments: it.args, tool_call_id: it.id },
    fidelity: kept({ provider_call_id: it.own }, it.from),
    ...(it.stop === undefined ? {} : { stop_reason: it.stop as "aborted" }),
  }),
);
const answered = fc
  .record({ id, text, images: fc.array(fc.constant(PNG), { maxLength: 1 }) })
  .map((it) => toolCallOutput(AT, { output: it.text, tool_call_id: it.id, images: it.images }));
const prompt = fc.oneof(
  text.map((words) => userText(AT, words)),
  fc.constant(imageUrl(AT, "https://x/y.png")),
  fc
    .constantFrom("application/pdf", "text/plain", "application/zip")
    .map((mime_type) => inlineData(AT, { role: "user", data: "/wA=", mime_type, file_name: "it" })),
);
const any = fc.oneof(thought, words, media, called, called, answered, prompt);

test("F1 F4 F7 F11: every random history, cut at any place, keeps the rules", () => {
  fc.assert(
    fc.property(fc.array(any, { maxLength: 24 }), fc.nat(24), (messages, cut) => {
      expectRules(encode(messages));
      // Compaction and imports begin anywhere.
      expectRules(encode(messages.slice(cut)));
    }),
    { numRuns: 300 },
  );
});

test("a longer context begins with the bytes of the shorter one", () => {
  fc.assert(
    fc.property(fc.array(any, { maxLength: 16 }), (messages) => {
      const whole = JSON.stringify(encode(messages));
      messages.forEach((next, n) => {
        // Where a Request could have gone out: behind something of the user's, before something of the assistant's.
        if (messages[n - 1]?.payload.role !== "user" || next.payload.role !== "assistant") return;
        const part = JSON.stringify(encode(messages.slice(0, n)));
        expect(whole.startsWith(part.slice(0, -1))).toBe(true);
      });
    }),
  );
});

test("nothing that another model gave goes out, and everything of this model's that has its place does", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(thought, words), { minLength: 1, maxLength: 8 }), (pairs) => {
      const messages = pairs.flatMap(([thinking, words]) => [thinking, words, userText(AT, "next")]);
      const readable = pairs.filter(([{ payload }, words]) => {
        const { encrypted_content, from = FROM, replaces } = payload.fidelity ?? {};
        return (
          encrypted_content === "e+/=" && from === FROM && replaces === undefined && words.payload.text.trim() !== ""
        );
      });
      expect(encode(messages).filter(({ type }) => type === "reasoning")).toHaveLength(readable.length);
    }),
  );
});
