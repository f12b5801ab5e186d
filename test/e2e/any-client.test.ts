// The stream as it is read by programs that are not ours: what they find in it, and that they find all of it again after
// their connection broke in the middle of a line of a megabyte.

import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { EventSource } from "eventsource";
import { createParser } from "eventsource-parser";
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { startFlakyProxy } from "../client/flaky-proxy.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { startUpstream, type Upstream } from "../support/upstream.js";

/** One message as a reader found it. */
interface Found {
  id: string;
  data: string;
}

const TOKEN = "s3cr3t";
const LINE = `${"0123456789abcdef".repeat(65_536)}é\u2028😀`;
const PYTHON = fileURLToPath(new URL("../fixtures/sse_reader.py", import.meta.url));
const CHROMIUM = process.env.OMNID_CHROMIUM ?? "/usr/bin/chromium";
const chunk = (delta: object, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta, finish_reason }],
});
const has = (program: string, ...args: string[]) => spawnSync(program, args).error === undefined;

let server: Server;
let upstream: Upstream;
let origin: string;
beforeAll(async () => {
  upstream = await startUpstream(atFileEnd);
  upstream.otherwise({
    steps: [
      chunk({ role: "assistant", content: "" }),
      ...["One ", "two ", "three "].map((content) => chunk({ content })),
      chunk({ content: LINE }),
      ...["four ", "five"].map((content) => chunk({ content })),
      chunk({}, "stop"),
    ],
  });
  const page = createServer((_, response) =>
    response.setHeader("content-type", "text/html").end("<title>elsewhere</title>"),
  );
  await new Promise<void>((resolve) => page.listen(0, "127.0.0.1", resolve));
  atFileEnd(async () => {
    page.closeAllConnections();
    page.close();
  });
  origin = `http://127.0.0.1:${(page.address() as { port: number }).port}`;
  const env = { OMNID_TOKENS: `ada:${TOKEN}`, CORS_ORIGINS: origin };
  server = await startOmnid({ env, config: upstream.config(), atEnd: atFileEnd });
});

/** A Session that says its piece to whoever reads at `url`, over a connection that breaks after `bytes` once. */
async function stage(bytes: number): Promise<{ url: string; said: Promise<Found[]> }> {
  const client = createClient({ baseUrl: server.url, token: TOKEN });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  const { cursor } = await session.messages();
  const proxy = await startFlakyProxy(server.port, [{ do: "cut", after: bytes }]);
  onTestFinished(() => proxy.close());
  const query = new URLSearchParams({ lastEventId: cursor, access_token: TOKEN });
  const said = (async () => {
    const found: Found[] = [];
    for await (const event of session.run("Speak")) {
      if (event.kind === "message") found.push({ id: String(event.id), data: JSON.stringify(event.message) });
    }
    return found;
  })();
  return { url: `${proxy.url}/api/sessions/${sessionId}/stream?${query}`, said };
}

/** What was found is what was said, message by message, with ids that grow by one. */
function expectWhole(found: readonly Found[], said: readonly Found[]): void {
  expect(found.map(({ id }) => id)).toEqual(said.map(({ id }) => id));
  expect(found.map(({ id }) => Number(id.split("-")[1]))).toEqual(found.map((_, index) => index + 1));
  for (const [index, { data }] of found.entries()) expect(JSON.parse(data)).toEqual(JSON.parse(said[index]!.data));
  expect(found.filter(({ data }) => data.length > 1_000_000)).toHaveLength(2);
}

/** At rest again. A reader that was away while the Task ended is told no more than that. */
const isEnd = (data: string, found: { length: number }): boolean =>
  found.length > 0 && JSON.parse(data).state === "idle";

/** In the middle of the long line, and in the first words. */
const CUTS = [400_000, 900];

