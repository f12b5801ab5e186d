import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as make from "../../src/protocol/builders.js";
import type { OmniMessage } from "../../src/protocol/message.js";
import { validateStream } from "../../src/protocol/validate.js";
import type { Session } from "../../src/session/session.js";
import type { SessionManager } from "../../src/session/session-manager.js";
import type { ImportSource } from "../../src/session/types.js";
import { diskFs } from "../../src/trace/trace-fs.js";
import { type Compactor, compactor, Story } from "../support/compaction.js";
import { type Script, scriptedModel } from "../support/engine.js";
import { AT, allowed, begin, callOf, Meter, outputOf } from "../support/messages.js";
import { linesOf, richTrace, scriptedMeta, upload } from "../support/rich-trace.js";
import { ended, hostOn, listReader, made, recordsOf, tempDir } from "../support/sessions.js";

const yes: Script = { steps: [{ say: "yes" }] };

const take = (host: SessionManager, chunks: AsyncIterable<Uint8Array>, more: Partial<ImportSource> = {}) =>
  host.importTrace({ chunks, damaged: "refuse", maxLineBytes: 1_000_000, ...more }, null);
const imported = (host: SessionManager, text: string, more: Partial<ImportSource> = {}): Promise<Session> =>
  made(take(host, upload(text), more));

async function downloaded(session: Session): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of session.openTrace()) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** A Trace without the three values that an import replaces. */
const anonymous = (text: string): string =>
  text.replaceAll(/"(session_id|agent_state|workspace)":"(?:[^"\\]|\\.)*"/g, '"$1":""');

/** What a crash, or a later version, may have put into any record. */
const oddity = fc.constantFrom(
  {},
  { later: { deep: [1, null, "\u2028"] } },
  { text_2: "北🙂é", n: 1e300 },
  { fidelity: { id: "rs_1", encrypted_content: "gAAAA" } },
);

const part = fc.record({ calls: fc.array(fc.nat(3), { maxLength: 3 }), oddity, compacts: fc.boolean() });

async function lawfulTrace(parts: { calls: number[]; oddity: object; compacts: boolean }[]): Promise<OmniMessage[]> {
  const story = new Story();
  for (const [n, { calls, oddity: more }] of parts.entries()) {
    const place = story.records.length;
    story.prompt(`prompt ${n}`);
    for (const count of calls) story.turn("", { calls: count + 1 });
    story.turn("answer");
    story.records.splice(
      place,
      story.records.length,
      ...story.records.slice(place).map((record) => bent(record, more)),
    );
  }
  story.records.splice(0, 1, scriptedMeta({ later: { a: 1 } } as object));
  let it: Compactor = compactor(story.records, { model: scriptedModel([yes]) });
  if (parts.some(({ compacts }) => compacts)) {
    await it.run();
    it.append([make.userText(AT, "on"), begin(), ...said(it)]);
    it = compactor(it.trace, { model: scriptedModel([]) });
  }
  expect(validateStream(it.trace, { mode: "trace" })).toEqual([]);
  return it.trace;
}

const bent = (record: OmniMessage, more: object): OmniMessage =>
  record.type === "model_msg"
    ? ({ ...record, ...more, payload: { ...record.payload, ...more } } as OmniMessage)
    : record;

const said = (it: Compactor): OmniMessage[] => {
  const usage = make.addTokenCounts(it.usage, make.emptyTokenCounts());
  return [
    make.assistantText(AT, "more"),
    make.tokenUsage(AT, usage, make.emptyTokenCounts()),
    make.requestEnd(AT, { status: "completed" }),
  ];
};

test("a lawful Trace comes back from an import byte for byte, but for what names the Session, and again from a second one", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  await fc.assert(
    fc.asyncProperty(
      fc.array(part, { minLength: 1, maxLength: 3 }),
      fc.integer({ min: 1, max: 5000 }),
      async (parts, size) => {
        const text = linesOf(await lawfulTrace(parts));
        const one = await made(take(host, upload(text, size)));
        const got = await downloaded(one);
        expect(anonymous(got)).toBe(anonymous(text));
        const meta = JSON.parse(got.slice(0, got.indexOf("\n"))).payload;
        expect(meta).toMatchObject({
          session_id: one.id,
          agent_state: join(dataDir, "sessions", one.id),
          workspace: one.view().workspace,
          later: { a: 1 },
        });
        const two = await imported(host, got);
        expect(anonymous(await downloaded(two))).toBe(anonymous(text));
        expect(two.view().usage).toEqual(one.view().usage);
      },
    ),
    { numRuns: 25 },
  );
});

