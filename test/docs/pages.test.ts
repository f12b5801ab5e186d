// What the pages say is held to what is there: links, code that stands in a file too, variables, calls, settings.

import { execFile, spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parseConfigFile } from "../../src/config-file.js";
import { startOmnid, temporaryFolder } from "../support/server.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const DOCS = join(ROOT, "docs");
const read = (path: string) => readFileSync(path, "utf8");
const pages = readdirSync(DOCS)
  .filter((name) => name.endsWith(".md"))
  .map((name) => join(DOCS, name));
const page = (name: string) => read(join(DOCS, name));
const withoutCode = (text: string) => text.replaceAll(/^(`{3,}).*\n[\s\S]*?^\1$/gm, "");

test("each link and anchor within the project leads somewhere", () => {
  const broken = [...pages, join(ROOT, "README.md")].flatMap((from) =>
    [...withoutCode(read(from)).matchAll(/\]\(([^)\s]+)\)/g)]
      .map(([, target = ""]) => target)
      .filter((target) => !/^https?:/.test(target))
      .filter((target) => {
        const [path = "", anchor] = target.split("#");
        const file = path === "" ? from : join(dirname(from), path);
        return !existsSync(file) || (anchor !== undefined && !anchorsOf(read(file)).includes(anchor));
      })
      .map((target) => `${relative(ROOT, from)}: ${target}`),
  );
  expect(broken).toEqual([]);
});

test("every page is in the index", () => {
  const listed = [...page("README.md").matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => join(DOCS, name ?? ""));
  expect([...listed, join(DOCS, "README.md")].sort()).toEqual(pages.sort());
});

test("code that a page shows from a file is the file's, and every file is shown", () => {
  const shown = pages.flatMap((path) =>
    [...read(path).matchAll(/^\[`(examples\/[\w.-]+)`\]\(examples\/[\w.-]+\)\n\n```\w*\n([\s\S]*?)^```$/gm)].map(
      ([, name = "", code = ""]) => [name, code] as const,
    ),
  );
  for (const [name, code] of shown) expect(code, name).toBe(page(name));
  const files = readdirSync(join(DOCS, "examples")).map((name) => `examples/${name}`);
  expect(shown.map(([name]) => name).sort()).toEqual(files.sort());
});

test("every variable is in the table of operations.md with its default, and no other", () => {
  const source = /z\.object\(\{\n([\s\S]*?)\n\}\);/.exec(read(join(ROOT, "src", "config.ts")))?.[1] ?? "";
  const known = new Map(
    [...source.matchAll(/^ {2}([A-Z_]+):([\s\S]*?)(?=^ {2}[A-Z_]+:|$(?![\s\S]))/gm)].map(([, name = "", rule = ""]) => [
      name,
      /(?:default|delay)\(([\d_]+)/.exec(rule)?.[1]?.replaceAll("_", ""),
    ]),
  );
  const table = new Map(
    [...page("operations.md").matchAll(/^\| `([A-Z_]+)` +\| ([^|]*?) +\|/gm)].map(([, name, value]) => [name, value]),
  );
  expect([...table.keys()].sort()).toEqual([...known.keys()].sort());
  expect(known.size).toBeGreaterThan(30);
  for (const [name, value] of known) {
    if (value !== undefined) expect([name, table.get(name)]).toEqual([name, `\`${value}\``]);
  }
});

test("every call of the API is on some page", () => {
  const lines = pages.flatMap((path) => read(path).split("\n"));
  let path = "";
  const missing: string[] = [];
  for (const line of read(join(ROOT, "openapi.yaml")).split("\n")) {
    path = /^ {2}(\/\S*):$/.exec(line)?.[1] ?? path;
    const method = /^ {4}(get|post|put|patch|delete):$/.exec(line)?.[1]?.toUpperCase();
    if (method === undefined) continue;
    const names = (text: string) => text.includes(`${path}\``) && text.includes(method);
    if (!lines.some(names)) missing.push(`${method} ${path}`);
  }
  expect(path).not.toBe("");
  expect(missing).toEqual([]);
});

test("every configuration file that a page shows is one that the server takes", () => {
  const files = [...pages, join(ROOT, "README.md")].flatMap((path) =>
    [...read(path).matchAll(/^```json\n([\s\S]*?)^```$/gm)]
      .map(([, text = ""]) => text)
      .filter((text) => /^\{\s*"(models|compaction|mcpServers)"/.test(text)),
  );
  expect(files.length).toBeGreaterThan(3);
  for (const text of files) expect(parseConfigFile(text), text).not.toHaveProperty("problems");
});

const shell = spawnSync("bash", ["-c", "curl --version"]).status === 0;
if (!shell) console.warn("the quickstart is not run: no bash with curl here");

test.skipIf(!shell)("the quickstart, run as it stands, ends with the output of its command", async () => {
  const server = await startOmnid();
  const stdout = await runCommands(page("quickstart.md"), /^(?!npm )/, server.url);
  expect(stdout).toContain('"status":"completed"');
  expect(stdout).toMatch(/"approvals":\[\{"sessionId"/);
  expect(stdout).toContain('"decided_by":"user"');
  await expect
    .poll(async () => await (await fetch(`${server.url}/api/sessions`)).text(), { timeout: 10_000 })
    .toContain('"state":"idle"');
});

test.skipIf(!shell)("the README's Session with curl, its fork and its import are refused nothing", async () => {
  const server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: "0" } });
  const stdout = await runCommands(read(join(ROOT, "README.md")), /\$B\b|^B=/m, server.url);
  expect(stdout).toContain('"decided_by":"user"');
  expect(stdout).toContain('"status":"completed"');
  expect(stdout).not.toContain('{"error"');
  const { sessions } = (await (await fetch(`${server.url}/api/sessions`)).json()) as { sessions: unknown[] };
  expect(sessions).toHaveLength(3);
});

/** Runs a page's blocks of commands that are `wanted`, one after the other, in a folder of their own. */
async function runCommands(text: string, wanted: RegExp, url: string): Promise<string> {
  const commands = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
    .map(([, block = ""]) => block)
    .filter((block) => wanted.test(block))
    .join("\n")
    .replace("http://127.0.0.1:8420", url);
  const { PATH, HOME } = process.env;
  const options = { env: { PATH, HOME }, cwd: temporaryFolder() };
  return (await promisify(execFile)("bash", ["-c", commands], options)).stdout;
}

/** As GitHub makes them. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = ""]) => {
    const slug = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replaceAll(/\s/g, "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}
