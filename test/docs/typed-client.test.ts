// docs/typed-client.md held to the client: every call and field is in its tables as it is in the types, nothing else is,
// and its programs compile and run.

import { execFile } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { z } from "zod";
import * as client from "../../src/client/index.js";
import * as contracts from "../../src/http/contracts.js";
import { forkBody } from "../../src/http/contracts-fork.js";
import { abortBody, queueItemSchema, steeredSchema } from "../../src/http/contracts-queue.js";
import { taskStateEvent } from "../../src/http/contracts-stream.js";
import { type ErrorCode, statusOf } from "../../src/http/errors.js";
import { startOmnid, temporaryFolder } from "../support/server.js";
import { installExamples } from "./install-examples.js";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), "utf8");
const PAGE = read("docs", "typed-client.md");

/** The rows of the tables below a heading, without their heads; cells are split and unescaped. */
function tables(heading: string): string[][][] {
  const at = PAGE.indexOf(`\n${heading}\n`);
  expect(at, heading).toBeGreaterThan(0);
  const below = PAGE.slice(at + heading.length + 2).split(/^#/m)[0] ?? "";
  return [...below.matchAll(/(?:^\|.*\n)+/gm)].map(([table]) =>
    table
      .trim()
      .split("\n")
      .slice(2)
      .map((row) => row.split(/(?<!\\)\|/).map((cell) => cell.trim().replaceAll("\\|", "|"))),
  );
}

const codeIn = (text = "") => [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
const column = (table: string[][] | undefined, index: number) => (table ?? []).flatMap((row) => codeIn(row[index]));

/** What stands in an interface of the client, each member without its semicolon and comments. */
function membersOf(file: string, name: string): string[] {
  const body = new RegExp(`^export interface ${name}\\b.*\\{\\n([\\s\\S]*?)^\\}`, "m").exec(read("src/client", file));
  expect(body, name).not.toBeNull();
  return [...(body?.[1] ?? "").matchAll(/^ {2}((?:readonly )?\w+\??[:(].*);$/gm)].map(([, member = ""]) => member);
}

const fieldsOf = (file: string, name: string) =>
  membersOf(file, name).map((member) => /(\w+\??)/.exec(member.replace(/^readonly /, ""))?.[1] ?? "");
const shapeOf = ({ shape }: z.ZodObject) =>
  Object.entries(shape).map(([name, field]) => (field.safeParse(undefined).success ? `${name}?` : name));

const CALLS: [string, number, string, string][] = [
  ["## `client`", 0, "client.ts", "Client"],
  ["## `client`", 1, "client.ts", "SessionsClient"],
  ["## `session`", 0, "session-client.ts", "SessionClient"],
];

test.each(CALLS)(
  "below %s, table %i has the calls of %s %s, with what they take and give",
  (heading, index, file, name) => {
    const written = (tables(heading)[index] ?? []).map((row) => [codeIn(row[1])[0], codeIn(row[2])[0]].join(": "));
    const declared = membersOf(file, name)
      .filter((member) => member !== "readonly sessions: SessionsClient")
      .map((member) => member.replace(/^readonly /, "").replace(", void, void>", ">"));
    expect(written).toEqual(declared);
    expect(written.length).toBeGreaterThan(2);
  },
);

const nameOf = (code: string) => code.replace(/\(.*/, "");
const FIELDS: [string, number, string, string][] = [
  ["## `createClient(options)`", 0, "transport.ts", "ClientOptions"],
  ["## `session.follow(options?)`", 0, "follow.ts", "FollowOptions"],
  ["## `session.follow(options?)`", 1, "follow.ts", "Following"],
  ["### The view", 0, "view-types.ts", "View"],
  ["## `client.sessions.follow(options?)`", 1, "follow-sessions.ts", "FollowingSessions"],
  ["## `client.sessions.follow(options?)`", 0, "follow-sessions.ts", "FollowSessionsOptions"],
];

test.each(FIELDS)("below %s, table %i has the members of %s %s", (heading, index, file, name) => {
  const written = column(tables(heading)[index], 1).map(nameOf);
  expect(written.sort()).toEqual(fieldsOf(file, name).sort());
});

test("the states of a connection, the parts of a view and the fields of an error are those of the types", () => {
  const states = [...read("src/client/view-types.ts").matchAll(/readonly status: "(\w+)"/g)].map(([, state]) => state);
  expect(column(tables("### The view")[1], 1)).toEqual(states);
  const about = new Map((tables("### The view")[0] ?? []).map((row) => [codeIn(row[1])[0], codeIn(row[2]).join()]));
  const PARTS = {
    gap: "Gap",
    fragments: "Fragment",
    children: "ChildView",
    progress: "Progress",
    messages: "ViewMessage",
  };
  for (const [field, type] of Object.entries(PARTS)) {
    expect(about.get(field), field).toContain(`{ ${fieldsOf("view-types.ts", type).join(", ")} }`);
  }
  for (const field of shapeOf(taskStateEvent)) {
    if (field !== "type") expect(about.get("task")?.split(",")).toContain(field.replace("?", ""));
  }
  const error = new client.OmnidError("internal", "", { status: 500, retryAfter: 1, requestId: "" });
  const fields = [...Object.keys(error), "message"].filter((field) => field !== "name");
  expect(column(tables("## Errors")[0], 1).sort()).toEqual(fields.sort());
});

test("what goes in and what comes out has the fields that the server knows", () => {
  const parameters = new Map((tables("## What goes in")[0] ?? []).map((row) => [codeIn(row[1])[0], codeIn(row[2])]));
  const answers = new Map((tables("## What comes out")[0] ?? []).map((row) => [codeIn(row[1])[0], codeIn(row[2])]));
  expect(Object.fromEntries(parameters)).toEqual({
    CallOptions: fieldsOf("wire.ts", "CallOptions"),
    OnceOptions: fieldsOf("wire.ts", "OnceOptions"),
    StreamOptions: fieldsOf("session-client.ts", "StreamOptions"),
    ImportOptions: fieldsOf("client.ts", "ImportOptions"),
    CreateSession: shapeOf(contracts.createSessionBody),
    PatchSession: shapeOf(contracts.patchSessionBody),
    ForkSession: shapeOf(forkBody),
    SubmitTask: shapeOf(contracts.submitBody),
    Decide: shapeOf(contracts.decideBody),
    AbortTask: shapeOf(abortBody),
    ListQuery: fieldsOf("wire.ts", "ListQuery"),
    HistoryQuery: fieldsOf("wire.ts", "HistoryQuery"),
  });
  expect(Object.fromEntries(answers)).toEqual({
    Session: shapeOf(contracts.sessionSchema),
    SessionList: shapeOf(contracts.sessionListSchema),
    TaskAccepted: shapeOf(contracts.acceptedSchema),
    Task: shapeOf(contracts.taskSchema),
    Steered: shapeOf(steeredSchema),
    QueueItem: shapeOf(queueItemSchema),
    Approval: shapeOf(contracts.approvalSchema),
    History: shapeOf(contracts.historySchema),
    ModelList: shapeOf(contracts.modelListSchema),
  });
});

test("every code of an error is there with its status, and no other", () => {
  const source = /const STATUS = \{\n([\s\S]*?)^\}/m.exec(read("src/http/errors.ts"))?.[1] ?? "";
  const known = [...source.matchAll(/^ {2}(\w+):/gm)].map(([, code]) => code as ErrorCode);
  const rows = tables("## Errors")[1] ?? [];
  expect(rows.flatMap((row) => codeIn(row[2])).sort()).toEqual([...known].sort());
  for (const row of rows) {
    const statuses = new Set(codeIn(row[2]).map((code) => String(statusOf(code as ErrorCode))));
    expect([...statuses].sort()).toEqual(row[1]?.split(", "));
  }
});

test("everything that the package exports and can be called is on the page", () => {
  const named = codeIn(PAGE.replaceAll(/^```[\s\S]*?^```/gm, "")).map(nameOf);
  for (const name of Object.keys(client)) expect(named, name).toContain(name);
});

const programOf = (page: string) => [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code]) => code).join("\n");

test("every program in TypeScript that a page shows compiles", async () => {
  const folder = temporaryFolder();
  const pages = [...readdirSync(join(ROOT, "docs")).map((name) => `docs/${name}`), "README.md"];
  const programs = pages
    .filter((name) => name.endsWith(".md"))
    .map((name) => [name.replace("/", "-"), programOf(read(name))] as const)
    .filter(([, program]) => program.includes("import "));
  expect(programs.map(([name]) => name)).toEqual(expect.arrayContaining(["docs-typed-client.md", "README.md"]));
  for (const [name, program] of programs) writeFileSync(join(folder, `${name}.mts`), program);
  const compilerOptions = {
    paths: { "omnid/client": [join(ROOT, "src/client/index.ts")] },
    typeRoots: [join(ROOT, "node_modules/@types")],
    noUnusedLocals: false,
  };
  const config = { extends: join(ROOT, "tsconfig.json"), compilerOptions, include: ["*.mts"], exclude: [] };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  const tsc = [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", folder];
  const said = await promisify(execFile)(process.execPath, tsc).catch(({ stdout }: { stdout: string }) => ({ stdout }));
  expect(said.stdout).toBe("");
}, 60_000);

test("the page's programs, run as they stand, print what they say", async () => {
  const server = await startOmnid({ env: { OMNID_DEMO_DELAY_MS: "0" } });
  const folder = installExamples();
  // Types alone make it TypeScript: the one that stands there is left out.
  const program = programOf(PAGE)
    .replace("http://127.0.0.1:8420", server.url)
    .replace("new Promise<void>", "new Promise");
  writeFileSync(join(folder, "typed-client.mjs"), program);
  const { PATH } = process.env;
  const { stdout } = await promisify(execFile)(process.execPath, [join(folder, "typed-client.mjs")], { env: { PATH } });
  expect(stdout).toMatch(/^hello\n/);
  expect(stdout).toMatch(/live idle.*\n(.*\n)*\d+ messages\nFirst steps: idle\n404 session_not_found\n$/);
});
