import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, inject, test } from "vitest";
import { doctor } from "../../src/cli/doctor.js";
import { configOf } from "../support/http-server.js";
import { everything } from "../support/mcp-servers.js";
import { temporaryFolder } from "../support/server.js";
import { type Script, startUpstream, type Upstream } from "../support/upstream.js";

const KEY = "sk-doctor-0123456789";
const PROTOCOLS = ["openai-chat", "openai-responses", "anthropic-messages", "gemini"] as const;
type Spoken = (typeof PROTOCOLS)[number];

const ANSWERS: Record<Spoken, object[]> = {
  "openai-chat": [
    { choices: [{ index: 0, delta: { content: "Ready." }, finish_reason: "stop" }] },
    { choices: [], usage: { prompt_tokens: 12, completion_tokens: 2, total_tokens: 14 } },
  ],
  "openai-responses": [
    { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Ready." },
    {
      type: "response.completed",
      response: { status: "completed", output: [], usage: { input_tokens: 12, output_tokens: 2, total_tokens: 14 } },
    },
  ],
  "anthropic-messages": [
    { type: "message_start", message: { content: [], usage: { input_tokens: 12, output_tokens: 2 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Ready." } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" } },
    { type: "message_stop" },
  ],
  gemini: [
    {
      candidates: [{ content: { parts: [{ text: "Ready." }] }, finishReason: "STOP" }],
      usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 2, totalTokenCount: 14 },
    },
  ],
};
const LIMITS: Record<Spoken, object> = {
  "openai-chat": { max_tokens: 16 },
  "openai-responses": { max_output_tokens: 16 },
  "anthropic-messages": { max_tokens: 16 },
  gemini: { generationConfig: { maxOutputTokens: 16 } },
};

const fileOf = (upstream: Upstream, protocol: Spoken = "openai-chat", more: object = {}): string =>
  JSON.stringify({
    models: [{ provider: "acme", modelId: "one", protocol, baseUrl: upstream.url, apiKey: KEY, ...more }],
  });

async function examine(file: string, only: string[] = ["acme/one"]): Promise<{ code: number; lines: string[] }> {
  const lines: string[] = [];
  const config = configOf({ OMNID_CONFIG: "/c.json" }, { "/c.json": file });
  return { code: await doctor(config, { only, out: (line) => lines.push(line) }), lines };
}

const refused = (status: number, body: unknown, headers: Record<string, string> = {}): Script => ({
  status,
  headers: { "content-type": "application/json", ...headers },
  steps: [typeof body === "string" ? body : JSON.stringify(body)],
});

describe("doctor", () => {
  test.each(PROTOCOLS)("%s: asks for a word in 16 tokens without tools, and says what came back", async (protocol) => {
    const upstream = await startUpstream();
    upstream.script({ steps: ANSWERS[protocol] as Record<string, unknown>[] });
    const { code, lines } = await examine(fileOf(upstream, protocol, { maxOutputTokens: 9999 }));
    expect(code).toBe(0);
    expect(lines).toEqual([
      expect.stringMatching(/^ok {4}acme\/one: said "Ready\." in \d+ ms \(12 tokens in, 2 out\)$/),
      "1 answered, 0 failed, 0 not available",
    ]);
    expect(upstream.requests).toHaveLength(1);
    const { body } = upstream.requests[0] as { body: object };
    expect(body).toMatchObject(LIMITS[protocol]);
    expect(body).not.toHaveProperty("tools");
  });

  test.each([
    ["a bad key", refused(401, { error: { message: `Incorrect API key provided: ${KEY}` } }), "auth, HTTP 401", "key"],
    ["a wrong name", refused(404, { error: { message: "no such model" } }), "invalid_request, HTTP 404", "modelId"],
    ["a limit", refused(429, { error: { message: "slow down" } }), "rate_limit, HTTP 429", "limit"],
    ["no room", refused(503, "<html><b>busy</b></html>"), "overloaded, HTTP 503", "later"],
    ["another protocol", { steps: ["hello there\n\n"] }, "malformed", "protocol"],
    ["a cut", { steps: [], end: "reset" } as Script, "network", "baseUrl"],
  ] as const)(
    "%s is said with its kind and what to do, once, and fails the command",
    async (_, script, kind, advice) => {
      const upstream = await startUpstream();
      upstream.script(script as Script);
      const { code, lines } = await examine(fileOf(upstream));
      expect(code).toBe(1);
      expect(lines[0]).toMatch(/^fail {2}acme\/one: /);
      expect(lines[0]).toContain(`${kind}: `);
      expect(lines[0]?.slice(lines[0].indexOf(kind))).toContain(advice);
      expect(lines.join("\n")).not.toContain(KEY);
      expect(upstream.requests).toHaveLength(1);
    },
  );

  test("a key is not shown where another provider repeats it, and words cannot steer the terminal", async () => {
    const upstream = await startUpstream();
    upstream.script(refused(400, { error: { message: `\u001b[2J told me ${"sk-other-987654"}` } }));
    const other = { provider: "b", modelId: "x", protocol: "openai-chat", apiKey: "sk-other-987654" };
    const file = JSON.parse(fileOf(upstream));
    const { lines } = await examine(JSON.stringify({ models: [...file.models, other] }));
    expect(lines.join("\n")).not.toContain("sk-other");
    expect(lines.join("\n")).not.toContain("\u001b");
  });

  test("a model that thinks through its 16 tokens has answered", async () => {
    const upstream = await startUpstream();
    upstream.script({ steps: [{ choices: [{ index: 0, delta: { reasoning: "hm" }, finish_reason: "length" }] }] });
    const { code, lines } = await examine(fileOf(upstream));
    expect(code).toBe(0);
    expect(lines[0]).toContain("said nothing within 16 tokens");
  });

  test("so has one whose server makes an error of it", async () => {
    const upstream = await startUpstream();
    const message = "Could not finish the message because max_tokens or model output limit was reached.";
    upstream.script(refused(400, { error: { message, type: "invalid_request_error" } }));
    const { code, lines } = await examine(fileOf(upstream));
    expect(code).toBe(0);
    expect(lines[0]).toMatch(/^ok .*said nothing within 16 tokens/);
  });

  test("what is not available is left out, unless it is named", async () => {
    const upstream = await startUpstream();
    const file = fileOf(upstream, "gemini", { apiKey: undefined, apiKeyEnv: "NO_SUCH_KEY" });
    const all = await examine(file, []);
    expect([all.code, all.lines[0]]).toEqual([0, "skip  acme/one: NO_SUCH_KEY is not set"]);
    expect(all.lines[1]).toMatch(/^ok {4}demo\/demo: /);
    const named = await examine(file, ["acme/one", "acme/two"]);
    expect(named.code).toBe(1);
    expect(named.lines.at(-1)).toBe("0 answered, 2 failed, 0 not available");
    expect(upstream.requests).toEqual([]);
  });
});

describe("as a command", () => {
  const run = (args: string[], env: Record<string, string>) =>
    new Promise<{ code: number; stdout: string; stderr: string }>((resolve) => {
      const options = { env: { PATH: process.env.PATH, ...env } };
      execFile(process.execPath, [inject("cli"), ...args], options, (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
      );
    });

  test("doctor and models end by themselves, with the code that says how it went", async () => {
    const upstream = await startUpstream();
    const file = join(temporaryFolder(), "config.json");
    writeFileSync(file, fileOf(upstream));
    upstream.script(refused(401, { error: { message: `no: ${KEY}` } }));
    const examined = await run(["doctor", "acme/one"], { OMNID_CONFIG: file });
    expect(examined).toMatchObject({ code: 1, stdout: expect.stringContaining("auth, HTTP 401"), stderr: "" });
    expect(examined.stdout).not.toContain(KEY);
    expect(await run(["models"], { OMNID_CONFIG: file })).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("*  acme/one"),
    });
    for (const command of ["models", "doctor"]) {
      const wrong = await run([command], { OMNID_CONFIG: file, PORT: "high" });
      expect(wrong).toEqual({ code: 78, stdout: "", stderr: "omnid: PORT: must be a whole number\n" });
    }
  });
});

test("each MCP server is connected to and says what it has; one that is not there is named with the reason", async () => {
  const mcpServers = { all: everything(), none: { command: "/no/such/program", args: [], env: {} } };
  const { code, lines } = await examine(JSON.stringify({ mcpServers }), []);
  expect(code).toBe(1);
  expect(lines.slice(-3)).toEqual([
    expect.stringMatching(/^ok {4}mcp all: \d+ tools \(mcp__all__\S+, .* more\)$/),
    expect.stringMatching(/^fail {2}mcp none: .+[^.]$/),
    "MCP servers: 1 connected, 1 failed",
  ]);
  const named = await examine(JSON.stringify({ mcpServers }), ["demo/demo"]);
  expect(named.code).toBe(0);
  expect(named.lines.join()).not.toContain("mcp");
});
