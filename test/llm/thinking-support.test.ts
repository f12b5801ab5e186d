import { describe, expect, test } from "vitest";
import type { Protocol } from "../../src/llm/model-spec.js";
import { ignoresThinkingLevel, thinksByName } from "../../src/llm/thinking-support.js";
import { modelSpec } from "./support.js";

const OPENAI = [
  "gpt-5",
  "gpt-5-mini",
  "gpt-5.1-codex-max",
  "gpt-5.5-2026-04-23",
  "o3",
  "o4-mini",
  "o1-2024-12-17",
].concat(
  ...[
    "openai/gpt-5",
    "openai.gpt-5.6-luna",
    "ft:o4-mini-2025-04-16:acme",
    "codex-mini-latest",
    "o4-mini-deep-research",
  ],
);
const NOT_OPENAI = [
  "gpt-4.1",
  "gpt-4o",
  "gpt-4o-mini",
  "gpt-5-chat-latest",
  "gpt-5.1-chat-latest",
  "o1-mini",
  "o1-preview",
].concat(...["chatgpt-4o-latest", "my-deployment", "qwen3", "grok-4", "gpt-50", "foo3", ""]);

describe("a name tells that a model thinks", () => {
  test.each<[Protocol, string[]]>([
    ["openai-responses", OPENAI],
    ["openai-chat", [...OPENAI, "gpt-oss-120b", "openai/gpt-oss-20b"]],
    [
      "anthropic-messages",
      ["claude-3-7-sonnet-20250219", "claude-sonnet-4-5", "anthropic/claude-opus-4.7", "claude-fable-5"],
    ],
    ["gemini", ["gemini-2.5-pro", "models/gemini-2.5-flash-lite", "gemini-3.1-pro-preview", "gemini-flash-latest"]],
  ])("%s", (protocol, modelIds) => {
    expect(modelIds.filter((modelId) => !thinksByName(protocol, modelId))).toEqual([]);
  });
});

describe("a name tells nothing where it is not sure", () => {
  test.each<[Protocol, string[]]>([
    // What it thinks comes in the clear; asked for an encrypted form, some of its servers refuse.
    ["openai-responses", [...NOT_OPENAI, "gpt-oss-20b"]],
    ["openai-chat", NOT_OPENAI],
    [
      "anthropic-messages",
      ["claude-3-5-sonnet-20241022", "claude-3-haiku-20240307", "claude", "claude-next", "glm-4.6"],
    ],
    [
      "gemini",
      ["gemini-2.0-flash", "gemini-1.5-pro", "gemini-2.5-flash-image", "gemini-2.5-pro-preview-tts", "gemma-3", "mine"],
    ],
  ])("%s", (protocol, modelIds) => {
    expect(modelIds.filter((modelId) => thinksByName(protocol, modelId))).toEqual([]);
  });
});

test("a level makes no difference to a model that takes none, or that has no room for any thought", () => {
  const ignores = (protocol: Protocol, modelId: string, more = {}) =>
    ignoresThinkingLevel(modelSpec({ protocol, modelId, ...more }));
  expect(ignores("openai-responses", "gpt-5")).toBe(false);
  expect(ignores("openai-chat", "gpt-5", { provider: "openai" })).toBe(false);
  expect(ignores("openai-chat", "gpt-5.5", { provider: "openai" })).toBe(true);
  expect(ignores("openai-chat", "magistral", { provider: "mistral" })).toBe(true);
  expect(ignores("openai-responses", "gpt-5", { thinking: false })).toBe(true);
  expect(ignores("anthropic-messages", "claude-sonnet-4-5")).toBe(false);
  expect(ignores("anthropic-messages", "claude-sonnet-4-5", { maxOutputTokens: 1024 })).toBe(true);
  expect(ignores("anthropic-messages", "claude-3-haiku-20240307")).toBe(true);
  expect(ignores("gemini", "gemini-2.0-flash")).toBe(true);
  expect(ignores("gemini", "gemini-2.5-flash")).toBe(false);
  expect(ignores("demo", "demo", { thinking: false })).toBe(false);
});
