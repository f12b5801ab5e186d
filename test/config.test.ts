import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isLoopback, loadConfig } from "../src/config.js";
import { viewOf } from "../src/model-registry.js";
import { configOf } from "./support/http-server.js";

const FILE = "/etc/omnid.json";

function problemsOf(env: Record<string, string>, file?: string): string[] {
  const loaded = loadConfig({ HOME: "/home/ada", ...env }, () => {
    if (file === undefined) throw Object.assign(new Error("no"), { code: "ENOENT" });
    return file;
  });
  return loaded.ok ? [] : loaded.problems;
}

const withFile = (value: unknown, env: Record<string, string> = {}) =>
  configOf({ OMNID_CONFIG: FILE, ...env }, { [FILE]: JSON.stringify(value) });
const problemsIn = (value: unknown, env: Record<string, string> = {}) =>
  problemsOf({ OMNID_CONFIG: FILE, ...env }, typeof value === "string" ? value : JSON.stringify(value));

describe("variables", () => {
  test("an empty environment gives the defaults of the contract", () => {
    const loaded = loadConfig({ HOME: "/home/ada" }, () => "");
    expect(loaded).toMatchObject({
      ok: true,
      config: {
        host: "127.0.0.1",
        port: 8420,
        dataDir: "/home/ada/.omnid",
        tokens: [],
        corsOrigins: [],
        allowedHosts: [],
        replayEvents: 10_000,
        replayBytes: 8_388_608,
        replayTotalBytes: 268_435_456,
        heartbeatMs: 15_000,
        retry: { baseMs: 2_000, maxMs: 30_000, limit: 5 },
        requestTimeoutMs: 120_000,
        approvalTimeoutMs: undefined,
        allowOutside: false,
        maxSessions: undefined,
        maxTasks: undefined,
        maxStreams: undefined,
        bodyLimit: 20_971_520,
        shutdownMs: 10_000,
        fsync: "interval",
        demoDelayMs: 20,
        logLevel: "info",
        maxTurns: -1,
        secrets: [],
      },
    });
  });

  test("every bad variable is named, all in one go, with those of the file", () => {
    const bad = {
      PORT: "80a",
      OMNID_TOKENS: "a:b,",
      CORS_ORIGINS: "https://ok.example,ftp://no.example",
      OMNID_ALLOWED_HOSTS: "what ever",
      OMNID_MODEL: "justaname",
      OPENAI_BASE_URL: "not a url",
      OMNID_REPLAY_EVENTS: "0",
      OMNID_REPLAY_TOTAL_BYTES: "256M",
      OMNID_HEARTBEAT_MS: "-1",
      OMNID_RETRY_LIMIT: "1.5",
      OMNID_REQUEST_TIMEOUT_MS: "99999999999",
      OMNID_ALLOW_OUTSIDE: "yes",
      OMNID_MAX_STREAMS: "none",
      OMNID_FSYNC: "maybe",
      LOG_LEVEL: "loud",
    };
    const problems = problemsOf({ ...bad, OMNID_CONFIG: FILE }, '{"models": 1}');
    for (const name of Object.keys(bad)) expect(problems.filter((p) => p.startsWith(`${name}: `))).toHaveLength(1);
    expect(problems.some((p) => p.startsWith("OMNID_CONFIG: models: "))).toBe(true);
  });

  test("a variable that is set to nothing counts as not set, but for OMNID_TOKENS", () => {
    expect(problemsOf({ PORT: "", OMNID_CONFIG: "", OPENAI_API_KEY: "", CORS_ORIGINS: "" })).toEqual([]);
    expect(problemsOf({ OMNID_TOKENS: "" })).toEqual(["OMNID_TOKENS: token 1 is empty"]);
  });

  test.each([
    ["~", "/home/ada"],
    ["~/data", "/home/ada/data"],
    ["/var/lib/omnid", "/var/lib/omnid"],
    ["~bob/data", `${process.cwd()}/~bob/data`],
  ])("OMNID_DATA_DIR %s is %s", (given, dataDir) => {
    expect(loadConfig({ HOME: "/home/ada", OMNID_DATA_DIR: given }, () => "")).toMatchObject({ config: { dataDir } });
  });

  test("any text for a number gives either that number or a problem that names the variable", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (text) => {
        const loaded = loadConfig({ OMNID_REPLAY_BYTES: text }, () => "");
        if (loaded.ok) expect(String(loaded.config.replayBytes)).toBe(text.replace(/^0+(?=\d)/, ""));
        else expect(loaded.problems[0]).toMatch(/^OMNID_REPLAY_BYTES: /);
      }),
    );
  });
});