test("an imported Session goes on where its Trace ends, in a Workspace of its own", async () => {
  const model = scriptedModel([yes]);
  const host = await hostOn({ model });
  const records = await richTrace();
  const session = await imported(host, linesOf(records));
  expect(session.view()).toMatchObject({ approvalMode: "always-ask", state: "idle", title: null, provider: "test" });
  expect(existsSync(session.view().workspace)).toBe(true);
  const reader = listReader();
  session.follow(reader, {});
  await made(session.submit("next", {}));
  await reader.until(ended);
  expect(validateStream(await recordsOf(session), { mode: "trace" })).toEqual([]);
  await host.remove(session.id, null);
  expect(existsSync(session.view().workspace)).toBe(false);
});

test("records as GET /messages gives them are a Trace like any other: they take the places that they have in it", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const text = linesOf(await richTrace());
  const placed = text
    .trimEnd()
    .split("\n")
    .map((line, n) => line.replace("{", `{"ordinal":${n + 40},`));
  const plain = await downloaded(await imported(host, text));
  expect(anonymous(await downloaded(await imported(host, `${placed.join("\n")}\n`)))).toBe(anonymous(plain));
});

test("what has no end in the file is closed as after a restart, wherever the file ends", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const records = await richTrace();
  for (let count = 1; count <= records.length; count++) {
    const session = await imported(host, linesOf(records.slice(0, count)));
    const got = await recordsOf(session);
    expect(anonymous(linesOf(got.slice(0, count)))).toBe(anonymous(linesOf(records.slice(0, count))));
    expect(validateStream(got, { mode: "trace" }), `after ${count} records`).toEqual([]);
    expect(session.view().state).toBe("idle");
  }
});

test("a model that is not there, ids used twice and unknown records are no obstacle", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const meter = new Meter();
  const turn = () => [begin(), callOf("same"), allowed("same"), ...meter.tail(), outputOf("same", "x")];
  const records = [
    scriptedMeta({ provider: "elsewhere", model_id: "gone" }),
    make.userText(AT, "go"),
    ...turn(),
    ...turn(),
    outputOf("nobody's", "orphan"),
    { timestamp: AT, type: "event_msg", payload: { type: "of_the_future", big: 1 } },
    { timestamp: AT, type: "model_msg", payload: { type: "text", role: "nobody" } },
  ] as OmniMessage[];
  const text = linesOf(records).replace('"big":1', '"big":12345678901234567890');
  const session = await imported(host, text);
  expect((await downloaded(session)).slice(0, text.length + 300)).toContain('"big":12345678901234567890');
  expect((await recordsOf(session)).slice(1, records.length)).toEqual(
    text
      .trimEnd()
      .split("\n")
      .slice(1)
      .map((line) => JSON.parse(line)),
  );
  expect(session.view()).toMatchObject({ provider: "elsewhere", modelId: "gone" });
  expect(await session.submit("go", {})).toMatchObject({ ok: false, code: "model_unavailable" });
});

const META = linesOf([scriptedMeta()]);
const PROMPT = linesOf([make.userText(AT, "hello")]);

test.each<[string, string | Buffer, string[]]>([
  ["nothing", "", ["line 1"]],
  ["blank lines", "\n \r\n\n", ["line 1"]],
  ["a text", "this is no Trace\nnor is this\n", ["line 1", "line 2"]],
  ["JSON of another kind", '{"a":1}\n', ["line 1"]],
  ["a list", `[${META.trimEnd()}]\n`, ["line 1"]],
  ["a Trace without its beginning", PROMPT, ["line 1"]],
  ["a session_meta that says too little", '{"timestamp":"x","type":"session_meta","payload":{}}\n', ["line 1"]],
  ["a broken line in the middle", `${META}${PROMPT.slice(0, 20)}\n${PROMPT}`, ["line 2"]],
  ["a torn end", `${META}${PROMPT}${PROMPT.slice(0, 20)}`, ["line 3"]],
  ["a block of NULs", `${META}\0\0\0\0\n${PROMPT}`, ["line 2"]],
  [
    "bytes that are no UTF-8",
    Buffer.concat([Buffer.from(META), Buffer.from(PROMPT.replace("hello", "\xff"), "latin1")]),
    ["line 2"],
  ],
  [
    "a record that could not be sent on",
    `${META}${PROMPT.replace('"text":"hello"', `"text":"hello","x":${"[".repeat(1200)}${"]".repeat(1200)}`)}`,
    ["line 2"],
  ],
  ["a line over the limit", `${META}${PROMPT.replace("hello", "x".repeat(3000))}${PROMPT}`, ["line 2"]],
  ["many bad lines", `${META}${"x\n".repeat(1000)}`, Array.from({ length: 20 }, (_, n) => `line ${n + 2}`)],
])("G1, G2: %s is refused with its lines, and leaves nothing", async (_name, file, lines) => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const refused = await take(host, upload(file, 7), { maxLineBytes: 2900 });
  expect(refused).toMatchObject({ ok: false, code: "invalid_request" });
  expect(refused.problems?.map(({ path }) => path)).toEqual(lines);
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([]);
  expect(existsSync(join(dataDir, "workspaces")) ? readdirSync(join(dataDir, "workspaces")) : []).toEqual([]);
});

