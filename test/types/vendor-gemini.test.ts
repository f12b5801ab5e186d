// generateContent against the types of `@google/genai`. A new kind of part, finish reason or block reason fails the type
// check until somebody says here what becomes of it.

import type {
  BlockedReason,
  Content,
  FinishReason,
  FunctionCallingConfig,
  FunctionDeclaration,
  GenerateContentConfig,
  GenerateContentResponse,
  Part,
  ThinkingLevel,
} from "@google/genai";
import { expect, test } from "vitest";
import { gemini } from "../../src/llm/wire/gemini.js";
import { thinkingConfig } from "../../src/llm/wire/gemini-thinking.js";
import { complete } from "../llm/support.js";
import { bodyOf, type Json, read, SCHEMA, type Some } from "./canonical.js";

/** The body on the wire; the SDK gathers all but the contents in one `config`. */
interface Body {
  systemInstruction: Json<Content>;
  tools: { functionDeclarations: Json<FunctionDeclaration>[] }[];
  toolConfig: { functionCallingConfig: Json<FunctionCallingConfig> };
  generationConfig: Pick<GenerateContentConfig, "maxOutputTokens"> & {
    // Written in lower case, as the reference does; the SDK writes the same names in upper case.
    thinkingConfig: { includeThoughts: boolean; thinkingLevel: Lowercase<`${ThinkingLevel}`> };
  };
  contents: Json<Content>[];
}

const PNG = { inlineData: { mimeType: "image/png", data: "iVBORw0KGgo=" } };

const BODY = {
  systemInstruction: { parts: [{ text: "be brief" }] },
  tools: [
    { functionDeclarations: [{ name: "read_file", description: "Reads a file.", parametersJsonSchema: SCHEMA }] },
  ],
  toolConfig: { functionCallingConfig: { mode: "AUTO" } },
  generationConfig: {
    maxOutputTokens: 32_000,
    thinkingConfig: { includeThoughts: true, thinkingLevel: "high" },
  },
  contents: [
    {
      role: "user",
      parts: [
        { text: "What is in a.txt and in this?" },
        PNG,
        { text: "[file a.pdf]" },
        { inlineData: { mimeType: "application/pdf", data: "JVBERi0xLjQ=" } },
      ],
    },
    {
      role: "model",
      parts: [
        { text: "Looking.", thoughtSignature: "dA==" },
        { functionCall: { name: "read_file", args: { path: "a.txt" }, id: "a1" }, thoughtSignature: "c2ln" },
        { functionCall: { name: "read_file", args: { path: "b.png" } } },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { name: "read_file", response: { error: "no such file" }, id: "a1" } },
        { functionResponse: { name: "read_file", response: { output: "an image" } } },
        { text: "[image from read_file]" },
        PNG,
        { text: "Go on." },
      ],
    },
  ],
} satisfies Body;

test("what we send is a request of the vendor's, to the last member", () => {
  const carried = {
    ...{ thought: {}, text: { thought_signature: "dA==" } },
    call: { thought_signature: "c2ln", provider_call_id: "a1" },
  };
  const spec = { provider: "gemini", modelId: "gemini-3-pro-preview", protocol: "gemini" } as const;
  expect(bodyOf(gemini, spec, carried)).toEqual(BODY);
  const budget = { includeThoughts: true, thinkingBudget: 24_576 } satisfies GenerateContentConfig["thinkingConfig"];
  expect(thinkingConfig("gemini-2.5-flash", "high")).toEqual(budget);
});

/** The part of a response that comes over the wire; the rest of the class is computed. */
type Chunk = Some<Json<Pick<GenerateContentResponse, "candidates" | "promptFeedback" | "usageMetadata">>>;

const whole = (parts: object[], finishReason: string): object => ({
  candidates: [{ content: { role: "model", parts }, finishReason }],
});

