// What others wrote does not steer the terminal of whoever looks at it.

import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { printable, printableJson } from "../../src/cli/printable.js";
import { sessions } from "../../src/cli/sessions.js";
import { startOmnid } from "../support/server.js";
import { runCli } from "./run-cli.js";

const STEERING = /[\p{Cc}\p{Cf}\u2028\u2029]/u;
const EVIL = "\u001b]0;t\u0007\u009b31m\u009d0;t\u009c\u202ex\u2066\r\b\u007f\u{e0041}\u2028";

/** A server that gives every call this answer, until the test ends. */
async function answering(status: number, body: unknown): Promise<string> {
  const server = createServer((_, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function list(url: string, json: boolean): Promise<{ code: number; out: string[]; err: string[] }> {
  const said = { out: [] as string[], err: [] as string[] };
  const options = { out: (line: string) => said.out.push(line), err: (line: string) => said.err.push(line) };
  return { code: await sessions({ url, json, limit: 20, ...options }), ...said };
}

test("JSON that steers nothing means what it meant", () => {
  const string = fc.string({ unit: fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom(...EVIL)) });
  fc.assert(
    fc.property(fc.dictionary(string, string), (value) => {
      const json = printableJson(JSON.stringify(value));
      expect(json).not.toMatch(STEERING);
      expect(printable(json)).toBe(json);
      expect(JSON.stringify(JSON.parse(json))).toBe(JSON.stringify(value));
    }),
  );
});

test("a list of Sessions, as text and as JSON, holds nothing that steers", async () => {
  const session = {
    sessionId: `s${EVIL}`,
    state: `idle${EVIL}`,
    pendingApprovals: 0,
    lastActiveAt: "2026-01-01T00:00:00Z",
    provider: `p${EVIL}`,
    modelId: `m${EVIL}`,
    title: `t${EVIL}`,
  };
  const url = await answering(200, { sessions: [session] });
  for (const line of (await list(url, false)).out) expect(line).not.toMatch(STEERING);
  const { out } = await list(url, true);
  expect(out).toHaveLength(1);
  expect(out[0]).not.toMatch(STEERING);
  expect(JSON.parse(out[0]!)).toEqual(session);
});

test("a refusal and an address that is none hold nothing that steers", async () => {
  const url = await answering(403, { error: { code: "not_allowed", message: `no${EVIL}` } });
  const refused = await list(url, false);
  expect(refused).toMatchObject({ code: 2, err: [expect.stringMatching(/^omnid: no\\u\{1b\}/)] });
  expect(refused.err[0]).not.toMatch(STEERING);
  const wrong = await list(`ftp://${EVIL}`, false);
  expect(wrong.code).toBe(64);
  expect(wrong.err[0]).not.toMatch(STEERING);
});

test.each([
  ["a value", ["chat", "-m", "a\u001b[31m\u202e", "hi"]],
  ["an option", ["sessions", "--a\u001b[31m\u202e"]],
  ["a command", ["a\u001b[31m\u202e"]],
])("a command line that is wrong is said without what steers: %s", async (_, args) => {
  const { code, stderr } = await runCli(args);
  expect(code).toBe(64);
  expect(stderr).toContain("a\\u{1b}[31m\\u{202e}");
  expect(stderr.replaceAll("\n", "")).not.toMatch(STEERING);
});

test("a configuration that is wrong is said without what steers", async () => {
  const { code, stderr } = await runCli(["models"], { env: { OMNID_MODEL: "a\u001b[31m\u202e" } });
  expect(code).toBe(78);
  expect(stderr.trimEnd().replaceAll("\n", "")).not.toMatch(STEERING);
});

test("the messages of chat --json are JSON that steers nothing", async () => {
  const server = await startOmnid();
  const text = "\u009b31mred\u202e\u{e0041}\u007f";
  const { stdout } = await runCli(["chat", "--json", text], { env: { OMNID_URL: server.url } });
  const lines = stdout.trimEnd().split("\n");
  for (const line of lines) expect(line).not.toMatch(STEERING);
  const prompts = lines.map((line) => JSON.parse(line)).filter(({ payload }) => payload.role === "user");
  expect(prompts).toMatchObject([{ payload: { text } }]);
});