describe("tokens", () => {
  test("a name owns its Sessions; a bare secret is known by a hash that no name can equal", () => {
    const [ada, bare] = configOf({ OMNID_TOKENS: "ada:s3cret:with:colons,bare-secret" }).tokens;
    expect(ada).toEqual({ owner: "ada", secret: "s3cret:with:colons" });
    expect(bare?.owner).toMatch(/^sha256:[0-9a-f]{64}$/);
    expect(bare?.owner).not.toContain("bare-secret");
  });

  test.each([
    ["a:one,b:one", "has the secret of another"],
    ["a:one,a:two", "has the name of another"],
    ["same,same", "has the secret of another"],
    ["a:", "has a name but no secret"],
    [":hunter", "the name of token 1"],
    ["one,,two", "token 2 is empty"],
    ["one, two", "white space"],
    ["naïve", "no header can carry"],
    ["hunter two", "white space"],
  ])("OMNID_TOKENS=%s is refused, without a secret in the message", (text, message) => {
    const problems = problemsOf({ OMNID_TOKENS: text });
    expect(problems.join("\n")).toContain(message);
    expect(problems.join("\n")).not.toMatch(/one|two|hunter|naïve/);
  });

  test.each(["0.0.0.0", "::", "192.168.1.5", "example.org", "[::]"])(
    "H5: HOST=%s without a token is refused, and with one is fine",
    (host) => {
      expect(problemsOf({ HOST: host })).toHaveLength(1);
      expect(problemsOf({ HOST: host })[0]).toMatch(/^HOST: .*OMNID_TOKENS/);
      expect(problemsOf({ HOST: host, OMNID_TOKENS: "a:b" })).toEqual([]);
    },
  );

  test("H5: bad tokens do not hide that the address is open, nor count as a lock", () => {
    expect(loadConfig({ HOST: "0.0.0.0", OMNID_TOKENS: "" }, () => "").ok).toBe(false);
  });

  test.each(["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])("%s is this machine alone", (host) => {
    expect(isLoopback(host)).toBe(true);
  });

  test.each(["127.1", "0.0.0.0", "localhost.evil.example", "127.0.0.1.evil.example", "::2", ""])(
    "%s is not",
    (host) => {
      expect(isLoopback(host)).toBe(false);
    },
  );
});

describe("the file", () => {
  test("says nothing of compaction: 256,000 tokens, any number of turns, a summary", () => {
    const { compaction } = configOf({});
    expect(compaction).toMatchObject({ maxContextLength: 256_000, maxSessionTurns: -1, mode: "summarize" });
    expect(compaction.prompt).toContain("summary");
  });

  test("F21: compaction by length can be switched off, and no length is 0", () => {
    const of = (compaction: object) => problemsIn({ compaction });
    expect(of({ maxContextLength: -1, maxSessionTurns: 3, mode: "discard", prompt: "Sum up." })).toEqual([]);
    expect(of({ maxContextLength: 0, prompt: " " })).toHaveLength(2);
  });

  test("each problem comes with its path", () => {
    const problems = problemsIn({
      models: [
        { provider: "local", modelId: "a", protocol: "telepathy" },
        {
          provider: "local",
          modelId: "b",
          protocol: "openai-chat",
          baseUrl: "nowhere",
          cost: { input: -1, output: 1 },
        },
        { provider: "a/b", modelId: "c", protocol: "demo", apiKey: "k", apiKeyEnv: "K" },
      ],
      maxTurns: 0,
      compaction: { mode: "forget" },
      mcpServers: { files: { command: "" } },
      sytemPrompt: "typo",
    }).join("\n");
    for (const path of ["models[0].protocol", "models[1].baseUrl", "models[1].cost.input", "models[2].provider"]) {
      expect(problems).toContain(`OMNID_CONFIG: ${path}: `);
    }
    for (const path of ["maxTurns", "compaction.mode", "mcpServers.files"]) expect(problems).toContain(path);
    expect(problems).toContain("sytemPrompt");
  });

  test("each problem of an MCP server comes with its path, and none shows a value", () => {
    const problems = problemsIn({
      mcpServers: {
        neither: { args: ["a"] },
        both: { command: "x", url: "https://far.example" },
        empty: { command: "" },
        odd: { command: "x", args: [1], env: { "A=B": "v", C: "nul-value\0" }, cwd: "/" },
        address: { url: "ftp://far.example" },
        user: { url: "https://ada:pass-in-url@far.example" },
        headers: { url: "https://far.example", headers: { "a b": "v", ok: "header-value\n" } },
        "": { command: "x" },
      },
    });
    const paths = problems.map((problem) => /^OMNID_CONFIG: (mcpServers.*?): \S/.exec(problem)?.[1]);
    expect([...new Set(paths)].sort()).toEqual([
      "mcpServers.",
      "mcpServers.address.url",
      "mcpServers.both",
      "mcpServers.empty.command",
      "mcpServers.headers.headers.a b",
      "mcpServers.headers.headers.ok",
      "mcpServers.neither",
      "mcpServers.odd",
      "mcpServers.odd.args[0]",
      "mcpServers.odd.env.A=B",
      "mcpServers.odd.env.C",
      "mcpServers.user.url",
    ]);
    expect(problems.join("\n")).not.toMatch(/nul-value|header-value|pass-in-url/);
  });

  test("settings of an MCP server that stand everywhere are no secrets; what its address holds is one", () => {
    const { secrets } = withFile({
      mcpServers: {
        near: {
          command: "x",
          env: { PATH: "/usr/bin:/bin:/x", DATA_DIR: "/var/lib/data", TOKEN: "/k/begins/like/a/path" },
        },
        far: { url: "https://far.example/?key=in-the-address", headers: { accept: "application/json" } },
      },
    });
    expect([...secrets].sort()).toEqual(["/k/begins/like/a/path", "in-the-address"]);
  });

  test("a file that is not JSON is a problem that quotes none of it", () => {
    const problems = problemsIn('{"models": [{"apiKey": "sk-very-secret" oops}]}').join();
    expect(problems).toContain("OMNID_CONFIG: is not JSON");
    expect(problems).not.toContain("sk-very-secret");
  });

  test("a file that cannot be read is a problem with its path and cause", () => {
    expect(problemsOf({ OMNID_CONFIG: "/nowhere.json" })).toEqual(["OMNID_CONFIG: cannot read /nowhere.json: ENOENT"]);
  });

  test("the same model twice is a problem", () => {
    const model = { provider: "p", modelId: "m", protocol: "demo" };
    expect(problemsIn({ models: [model, model] })).toEqual(["OMNID_CONFIG: models[1]: p/m is listed twice"]);
  });
});