test("what the vendor sends is read", () => {
  const chunks = [
    { candidates: [{ index: 0, content: { role: "model", parts: [{ text: "hm", thought: true }] } }] },
    { candidates: [{ content: { parts: [{ text: "ok", thoughtSignature: "dA==" }] } }] },
    {
      candidates: [
        {
          content: { parts: [{ functionCall: { id: "a", name: "read_file", args: { path: "x" } } }] },
          finishReason: "STOP",
        },
      ],
      usageMetadata: {
        promptTokenCount: 10,
        cachedContentTokenCount: 8,
        toolUsePromptTokenCount: 2,
        candidatesTokenCount: 4,
        thoughtsTokenCount: 3,
        totalTokenCount: 19,
      },
    },
  ] satisfies Chunk[];
  const { messages, outcome } = read(gemini, chunks);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "ok", fidelity: { thought_signature: "dA==" } },
    { type: "tool_call", name: "read_file", arguments: '{"path":"x"}', tool_call_id: "a" },
  ]);
  expect(outcome.usage).toEqual({ cache_read: 8, cache_write: 4, output: 7, total: 19 });
});

const PARTS: Record<keyof Part, "read" | "kept"> = {
  text: "read",
  thought: "read",
  thoughtSignature: "read",
  functionCall: "read",
  inlineData: "read",
  functionResponse: "kept",
  executableCode: "kept",
  codeExecutionResult: "kept",
  fileData: "kept",
  videoMetadata: "kept",
  mediaResolution: "kept",
  toolCall: "kept",
  toolResponse: "kept",
  audioTranscription: "kept",
  partMetadata: "kept",
  mediaProcessing: "kept",
  speechMetadata: "kept",
};
const kept = Object.keys(PARTS).filter((key) => PARTS[key as keyof Part] === "kept");

test.each(kept)("a part that holds %s is kept whole, to go back in its place", (key) => {
  const part = { [key]: { data: "AA==" } };
  const { messages } = read(gemini, [whole([part, { text: "ok" }], "STOP")]);
  expect(complete(messages).map(({ payload }) => payload)).toMatchObject([
    { type: "thinking", thinking: "", fidelity: { part } },
    { type: "text", text: "ok" },
  ]);
});

/** How an answer without and one with text ends. */
const ENDS: Record<`${FinishReason}`, [without: string, withText: string]> = {
  STOP: ["completed", "completed"],
  MAX_TOKENS: ["completed", "completed"],
  // No end at all.
  FINISH_REASON_UNSPECIFIED: ["malformed", "malformed"],
  SAFETY: ["failed", "completed"],
  RECITATION: ["failed", "completed"],
  LANGUAGE: ["failed", "completed"],
  BLOCKLIST: ["failed", "completed"],
  PROHIBITED_CONTENT: ["failed", "completed"],
  SPII: ["failed", "completed"],
  IMAGE_SAFETY: ["failed", "completed"],
  IMAGE_PROHIBITED_CONTENT: ["failed", "completed"],
  IMAGE_RECITATION: ["failed", "completed"],
  IMAGE_OTHER: ["failed", "completed"],
  NO_IMAGE: ["failed", "completed"],
  OTHER: ["failed", "completed"],
  TOO_MANY_TOOL_CALLS: ["failed", "completed"],
  CONTINUATION: ["failed", "completed"],
  MALFORMED_FUNCTION_CALL: ["malformed", "malformed"],
  UNEXPECTED_TOOL_CALL: ["malformed", "malformed"],
};

test.each(Object.entries(ENDS))("an answer that ended with %s ends as it should", (reason, [without, withText]) => {
  expect(read(gemini, [whole([], reason)]).outcome.status).toBe(without);
  const { outcome } = read(gemini, [whole([{ text: "ok" }], reason)]);
  expect(outcome.status).toBe(withText);
  expect(outcome.truncated).toBe(reason === "MAX_TOKENS" ? true : undefined);
});

const BLOCKS: Record<`${BlockedReason}`, true> = {
  BLOCKED_REASON_UNSPECIFIED: true,
  SAFETY: true,
  OTHER: true,
  BLOCKLIST: true,
  PROHIBITED_CONTENT: true,
  IMAGE_SAFETY: true,
  MODEL_ARMOR: true,
  JAILBREAK: true,
};

test.each(Object.keys(BLOCKS))("a prompt that was blocked for %s is refused, not retried", (blockReason) => {
  const { outcome } = read(gemini, [{ promptFeedback: { blockReason } }]);
  expect(outcome).toMatchObject({ status: "failed", error: { kind: "content_filter" } });
});
