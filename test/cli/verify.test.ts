import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type VerifyOptions, verify } from "../../src/cli/verify.js";
import * as make from "../../src/protocol/builders.js";
import { type OmniMessage, toLine } from "../../src/protocol/message.js";
import {
  AT,
  allowed,
  begin,
  bend,
  callOf,
  Meter,
  metaOf,
  outputOf,
  placeOf,
  traceOf,
  twoCalls,
} from "../support/messages.js";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "omnid-verify-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const good = traceOf(twoCalls());
const bytesOf = (messages: OmniMessage[]): string => messages.map((message) => `${toLine(message)}\n`).join("");

/** What goes to standard output, `lines`, and to standard error, `problems`. */
async function verified(target: string, options: Pick<VerifyOptions, "all" | "token"> = {}) {
  const lines: string[] = [];
  const problems: string[] = [];
  const out = (line: string) => lines.push(line);
  const code = await verify(target, { ...options, out, err: (line) => problems.push(line) });
  return { code, lines, problems };
}

async function check(content: string | Buffer, all = false): Promise<{ code: number; lines: string[] }> {
  const file = join(folder, "trace.jsonl");
  writeFileSync(file, content);
  const { code, lines } = await verified(file, { all });
  return { code, lines };
}

describe("a file", () => {
  test("that keeps every guarantee gives 0 and a summary", async () => {
    expect(await check(bytesOf(good))).toEqual({ code: 0, lines: [`${good.length} records, 0 violations`] });
  });

  test("that breaks one gives 1 and names line and rule", async () => {
    const lost = good.toSpliced(placeOf(good, "approval_decision"), 1);
    const line = placeOf(lost, "approval_decision") + 1;
    const { code, lines } = await check(bytesOf(lost));
    expect(code).toBe(1);
    expect(lines).toEqual([
      `line ${line}: approvals: "call_B" is decided before "call_A", called earlier`,
      `line ${placeOf(lost, "tool_call_output", 1) + 1}: approvals: call "call_A" is not decided before its output`,
      `${lost.length} records, 2 violations`,
    ]);
  });

  test("whose Session goes on, or was killed, is clean, and the summary says what is open", async () => {
    const open = [...traceOf([begin(), callOf("call_A")])];
    expect(await check(bytesOf(open))).toEqual({
      code: 0,
      lines: ["4 records, 0 violations; open at the end: a Request, 1 call without decision, 1 call without output"],
    });
  });

  test("B1: with U+2028, U+2029 and U+0085 raw inside a line is not split there", async () => {
    const raw = make.userText(AT, "a\u2028b\u2029c\u0085d");
    const content = good.map((message, i) => (i === 1 ? JSON.stringify(raw) : toLine(message))).join("\n");
    expect(content).toContain("\u2028");
    expect(await check(`${content}\n`)).toEqual({ code: 0, lines: [`${good.length} records, 0 violations`] });
  });

  test("B3: with a character at each chunk border is read whole", async () => {
    const long = make.userText(AT, "北🙂é".repeat(60_000));
    expect(await check(bytesOf(good.with(1, long)))).toMatchObject({ code: 0 });
  });

  test("G3: torn at any byte of its last line is told, and no other line is blamed", async () => {
    const whole = Buffer.from(bytesOf(good.slice(0, 6)));
    const last = Buffer.from(bytesOf(good.slice(5, 6)));
    for (let left = 1; left < last.length - 1; left += 1) {
      const { code, lines } = await check(whole.subarray(0, whole.length - last.length + left));
      expect(code).toBe(1);
      expect(lines[0]).toBe(`line 6: torn: the last line is cut off after ${left} byte${left === 1 ? "" : "s"}`);
      expect(lines).toHaveLength(2);
    }
    // Only its line feed is gone: the record is whole.
    expect(await check(whole.subarray(0, -1))).toMatchObject({ code: 0 });
  });

  test("G1, G2: with broken lines tells each by its number and judges the others", async () => {
    const lines = bytesOf([good[0]!, make.userText(AT, "one"), make.userText(AT, "two"), ...good.slice(1)]).split("\n");
    const broken = lines.with(1, "\0\0\0\0").with(2, "").toSpliced(4, 0, '{"timestamp":"x"', `{"a":1}`);
    const told = await check(broken.join("\n"));
    expect(told.code).toBe(1);
    expect(told.lines.map((line) => line.split(":").slice(0, 2).join(":"))).toEqual([
      "line 2: json",
      "line 3: json",
      "line 5: json",
      "line 6: shape",
      `${good.length} records, 4 violations`,
    ]);
    expect(told.lines[1]).toBe("line 3: json: the line is empty");
  });

  test("with bytes that are no UTF-8 is told so, not read as U+FFFD", async () => {
    const line = Buffer.from(bytesOf([make.userText(AT, "caf~")]));
    line[line.indexOf("~")] = 0xe9;
    const { lines } = await check(Buffer.concat([Buffer.from(bytesOf(good.slice(0, 1))), line]));
    expect(lines[0]).toMatch(/^line 2: json: .*not valid/);
  });

  test("with a record of a later version keeps it out of judgement and counts it", async () => {
    const later = `${toLine({ timestamp: AT, type: "event_msg", payload: { type: "weather", sky: "blue" } })}\n`;
    expect(await check(bytesOf(good) + later)).toEqual({
      code: 0,
      lines: [`${good.length} records, 1 record of a type not known here, 0 violations`],
    });
  });

  test("cannot steer the terminal by what it holds", async () => {
    const { lines } = await check(
      bytesOf([metaOf(), make.assistantText(AT, "x"), outputOf("\u001b[2J\u009b2J\u202e", "x")]),
    );
    expect(lines.join("")).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(lines.join("\n")).toContain("\\u{202e}");
  });

  test.each([
    ["missing", () => join(folder, "nothing.jsonl"), /ENOENT/],
    ["a folder", () => folder, /EISDIR/],
    [
      "empty",
      () => {
        writeFileSync(join(folder, "empty"), "");
        return join(folder, "empty");
      },
      /empty/,
    ],
  ])("that is %s gives 2 and says why, on standard error", async (_, target, why) => {
    const { code, lines, problems } = await verified(target());
    expect({ code, lines }).toEqual({ code: 2, lines: [] });
    expect(problems).toEqual([expect.stringMatching(why)]);
  });
});