describe.each(CUTS)("over a connection that breaks after %i bytes", (bytes) => {
  test("the npm package eventsource finds everything once", async () => {
    const { url, said } = await stage(bytes);
    const found: Found[] = [];
    const resumedFrom: (string | undefined)[] = [];
    const source = new EventSource(url, {
      fetch: (input, init) => {
        resumedFrom.push(init.headers["Last-Event-ID"]);
        return fetch(input, init);
      },
    });
    onTestFinished(() => source.close());
    await new Promise<void>((resolve) => {
      source.addEventListener("message", ({ lastEventId: id, data }) => void found.push({ id, data }));
      source.addEventListener("server_event", ({ data }) => {
        if (isEnd(data, found)) resolve();
      });
    });
    expectWhole(found, await said);
    expect(resumedFrom).toEqual([undefined, expect.stringMatching(/^\d+-\d+$/)]);
  });

  test("fetch with eventsource-parser finds everything once", async () => {
    const { url, said } = await stage(bytes);
    const found: Found[] = [];
    let isOver = false;
    let last: string | undefined;
    for (let connections = 0; !isOver && connections < 10; connections += 1) {
      const parser = createParser({
        onEvent: ({ event, id, data }) => {
          last = id ?? last;
          if (event === undefined) found.push({ id: String(id), data });
          else if (isEnd(data, found)) isOver = true;
        },
      });
      const response = await fetch(url, last === undefined ? {} : { headers: { "Last-Event-ID": last } });
      const text = (response.body as ReadableStream<never>).pipeThrough(new TextDecoderStream()).getReader();
      try {
        while (!isOver) {
          const { done, value } = await text.read();
          if (done) break;
          parser.feed(value);
        }
      } catch {
        // The connection broke.
      }
      await text.cancel().catch(() => {});
    }
    expectWhole(found, await said);
  });

  test.skipIf(!has("curl", "--version"))(
    "curl -N finds everything once, with the last id on the command line",
    async () => {
      const { url, said } = await stage(bytes);
      const frames: string[] = [];
      for (let connections = 0; connections < 10; connections += 1) {
        const last = frames.findLast((frame) => /^id: /m.test(frame));
        const id = last === undefined ? [] : ["-H", `Last-Event-ID: ${/^id: (.*)$/m.exec(last)?.[1]}`];
        if (await curl(["-sN", ...id, url], frames)) break;
      }
      const found = frames
        .filter(isMessage)
        .map((frame) => ({ id: String(/^id: (.*)$/m.exec(frame)?.[1]), data: dataOf(frame) }));
      expectWhole(found, await said);
    },
  );

  test.skipIf(!has("python3", "--version"))("Python's http.client finds everything once", async () => {
    const { url, said } = await stage(bytes);
    const { code, stdout, stderr } = await output("python3", [PYTHON, url]);
    expect(code, stderr).toBe(0);
    const lines = stdout.trimEnd().split("\n");
    expectWhole(
      lines.map((line) => JSON.parse(line)),
      await said,
    );
  });
});

describe.skipIf(!has(CHROMIUM, "--version"))("a page of another origin", () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"] });
  });
  afterAll(() => browser.close());

  const open = async (at: string) => {
    const page = await browser.newPage();
    onTestFinished(() => page.close());
    await page.goto(at);
    return page;
  };

  test.each(CUTS)(
    "finds everything once with its EventSource, over a connection that breaks after %i bytes",
    async (bytes) => {
      const { url, said } = await stage(bytes);
      const page = await open(origin);
      const found = (await page.evaluate(`new Promise((resolve) => {
      const found = [];
      const source = new EventSource(${JSON.stringify(url)});
      source.onmessage = ({ lastEventId: id, data }) => found.push({ id, data });
      source.addEventListener("server_event", ({ data }) => {
        if (found.length > 0 && JSON.parse(data).state === "idle") resolve(found), source.close();
      });
    })`)) as Found[];
      expectWhole(found, await said);
    },
  );

  test("may send Last-Event-ID and a token with fetch, and reads the answer's headers", async () => {
    const { url, said } = await stage(10_000_000);
    const [first] = await said;
    const target = url.replace(/\?.*/, "");
    const page = await open(origin);
    const text = await page.evaluate(`(async () => {
      const headers = { "Last-Event-ID": ${JSON.stringify(first?.id)}, authorization: "Bearer ${TOKEN}" };
      const response = await fetch(${JSON.stringify(target)}, { headers });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const { value } = await reader.read();
      await reader.cancel();
      return response.status + " " + response.headers.get("content-type") + " " + value;
    })()`);
    expect(text).toMatch(/^200 text\/event-stream; charset=utf-8 retry: 1000\nid: \d+-2\n/);
  });

  test("that is not listed gets nothing", async () => {
    const { url, said } = await stage(10_000_000);
    await said;
    // The same page by another name is another origin.
    const page = await open(origin.replace("127.0.0.1", "localhost"));
    const outcome = await page.evaluate(`new Promise((resolve) => {
      const source = new EventSource(${JSON.stringify(url)});
      source.onopen = () => resolve("open");
      source.onerror = () => resolve(source.readyState);
    })`);
    expect(outcome).toBe(2);
  });
});

const isMessage = (frame: string): boolean => /^data: /m.test(frame) && !/^event: /m.test(frame);
const dataOf = (frame: string): string => /^data: (.*)$/m.exec(frame)?.[1] ?? "{}";

/** Adds what curl prints, frame by frame. @returns whether the Session came to rest, rather than the connection to its end. */
async function curl(args: string[], frames: string[]): Promise<boolean> {
  const child = spawn("curl", args, { stdio: ["ignore", "pipe", "ignore"] });
  let rest = "";
  for await (const text of child.stdout.setEncoding("utf8")) {
    const whole = (rest + text).split("\n\n");
    rest = whole.pop() ?? "";
    for (const frame of whole) {
      frames.push(frame);
      const said = frames.filter(isMessage);
      if (/^event: server_event$/m.test(frame) && isEnd(dataOf(frame), said)) return child.kill();
    }
  }
  return false;
}

async function output(
  command: string,
  args: string[],
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    said.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said.stderr += text;
  });
  const code = await new Promise<number | null>((resolve) => child.on("close", resolve));
  return { code, ...said };
}
