// The examples of docs/clients.md, run as they stand against a real server with the demo model, through a network that
// fails once: each runs a whole Task with an approval, and what it prints is what the server recorded.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { OmniMessage } from "../../src/protocol/message.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type AtEnd, type Server, startOmnid } from "../support/server.js";
import { type CuttingProxy, startCuttingProxy } from "./cutting-proxy.js";
import { EXAMPLES, installExamples } from "./install-examples.js";

const CHROMIUM = process.env.OMNID_CHROMIUM ?? "/usr/bin/chromium";

interface Situation {
  name: string;
  prompt: string;
  /** What is on the wire when the connection is cut; left out: it holds. */
  cutAt?: RegExp;
  /** The server forgets at once, so that the gap is gone when the client is back. */
  forgets?: boolean;
  /** The server is killed while the person thinks, and started again. */
  isKilled?: boolean;
}

/** The answer that follows the approval: whenever a client connects, it sees this one as it is written. */
const IN_ANSWER = /"event_type":"delta","text":"`ec/;
const IN_APPROVAL = /"type":"approval_request","ses/;

const SITUATIONS: Situation[] = [
  { name: "cut in the middle of a word", prompt: "/run echo one", cutAt: IN_ANSWER },
  { name: "cut while it is told of an approval", prompt: "/run echo two", cutAt: IN_APPROVAL },
  { name: "cut for so long that the gap is gone", prompt: "/run echo three", cutAt: IN_ANSWER, forgets: true },
  { name: "a child's approval", prompt: "/subagent /run echo four" },
  { name: "the server killed while the person thinks", prompt: "/run echo five", isKilled: true },
];

/** Most of its time an example waits before it comes back. */
const WAITS = { concurrent: true };

const isThere = (...command: [string, ...string[]]) => spawnSync(command[0], command.slice(1)).status === 0;
const python = isThere("python3", "-c", "import sys; sys.exit(sys.version_info < (3, 9))");
const curl = isThere("curl", "--version") && isThere("bash", "-c", "true");
const browser = existsSync(CHROMIUM);
for (const [name, has] of Object.entries({ python3: python, curl, chromium: browser })) {
  if (!has) console.warn(`the example for ${name} is not run: there is none here`);
}

let folder: string;
let servers: { remembers: Server; forgets: Server };
let page: { url: string };
/** Slow enough that there is a stream to cut. */
const env = () => ({ OMNID_DEMO_DELAY_MS: "4", CORS_ORIGINS: page.url });

beforeAll(async () => {
  folder = installExamples(atFileEnd);
  page = await servePage();
  servers = {
    remembers: await startOmnid({ env: env(), atEnd: atFileEnd }),
    forgets: await startOmnid({ env: { ...env(), OMNID_REPLAY_EVENTS: "2" }, atEnd: atFileEnd }),
  };
}, 60_000);

describe.each(SITUATIONS)("$name:", (situation) => {
  const printed = async (command: string, file: string, atEnd: AtEnd) => {
    const { proxy, think } = await stage(situation, atEnd);
    const { stdout, stderr, code } = await run(
      command,
      [join(folder, file), situation.prompt],
      proxy.url,
      think,
      atEnd,
    );
    expect(code, stderr).toBe(0);
    return { stdout, stderr, proxy };
  };

  test.for(["node-client.mjs", "node-fetch.mjs"])("%s prints what was recorded", WAITS, async (file, context) => {
    const { stdout, proxy } = await printed(process.execPath, file, context.onTestFinished);
    expect(stdout).toBe(`${(await recorded(situation, proxy)).map(lineOf).join("\n")}\n`);
  });

  test("python_stdlib.py prints what was recorded", { ...WAITS, skip: !python }, async (context) => {
    const { stdout, proxy } = await printed("python3", "python_stdlib.py", context.onTestFinished);
    expect(stdout).toBe(`${(await recorded(situation, proxy)).map(lineOf).join("\n")}\n`);
  });

  test("curl.sh prints what was recorded, and all text once", { ...WAITS, skip: !curl }, async (context) => {
    const { stdout, stderr, proxy } = await printed("bash", "curl.sh", context.onTestFinished);
    const history = await historyOf(proxy);
    expect(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line)),
    ).toEqual(history);
    await recorded(situation, proxy);
    if (situation.forgets || situation.isKilled) return;
    const said = history.flatMap(({ payload }) => ("role" in payload && payload.role === "assistant" ? [payload] : []));
    const shown = stderr.replaceAll(/\nAllow \w+ \{".*"\}\? \[y\/N\] /g, "").replaceAll(/curl: \(\d+\) .*\n/g, "");
    expect(shown).toBe(said.map((payload) => ("text" in payload ? payload.text : "")).join(""));
  });

  test("browser.html shows what was recorded", { ...WAITS, skip: !browser }, async (context) => {
    const { proxy, think } = await stage(situation, context.onTestFinished);
    const shown = await inBrowser(`${page.url}/?server=${encodeURIComponent(proxy.url)}`, situation.prompt, think);
    expect(shown).toEqual((await recorded(situation, proxy)).map(lineOf));
  });
});

