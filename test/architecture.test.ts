// Who may import whom. The import lines are read, so a new edge shows up here before it becomes a habit.

import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";

const ROOT = fileURLToPath(new URL("..", import.meta.url));

interface Source {
  /** From the project's root, for example `src/engine/run.ts`. */
  path: string;
  text: string;
  /** Our own files that it imports, as paths from the root. */
  own: string[];
  packages: string[];
}

function filesIn(directory: string, pattern = /\.tsx?$/): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    if (statSync(path).isDirectory()) return filesIn(path, pattern);
    return pattern.test(name) ? [path] : [];
  });
}

const sources: Source[] = [...filesIn(join(ROOT, "src")), ...filesIn(join(ROOT, "routes"))].map((path) => {
  const text = readFileSync(path, "utf8");
  const specifiers = [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map((match) => match[1] as string);
  return {
    path: relative(ROOT, path),
    text,
    own: specifiers
      .filter((specifier) => specifier.startsWith("."))
      .map((specifier) => relative(ROOT, join(dirname(path), specifier)).replace(/\.js$/, ".ts")),
    packages: specifiers.filter((specifier) => !specifier.startsWith(".") && !specifier.startsWith("node:")),
  };
});

/** The part of the house a file belongs to: `engine`, `routes`, or the name of a file at the top of `src`. */
function partOf(path: string): string {
  const [top, second] = path.split("/");
  return top === "src" ? (second as string).replace(/\.ts$/, "") : (top as string);
}

// What each part may import, besides itself and the leaves.
const LEAVES = ["append", "clock", "exit-codes", "reason-of", "result", "version"];
const ALLOWED: Record<string, string[]> = {
  append: [],
  clock: [],
  "exit-codes": [],
  "reason-of": [],
  result: [],
  version: [],
  "mcp-settings": [],
  protocol: [],
  channel: [],
  // Of http the types alone: see below.
  client: ["protocol", "http"],
  engine: ["protocol"],
  llm: ["protocol", "engine"],
  tools: ["protocol", "engine", "mcp-settings"],
  trace: ["protocol", "engine"],
  session: ["protocol", "engine", "llm", "tools", "trace", "channel"],
  "config-file": ["llm", "engine", "session", "protocol", "mcp-settings"],
  "built-in-models": ["llm"],
  "model-registry": ["built-in-models", "llm", "engine", "session", "config-file"],
  config: ["config-file", "model-registry", "session"],
  http: ["protocol", "engine", "session", "channel", "config", "config-file", "model-registry", "routes", "llm"],
  routes: ["protocol", "engine", "session", "channel", "http", "config"],
  cli: ["protocol", "engine", "llm", "model-registry", "config", "main", "client", "http", "session", "tools"],
  measure: ["channel", "http", "llm", "session", "tools"],
  web: ["client"],
  main: [
    "channel",
    "config",
    "http",
    "llm",
    "measure",
    "model-registry",
    "routes",
    "session",
    "tools",
    "trace",
    "protocol",
    "engine",
  ],
};

test("every part of the house is known to the rules", () => {
  expect([...new Set(sources.map((source) => partOf(source.path)))].filter((part) => !(part in ALLOWED))).toEqual([]);
});

test("imports point down", () => {
  const wrong = sources.flatMap(({ path, own }) => {
    const part = partOf(path);
    const allowed = new Set([part, ...LEAVES, ...(ALLOWED[part] ?? [])]);
    return own.filter((target) => !allowed.has(partOf(target))).map((target) => `${path} imports ${target}`);
  });
  expect(wrong).toEqual([]);
});

describe("what only one place may know", () => {
  const only: [string, RegExp, (path: string) => boolean][] = [
    ["Fastify", /^(fastify|@fastify\/|fastify-type-provider-zod)/, (p) => /^(src\/http|routes)\//.test(p)],
    ["undici", /^undici/, (p) => p === "src/llm/http-sse.ts"],
    ["eventsource-parser", /^eventsource-parser/, (p) => p === "src/llm/http-sse.ts" || p.startsWith("src/client/")],
    ["commander", /^commander/, (p) => p === "src/cli.ts"],
    ["the MCP SDK", /^@modelcontextprotocol\//, (p) => /^src\/tools\/mcp-(client|stdio|http)\.ts$/.test(p)],
    ["prom-client", /^prom-client/, (p) => p === "src/http/metrics.ts"],
  ];
  test.each(only)("%s", (_name, pattern, allowed) => {
    const wrong = sources.filter(({ path, packages }) => packages.some((p) => pattern.test(p)) && !allowed(path));
    expect(wrong.map((source) => source.path)).toEqual([]);
  });

  test("the MCP SDK is loaded where a server is configured, and nowhere else", () => {
    const imports = sources.flatMap(({ text }) => text.match(/^.*"@modelcontextprotocol\/.*$/gm) ?? []);
    expect(imports.length).toBeGreaterThan(0);
    expect(imports.filter((line) => !/^import type |await import\(/.test(line))).toEqual([]);
  });

  test("what runs in a browser: the client, with nothing of Node, the server or its schemas in it", () => {
    const inBundle = new Set(["src/protocol/guards.ts", "src/protocol/partial-content.ts", "src/result.ts"]);
    const wrong = sources
      .filter(({ path }) => path.startsWith("src/client/") || inBundle.has(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/^(?:import|export) (?!type )[^;]*?from "([^"]+)"/gm)]
          .map(([, specifier = ""]) => specifier)
          .filter((specifier) => !/^\.\/[a-z-]+\.js$|^eventsource-parser$/.test(specifier))
          .filter(
            (specifier) => !inBundle.has(relative(ROOT, join(ROOT, dirname(path), specifier)).replace(/\.js$/, ".ts")),
          )
          .map((specifier) => `${path} imports ${specifier}`),
      );
    expect(wrong).toEqual([]);
  });

  test("the page knows the server by the client alone, and the client by its front door", () => {
    const wrong = sources
      .filter(({ path }) => path.startsWith("src/web/"))
      .flatMap(({ path, own }) => own.map((target) => ({ path, target })))
      .filter(({ target }) => !target.startsWith("src/web/") && target !== "src/client/index.ts");
    expect(wrong).toEqual([]);
  });

  test("what the page is bundled of stays out of the server", () => {
    const bundled = /^(?:preact|@preact\/|marked$|dompurify$|highlight\.js)/;
    const wrong = sources.filter(
      ({ path, packages }) => !path.startsWith("src/web/") && packages.some((p) => bundled.test(p)),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  test("the system's time and randomness", () => {
    // Waiting and stamping go through a Clock, so that a test owns time.
    const allowed = ["src/clock.ts", "src/client/client-clock.ts", "src/main.ts"];
    // The page has the browser's own, and its tests are of a real browser.
    const wrong = sources.filter(
      ({ path, text }) =>
        !allowed.includes(path) &&
        !path.startsWith("src/web/") &&
        /\b(Date\.now|setTimeout|setInterval|AbortSignal\.timeout|Math\.random)\(/.test(text),
    );
    expect(wrong.map((source) => source.path)).toEqual([]);
  });

  test("where ids come from", () => {
    // Everybody else takes `newId`, so that a test owns it.
    const allowed = [
      "src/main.ts",
      // Its token is a secret, and tells this process from all that there ever were.
      "src/session/lease.ts",
      // A command is a program of its own: what it makes names one prompt to a server.
      "src/cli/chat.ts",
    ];
    const wrong = sources.filter(
      ({ path, text }) =>
        !allowed.includes(path) &&
        !path.startsWith("src/web/") &&
        /\brandom(UUID|Bytes|Int|FillSync)?\b.*from "node:crypto"|\b(crypto\.random\w+|getRandomValues)\(/.test(text),
    );
    expect(wrong.map((source) => source.path)).toEqual([]);
  });
});

test("nothing of ours goes by the name of Node's `process`", () => {
  const wrong = sources.filter(({ text }) =>
    /\b(const|let) (\{[^}]*\b)?process\b|[(,]\s*process: (?!NodeJS)/.test(text),
  );
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test("no list of unknown length is passed as arguments: above some hundred thousand they overflow the stack", () => {
  // The problems of a configuration, and a page of tools that is cut to its bound.
  const bounded = ["src/append.ts", "src/config.ts", "src/tools/mcp-client.ts"];
  const spread = /(\.(push|unshift)|Math\.(max|min)|fromCharCode)\(\.\.\./;
  const wrong = sources.filter(({ path, text }) => !bounded.includes(path) && spread.test(text));
  expect(wrong.map(({ path }) => path)).toEqual([]);
});

test("the page about the life of a Task is short and names files that are there", () => {
  const page = readFileSync(join(ROOT, "src/session/README.md"), "utf8");
  const named = [...page.matchAll(/[\w/-]+\.ts\b/g)].map(([name]) => name);
  const paths = new Set(sources.map(({ path }) => path));
  expect(named.length).toBeGreaterThan(15);
  expect(named.filter((name) => !["", "src/", "src/session/"].some((at) => paths.has(at + name)))).toEqual([]);
  expect(page.split("\n").length - 1).toBeLessThanOrEqual(60);
});

describe("the shape of files", () => {
  test("none is longer than 300 lines", () => {
    const styles = filesIn(join(ROOT, "src"), /\.css$/).map((path) => ({
      path: relative(ROOT, path),
      text: readFileSync(path, "utf8"),
    }));
    const long = [...sources, ...styles].map(({ path, text }) => [path, text.split("\n").length - 1] as const);
    expect(long.filter(([, lines]) => lines > 300)).toEqual([]);
  });

  test("names are kebab-case and exports are named", () => {
    expect(sources.filter(({ path }) => !/^[a-z0-9-/]+(\.d)?\.tsx?$/.test(path)).map(({ path }) => path)).toEqual([]);
    expect(sources.filter(({ text }) => /^export default /m.test(text)).map(({ path }) => path)).toEqual([]);
  });
});

test("the version is the package's", async () => {
  const { VERSION } = await import("../src/version.js");
  expect(VERSION).toBe(JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")).version);
});

test("what a test file shares is given back by atFileEnd: an afterAll inside of a hook is never called", () => {
  const wrong = filesIn(join(ROOT, "test")).filter((path) =>
    /(atEnd: |Upstream\()afterAll/.test(readFileSync(path, "utf8")),
  );
  expect(wrong.map((path) => relative(ROOT, path))).toEqual([]);
});