describe("a Session of a server", () => {
  let server: Server;
  let base = "";
  const asked: string[] = [];
  const session = "/api/sessions/session-2026-07-18-03-10-22-a1b2c3d4";

  beforeEach(async () => {
    asked.length = 0;
    server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization ?? "-"}`);
      if (request.url === "/cut/trace") {
        response.writeHead(200, { "content-type": "application/x-ndjson", "content-length": "100000" });
        response.write(bytesOf(good), () => response.destroy());
      } else if (request.url === "/moved/trace") {
        response.writeHead(307, { location: `${session}/trace` }).end();
      } else if (request.headers.authorization !== "Bearer secret") {
        response.writeHead(401, { "content-type": "application/json" });
        response.end('{"error":{"code":"unauthorized","message":"a token is needed"}}');
      } else if (request.url === `${session}/trace`) {
        response.writeHead(200, { "content-type": "application/x-ndjson" });
        // Cut inside a line and inside a character.
        const bytes = Buffer.from(bytesOf(good.with(1, make.userText(AT, "北🙂é"))));
        const cut = bytes.indexOf("北") + 1;
        response.write(bytes.subarray(0, cut), () => response.end(bytes.subarray(cut)));
      } else response.writeHead(404).end("<html>");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );

  const ask = (path: string, token?: string) => verified(`${base}${path}`, token === undefined ? {} : { token });

  test.each([session, `${session}/`, `${session}/trace`])(
    "is asked for its Trace, with the token: %s",
    async (path) => {
      const lines = [`${good.length} records, 0 violations`];
      expect(await ask(path, "secret")).toEqual({ code: 0, lines, problems: [] });
      expect(asked).toEqual([`${session}/trace Bearer secret`]);
    },
  );

  test("that wants a token gives 2 and the server's words", async () => {
    const { code, problems } = await ask(session);
    expect(code).toBe(2);
    expect(problems).toEqual([
      `omnid: cannot read ${base}${session}: ${base}${session}/trace answers 401 unauthorized: a token is needed`,
    ]);
  });

  test("that is not there gives 2", async () => {
    const { code, problems } = await ask("/api/sessions/none", "secret");
    expect(code).toBe(2);
    expect(problems[0]).toMatch(/answers 404$/);
  });

  test("whose answer breaks off gives 2, also when all that came was good", async () => {
    const { code, problems } = await ask("/cut", "secret");
    expect(code).toBe(2);
    expect(problems).toEqual([expect.stringMatching(new RegExp(`cannot read .*after line ${good.length}\\)$`))]);
  });

  test("that redirects gives 2: the token is for the server that was named", async () => {
    expect((await ask("/moved", "secret")).code).toBe(2);
    expect(asked).toEqual(["/moved/trace Bearer secret"]);
  });

  test("that does not listen gives 2", async () => {
    const { code, problems } = await verified("http://127.0.0.1:1/api/sessions/x");
    expect(code).toBe(2);
    expect(problems[0]).toMatch(/^omnid: cannot read http:\/\/127\.0\.0\.1:1/);
  });
});

test("a Trace that breaks many guarantees tells each as it is found", async () => {
  const meter = new Meter();
  const bad = [
    ...traceOf([begin(), callOf("a"), outputOf("a", "x"), ...meter.tail().reverse()]),
    ...bend([begin(), callOf("a"), allowed("a"), ...meter.tail()], 3, {
      session: { cache_read: 0, cache_write: 0, output: 0, total: 9 },
    }),
  ];
  const { code, lines } = await check(bytesOf(bad));
  expect(code).toBe(1);
  const rules = lines.slice(0, -1).map((line) => line.split(": ")[1]);
  expect(new Set(rules)).toEqual(new Set(["approvals", "request-tail", "pairing", "usage"]));
});

test("of violations of one kind the first ten are printed, then how many more there are, and where; of another kind too", async () => {
  const calls = Array.from({ length: 1_245 }, (_, index) => callOf(`call_${index}`));
  const bad = traceOf([
    begin(),
    ...calls,
    ...new Meter().tail(),
    ...calls.map(({ payload }) => outputOf(payload.tool_call_id, "x")),
  ]);
  const { code, lines } = await check(bytesOf(bad));
  expect(code).toBe(1);
  expect(lines.slice(0, 10).every((line) => /approvals: call "call_\d+" is not decided before /.test(line))).toBe(true);
  const more = lines.filter((line) => line.includes("more of this kind"));
  expect(more).toEqual([
    expect.stringMatching(
      /^lines? \d+( to \d+)?: approvals: and 1,235 more of this kind: call "call_\d+" is not decided/,
    ),
  ]);
  expect(lines.at(-1)).toBe(`${bad.length} records, 1245 violations`);
  const every = await check(bytesOf(bad), true);
  expect(every.lines).toHaveLength(1_246);
  expect(every.lines.slice(0, 10)).toEqual(lines.slice(0, 10));
});

test("lines that are no records are one kind, whatever they say", async () => {
  const noise = Array.from({ length: 30 }, (_, index) => `{"a${index}`).join("\n");
  const { lines } = await check(`${bytesOf(good)}${noise}\n`);
  expect(lines.filter((line) => line.includes(": json: "))).toHaveLength(11);
  expect(lines.at(-2)).toMatch(
    new RegExp(`^lines ${good.length + 11} to ${good.length + 30}: json: and 20 more of this kind: `),
  );
});