describe("models", () => {
  const local = { provider: "local", modelId: "qwen", protocol: "openai-chat", baseUrl: "http://127.0.0.1:1/v1/" };

  test("without anything there is the demo model, and it is the default", () => {
    const { models } = configOf();
    expect(models.defaultModel).toEqual({ provider: "demo", modelId: "demo" });
    expect(models.find("demo", "demo")).toMatchObject({ available: true, spec: { protocol: "demo" } });
  });

  test("a key alone makes its provider usable, and its first model the default", () => {
    const { models } = configOf({ OPENAI_API_KEY: "sk-1234567890" });
    expect(models.defaultModel.provider).toBe("openai");
    expect(models.find("openai", models.defaultModel.modelId)).toMatchObject({
      available: true,
      spec: { apiKey: "sk-1234567890", baseUrl: "https://api.openai.com/v1" },
    });
  });

  test("models that reason beside tools by Responses alone are spoken to so, but not at another address", () => {
    const env = { OPENAI_API_KEY: "sk-1234567890", OMNID_MODEL: "openai/gpt-5.6-luna" };
    const protocols = (more: Record<string, string>) => {
      const { models } = configOf({ ...env, ...more });
      return ["gpt-6.1-sol", "gpt-5.6-luna", "gpt-5"].map((modelId) => models.find("openai", modelId)?.spec.protocol);
    };
    expect(protocols({})).toEqual(["openai-responses", "openai-responses", "openai-chat"]);
    expect(protocols({ OPENAI_BASE_URL: "http://127.0.0.1:9/v1" })).toEqual(Array(3).fill("openai-chat"));
  });

  test("OPENAI_BASE_URL moves the provider, without the slash at its end", () => {
    const { models } = configOf({ OPENAI_API_KEY: "sk-1234567890", OPENAI_BASE_URL: "http://127.0.0.1:9/v1/" });
    expect(models.models[0]?.spec.baseUrl).toBe("http://127.0.0.1:9/v1");
  });

  test("a model of the file comes before those of a key", () => {
    const { models } = withFile({ models: [local] }, { OPENAI_API_KEY: "sk-1234567890" });
    expect(models.defaultModel).toEqual({ provider: "local", modelId: "qwen" });
    expect(models.find("local", "qwen")?.spec).toMatchObject({
      baseUrl: "http://127.0.0.1:1/v1",
      contextWindow: 128_000,
    });
  });

  test("OMNID_MODEL wins over the file's default, and that over the order", () => {
    const models = [local, { ...local, modelId: "second" }];
    const file = { models, defaultModel: { provider: "local", modelId: "second" } };
    expect(withFile(file).models.defaultModel.modelId).toBe("second");
    expect(withFile(file, { OMNID_MODEL: "local/qwen" }).models.defaultModel.modelId).toBe("qwen");
  });

  test("OMNID_MODEL may name a model of a built-in provider that the catalogue does not know", () => {
    const { models } = configOf({ OPENAI_API_KEY: "sk-1234567890", OMNID_MODEL: "openai/ft:gpt/next" });
    expect(models.defaultModel).toEqual({ provider: "openai", modelId: "ft:gpt/next" });
    expect(models.find("openai", "ft:gpt/next")?.available).toBe(true);
  });

  test("whether a model thinks is what the file says, else what its name tells", () => {
    const responses = { ...local, protocol: "openai-responses" };
    const models = [
      { ...responses, modelId: "o3" },
      { ...responses, modelId: "gpt-5", thinking: false },
      { ...responses, modelId: "mine", thinking: true },
      { ...responses, modelId: "gpt-4.1" },
    ];
    const registry = withFile({ models }, { OPENAI_API_KEY: "sk-1234567890", OMNID_MODEL: "openai/o4-mini" }).models;
    const thinks = (provider: string, modelId: string) => registry.find(provider, modelId)?.spec.thinking;
    expect(models.map(({ modelId }) => thinks("local", modelId))).toEqual([true, false, true, false]);
    expect(thinks("openai", "o4-mini")).toBe(true);
  });

  test("a default that names no model is a problem of whoever named it", () => {
    expect(problemsOf({ OMNID_MODEL: "nobody/nothing" })).toEqual([
      "OMNID_MODEL: nobody/nothing is no model that is configured",
    ]);
    expect(problemsIn({ defaultModel: { provider: "x", modelId: "y" } })[0]).toMatch(/^OMNID_CONFIG: defaultModel: /);
  });

  test("a missing apiKeyEnv is not fatal: the model is listed with the reason, and is the default all the same", () => {
    const { models } = withFile({ models: [{ ...local, apiKeyEnv: "LOCAL_KEY" }] });
    const [first] = models.models;
    expect(first && viewOf(first)).toMatchObject({ available: false, reason: "LOCAL_KEY is not set" });
    expect(models.defaultModel).toEqual({ provider: "local", modelId: "qwen" });
    const keyed = withFile({ models: [{ ...local, apiKeyEnv: "LOCAL_KEY" }] }, { LOCAL_KEY: "secret-key" });
    expect(keyed.models.find("local", "qwen")).toMatchObject({ available: true, spec: { apiKey: "secret-key" } });
  });

  test("a provider's key never goes to an address that is not the provider's", () => {
    const stray = [
      { provider: "openai", modelId: "elsewhere", protocol: "openai-chat", baseUrl: "http://other.example/v1" },
      { provider: "anthropic", modelId: "odd", protocol: "openai-chat" },
    ];
    const { models } = withFile({ models: stray }, { OPENAI_API_KEY: "sk-openai", ANTHROPIC_API_KEY: "sk-anthropic" });
    expect(models.find("openai", "elsewhere")?.spec.apiKey).toBeUndefined();
    expect(models.find("anthropic", "odd")?.spec.apiKey).toBeUndefined();
  });

  test("every secret is collected for redaction, and none is in what a client is told of the models", () => {
    const config = withFile(
      {
        models: [
          { ...local, apiKey: "file-key-1" },
          { ...local, modelId: "env", apiKeyEnv: "LOCAL_KEY" },
        ],
        mcpServers: {
          far: { url: "https://far.example", headers: { authorization: "Bearer far-away-token" } },
          near: { command: "x", env: { MODE: "true", KEY: "near-by-token" } },
        },
      },
      { LOCAL_KEY: "env-key-1", OMNID_TOKENS: "ada:token-1,token-2", GEMINI_API_KEY: "gemini-key" },
    );
    const keys = ["file-key-1", "env-key-1", "token-1", "token-2", "gemini-key"];
    const settings = ["Bearer far-away-token", "far-away-token", "near-by-token"];
    expect([...config.secrets].sort()).toEqual([...keys, ...settings].sort());
    const told = JSON.stringify(config.models.models.map(viewOf));
    for (const secret of config.secrets) expect(told).not.toContain(secret);
    expect(told).not.toContain("127.0.0.1");
  });
});