/** A page on another origin than the server's. */
async function servePage(): Promise<{ url: string }> {
  const html = readFileSync(join(EXAMPLES, "browser.html"));
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(html));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atFileEnd(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** The network and the server of a situation; `think` is what happens before the first question is answered. */
async function stage({ cutAt, forgets, isKilled }: Situation, atEnd: AtEnd) {
  if (!isKilled) {
    const { port } = forgets ? servers.forgets : servers.remembers;
    return { proxy: await startCuttingProxy(port, cutAt, atEnd), think: async () => {} };
  }
  const server = await startOmnid({ env: env(), atEnd });
  const proxy = await startCuttingProxy(server.port, cutAt, atEnd);
  let isDone = false;
  const think = async () => {
    if (isDone) return;
    isDone = true;
    await server.stop("SIGKILL");
    proxy.leadTo((await server.restart()).port);
  };
  return { proxy, think };
}

/** Runs an example, and says yes to each question. */
function run(command: string, args: string[], url: string, think: () => Promise<void>, atEnd: AtEnd) {
  const child = spawn(command, args, { env: { PATH: process.env.PATH, HOME: process.env.HOME, OMNID_URL: url } });
  // One that follows for ever must not outlive a test that failed.
  atEnd(async () => void child.kill("SIGKILL"));
  const output = { stdout: "", stderr: "" };
  let answered = 0;
  let refuse: (cause: unknown) => void = () => {};
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output.stderr += text;
    for (; answered < output.stderr.split("[y/N] ").length - 1; answered++) {
      think().then(() => child.stdin.write("y\n"), refuse);
    }
  });
  child.stdin.on("error", () => {});
  return new Promise<typeof output & { code: number | null }>((resolve, reject) => {
    refuse = reject;
    child.on("error", reject).on("close", (code) => resolve({ ...output, code }));
  });
}

async function inBrowser(url: string, prompt: string, think: () => Promise<void>): Promise<string[]> {
  const opened = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  try {
    const tab = await opened.newPage();
    await tab.goto(url);
    await tab.locator("#status", { hasText: "idle" }).waitFor();
    await tab.getByLabel("Prompt").fill(prompt);
    await tab.getByRole("button", { name: "Send" }).click();
    const shown = tab.locator("#items > *");
    const allow = tab.getByRole("button", { name: "allow" });
    const isOver = tab.locator("#items > *:last-child", { hasText: /is done|exit code 0/ });
    for (;;) {
      const next = allow.first().or(isOver);
      await next.first().waitFor();
      if ((await allow.count()) === 0) break;
      await think();
      // This very question: the next one may be there before it is seen to be gone.
      const question = await tab.locator("#questions > *").first().elementHandle();
      await allow.first().click();
      await question?.waitForElementState("hidden");
    }
    await tab.locator("#status", { hasText: "idle" }).waitFor();
    return await shown.allTextContents();
  } finally {
    await opened.close();
  }
}

async function historyOf(proxy: CuttingProxy): Promise<OmniMessage[]> {
  const response = await fetch(`${proxy.url}/api/sessions/${proxy.sessionId()}/messages`);
  const { messages } = (await response.json()) as { messages: (OmniMessage & { ordinal: number })[] };
  return messages.map(({ ordinal: _, ...message }) => message as OmniMessage);
}

/** What a reader should have seen; and the Task was a whole one, through a network that failed. */
async function recorded(situation: Situation, proxy: CuttingProxy): Promise<OmniMessage[]> {
  const shown = (await historyOf(proxy)).filter((message) => lineOf(message) !== undefined);
  const types = shown.map(({ payload }) => ("type" in payload ? payload.type : ""));
  expect(types[0]).toBe("text");
  expect(types).toEqual(expect.arrayContaining(["tool_call", "approval_decision", "tool_call_output"]));
  expect(types.at(-1)).toBe("text");
  expect(proxy.isCut()).toBe(true);
  if (situation.cutAt) expect(proxy.streams()).toBeGreaterThan(1);
  return shown;
}

function lineOf({ payload }: OmniMessage): string | undefined {
  if (!("type" in payload)) return undefined;
  switch (payload.type) {
    case "text":
      return `${payload.role}: ${payload.text}`;
    case "thinking":
      return `thinking: ${payload.thinking}`;
    case "tool_call":
      return `call: ${payload.name} ${payload.arguments}`;
    case "approval_decision":
      return `decision: ${payload.decision}`;
    case "tool_call_output":
      return `output: ${payload.output}`;
    default:
      return undefined;
  }
}
