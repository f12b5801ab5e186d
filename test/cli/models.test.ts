import { describe, expect, test } from "vitest";
import { models } from "../../src/cli/models.js";
import { modelListSchema } from "../../src/http/contracts.js";
import { configOf } from "../support/http-server.js";

const FILE = {
  models: [
    {
      provider: "acme",
      modelId: "one",
      protocol: "openai-chat",
      baseUrl: "http://10.0.0.1/v1",
      apiKey: "sk-acme-1234",
    },
    { provider: "bolt", modelId: "a-longer-name", protocol: "gemini", apiKeyEnv: "BOLT_KEY", contextWindow: 1_000_000 },
  ],
  defaultModel: { provider: "bolt", modelId: "a-longer-name" },
};

function print(json: boolean, env: Record<string, string> = {}): { code: number; lines: string[] } {
  const lines: string[] = [];
  const config = configOf({ OMNID_CONFIG: "/c.json", ...env }, { "/c.json": JSON.stringify(FILE) });
  return { code: models(config, { json, out: (line) => lines.push(line) }), lines };
}

describe("models", () => {
  test("says of each model what it speaks, what it holds, whether it can be used and why not", () => {
    expect(print(false)).toEqual({
      code: 0,
      lines: [
        "   MODEL               PROTOCOL       CONTEXT  AVAILABLE",
        "   acme/one            openai-chat    128,000  yes",
        "*  bolt/a-longer-name  gemini       1,000,000  no: BOLT_KEY is not set",
        "   demo/demo           demo           128,000  yes",
        "* is what a Session gets unless it names another.",
      ],
    });
  });

  test("lists the models of a provider whose key is set, and OMNID_MODEL decides the default", () => {
    const env = { ANTHROPIC_API_KEY: "sk-ant-5678", OMNID_MODEL: "anthropic/claude-haiku-4-5", BOLT_KEY: "b" };
    const { lines } = print(false, env);
    expect(lines.find((line) => line.startsWith("*"))).toMatch(
      /^\* {2}anthropic\/claude-haiku-4-5 +anthropic-messages +200,000 {2}yes$/,
    );
    expect(lines.filter((line) => / no: /.test(line))).toEqual([]);
  });

  test("as JSON it is what GET /api/models answers", () => {
    const list = JSON.parse(print(true).lines.join("\n"));
    expect(modelListSchema.parse(list)).toEqual(list);
    expect(list.defaultModel).toEqual(FILE.defaultModel);
    expect(list.models[1]).toMatchObject({ available: false, reason: "BOLT_KEY is not set" });
  });

  test.each([false, true])("shows neither a key nor an address (JSON: %s)", (json) => {
    const text = print(json, { OPENAI_API_KEY: "sk-openai-9012" }).lines.join("\n");
    expect(text).toContain("gpt-5-mini");
    expect(text).not.toMatch(/sk-|10\.0\.0\.1|https?:/);
  });

  test("a name cannot steer the terminal", () => {
    const lines: string[] = [];
    const odd = { models: [{ provider: "a", modelId: "x\u001b[2J", protocol: "openai-chat" }] };
    models(configOf({ OMNID_CONFIG: "/c" }, { "/c": JSON.stringify(odd) }), { out: (line) => lines.push(line) });
    expect(lines.join("\n")).not.toContain("\u001b");
  });
});