test("asked to, an import leaves out what a restart would, and keeps all the rest", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const good = [scriptedMeta(), make.userText(AT, "one"), make.userText(AT, "two")];
  const [meta, one, two] = good.map((record) => linesOf([record]));
  const file = `rubbish\n${meta}\0\0\n${one}${one?.slice(0, 9)}\n\n${two}${"y".repeat(5000)}\n${two?.slice(0, 30)}`;
  const session = await imported(host, file, { damaged: "skip", maxLineBytes: 2000 });
  const texts = (await recordsOf(session)).map(({ payload }) => (payload as { text?: string }).text);
  expect(texts.slice(0, 3)).toEqual([undefined, "one", "two"]);
  // An empty file has nothing to keep.
  expect(await take(host, upload("rubbish\n"), { damaged: "skip" })).toMatchObject({
    ok: false,
    code: "invalid_request",
  });
});

test("B1: what editors do to a file is no damage: CRLF, a byte order mark, no last line feed, bare line separators", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const records = [scriptedMeta(), make.userText(AT, "a\u2028b\u2029c\u0085d")];
  const bare = records.map((record) => JSON.stringify(record));
  const session = await imported(host, `\ufeff${bare.join("\r\n")}`);
  expect((await recordsOf(session))[1]).toEqual(records[1]);
  expect(await downloaded(session)).not.toMatch(/[\u2028\u2029\u0085\r\ufeff]/);
});

test("a file of nothing but contexts does not make a file of each", async () => {
  const host = await hostOn({ model: scriptedModel([]) });
  const refused = await take(host, upload(META.repeat(10_001), 60_000));
  expect(refused).toMatchObject({ ok: false, code: "invalid_request", problems: [{ path: "line 10001" }] });
});

test("a context that takes more memory than it has text is refused before it fills the memory", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const meta = scriptedMeta({});
  const record = { ...make.userText(AT, "hello"), x: Array.from({ length: 300_000 }, () => ({})) };
  const line = Buffer.from(`${JSON.stringify(record)}\n`);
  let sent = 0;
  const chunks = async function* () {
    yield Buffer.from(`${JSON.stringify(meta)}\n`);
    for (; sent < 1000; sent += 1) yield line;
  };
  const refused = await take(host, chunks());
  expect(refused).toMatchObject({
    ok: false,
    code: "invalid_request",
    problems: [{ message: expect.stringContaining("more than a Session can hold") }],
  });
  expect(sent).toBeLessThan(50);
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([]);
});

test("a client that goes away in the middle leaves nothing, and what it threw is thrown on", async () => {
  const dataDir = tempDir();
  const host = await hostOn({ model: scriptedModel([]), dataDir });
  const gone = Object.assign(new Error("aborted"), { code: "ECONNRESET" });
  const chunks = async function* () {
    yield* upload(META + PROMPT);
    throw gone;
  };
  await expect(take(host, chunks())).rejects.toBe(gone);
  expect(readdirSync(join(dataDir, "sessions"))).toEqual([]);
  expect(existsSync(join(dataDir, "workspaces"))).toBe(false);
  expect(host.figures.sessions).toBe(0);
});

test.each(["write", "rename", "makeFolder"] as const)(
  "a disk that refuses (%s) leaves nothing, and a later try is taken",
  async (fault) => {
    const dataDir = tempDir();
    let full = true;
    const refuse = () => {
      if (full) throw Object.assign(new Error("no space left"), { code: "ENOSPC" });
    };
    const fs = {
      ...diskFs,
      rename: async (from: string, to: string) => {
        if (fault === "rename" && to.includes("session-")) refuse();
        return diskFs.rename(from, to);
      },
      makeFolder: async (path: string) => {
        if (fault === "makeFolder" && path.includes(".new-")) refuse();
        return diskFs.makeFolder(path);
      },
      create: async (path: string) => {
        const file = await diskFs.create(path);
        return {
          ...file,
          write: async (bytes: Uint8Array) => {
            if (fault === "write") refuse();
            return file.write(bytes);
          },
        };
      },
    };
    const host = await hostOn({ model: scriptedModel([]), dataDir, fs });
    expect(await take(host, upload(META + PROMPT))).toMatchObject({ ok: false, code: "storage_failed" });
    expect(readdirSync(join(dataDir, "sessions"))).toEqual([]);
    expect(existsSync(join(dataDir, "workspaces")) ? readdirSync(join(dataDir, "workspaces")) : []).toEqual([]);
    full = false;
    const session = await imported(host, META + PROMPT);
    expect(readFileSync(join(dataDir, "sessions", session.id, "session.json"), "utf8")).toContain(session.id);
  },
);
