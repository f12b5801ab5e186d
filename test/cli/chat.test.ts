import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { parseMessage } from "../../src/protocol/message.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid, temporaryFolder } from "../support/server.js";
import { runCli, startCli, startProcess } from "./run-cli.js";

const ESCAPE = "\u001b";

describe("without a server", () => {
  test("a prompt through a pipe gets the answer alone on standard output, and all about it on standard error", async () => {
    const home = temporaryFolder();
    const { code, stdout, stderr } = await runCli(["chat", "--yes"], {
      env: { HOME: home },
      input: "/run echo hello\n",
    });
    expect(code).toBe(0);
    expect(stdout).toBe("Running `echo hello`.\n`echo hello` ended with exit code 0.\n\n```\nhello\n```\n");
    expect(stderr).toMatch(/^I was asked to run `echo hello`.*\n\* exec_command echo hello\n {2}hello\n$/);
    expect(stdout + stderr).not.toContain(ESCAPE);
    expect(existsSync(join(home, "data", "omnid.lock"))).toBe(false);
    const again = await runCli(["chat", "-s", "last", "and", "-"], { env: { HOME: home } });
    expect(again.stderr).toContain("too many arguments");
    const next = await runCli(["chat", "-s", "last", "What now?"], { env: { HOME: home } });
    expect(next).toMatchObject({ code: 0, stdout: expect.stringContaining('You said: "What now?"') });
  });

  test("what comes through the pipe is added to the prompt of the command line", async () => {
    const { stdout } = await runCli(["chat", "Review this:"], { input: "const a = 1;\n" });
    expect(stdout).toContain('You said: "Review this: const a = 1;"');
  });

  test("it works in the folder where it was started", async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "here.txt"), "found");
    const { stdout } = await runCli(["chat", "--approval-mode", "read-only", "/read here.txt"], { cwd: folder });
    expect(stdout).toContain("found");
  });

  test("without a terminal a call is denied, and the model is told why", async () => {
    const { code, stdout, stderr } = await runCli(["chat", "/run ls"]);
    expect(code).toBe(0);
    expect(stdout).toContain("`ls` was denied, so I left it.");
    expect(stderr).toContain("exec_command was denied by user: nobody could be asked");
  });

  test("a Task that fails is exit code 1, with the reason", async () => {
    const { code, stdout, stderr } = await runCli(["chat", "/fail"], { env: { OMNID_RETRY_LIMIT: "0" } });
    expect(code).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toMatch(/omnid: the Task ended as failed: the demo model was asked to fail\n$/);
  });

  test.each([
    ["nothing to say", ["chat", ""], {}, 64, /there is no prompt/],
    ["a model that there is not", ["chat", "-m", "no/such", "hi"], {}, 2, /there is no model no\/such/],
    ["a Session that there is not", ["chat", "-s", "session-x", "hi"], {}, 2, /there is no such Session/],
    ["a server that there is not", ["chat", "--url", "http://127.0.0.1:9", "hi"], {}, 2, /cannot be reached/],
    ["an address that is none", ["chat", "--url", "ftp://x", "hi"], {}, 64, /--url: "ftp:\/\/x" is no http address/],
    ["a list of an address that is none", ["sessions", "--url", "nonsense"], {}, 64, /"nonsense" is no http address/],
    ["an empty address", ["tail", "--url", "", "last"], {}, 64, /--url: "" is no http address/],
    ["a variable's address that is none", ["sessions"], { OMNID_URL: "nonsense" }, 78, /OMNID_URL: "nonsense" is no/],
    ["a Trace that there is not", ["verify", "/nonexistent"], {}, 2, /^omnid: cannot read \/nonexistent: ENOENT/],
    ["a configuration that is wrong", ["chat", "hi"], { OMNID_MODEL: "nonsense" }, 78, /OMNID_MODEL/],
    ["a list of no server's Sessions", ["sessions"], {}, 2, /no server runs on .*data/],
    ["a Session of no server", ["tail", "last"], {}, 2, /no server runs on .*data/],
  ])("%s is an exit code and a line on standard error", async (_, args, env, code, line) => {
    const result = await runCli(args, { env });
    expect(result).toMatchObject({ code, stdout: "" });
    expect(result.stderr).toMatch(line);
  });

  test("Ctrl-C aborts the Task on record, and is exit code 130", async () => {
    const home = temporaryFolder();
    const run = startCli(["chat", "--yes", "/run echo on; sleep 60"], { env: { HOME: home } });
    await run.says(/\* exec_command/);
    run.child.kill("SIGINT");
    const { code, stderr } = await run.finished;
    expect(code).toBe(130);
    expect(stderr).toMatch(/Aborting\. Once more leaves\.\n[\s\S]*! aborted: user\n$/);
    const next = await runCli(["chat", "-s", "last", "hi"], { env: { HOME: home } });
    expect(next.code).toBe(0);
  });

  test("a reader that has seen enough ends it in order, with the exit code that --help names", async () => {
    const { inject } = await import("vitest");
    const home = temporaryFolder();
    // It goes on saying something: nobody is told of a reader that has left before he is written to.
    const run = "/run while echo on; do sleep 0.1; done";
    const command = `"${process.execPath}" "${inject("cli")}" chat --yes "${run}" | head -c 1; exit "\${PIPESTATUS[0]}"`;
    const { code, stdout } = await startProcess("bash", ["-c", command], { env: { HOME: home } }).finished;
    expect(stdout).toBe("R");
    expect(code).toBe(130);
    expect(existsSync(join(home, "data", "omnid.lock"))).toBe(false);
  });

  test.for([
    ["chat", 'chat --yes "/run echo on; sleep 60"'],
    ["models", "models"],
    ["completion", "completion bash"],
    ["--help", "--help"],
    ["--version", "--version"],
    ["a command's --help", "serve --help"],
  ])("%s onto a full disk is exit code 74 and one line, in order", async ([, args], { skip }) => {
    if (!existsSync("/dev/full")) skip("there is no /dev/full");
    const { inject } = await import("vitest");
    const home = temporaryFolder();
    const command = `"${process.execPath}" "${inject("cli")}" ${args} >/dev/full`;
    const { code, stderr } = await startProcess("bash", ["-c", command], { env: { HOME: home } }).finished;
    expect(stderr.match(/^omnid: .*/gm)).toEqual([expect.stringMatching(/^omnid: standard output: .*ENOSPC/)]);
    expect(stderr).not.toMatch(/^ +at /m);
    expect(code).toBe(74);
    expect(existsSync(join(home, "data", "omnid.lock"))).toBe(false);
  });

  test("what is about the answer and cannot be written does not end it", async ({ skip }) => {
    if (!existsSync("/dev/full")) skip("there is no /dev/full");
    const { inject } = await import("vitest");
    const command = `"${process.execPath}" "${inject("cli")}" chat --yes "/run echo on" 2>/dev/full`;
    const { code, stdout } = await startProcess("bash", ["-c", command]).finished;
    expect(stdout).toContain("`echo on` ended with exit code 0.");
    expect(code).toBe(0);
  });

  test("a second Ctrl-C leaves, and nothing stays behind that would hold the data directory", async () => {
    const home = temporaryFolder();
    const run = startCli(["chat", "--yes", "/run trap '' TERM; echo on; sleep 60"], { env: { HOME: home } });
    await run.says(/\* exec_command/);
    run.child.kill("SIGINT");
    await run.says(/Aborting/);
    run.child.kill("SIGINT");
    expect((await run.finished).code).toBe(130);
    expect(existsSync(join(home, "data", "omnid.lock"))).toBe(false);
  });
});

describe("with a server that runs", () => {
  let server: Server;
  beforeAll(async () => {
    server = await startOmnid({ env: { OMNID_TOKENS: "ada:right" }, atEnd: atFileEnd });
  });
  // As a shell in which the server was started would have it.
  const shell = () => ({ env: { OMNID_DATA_DIR: server.dataDir, OMNID_TOKENS: "ada:right" } });
  const client = () => createClient({ baseUrl: server.url, token: "right" });

  test("it is found by its data directory, and its Session is gone on with", async () => {
    const first = await runCli(["chat", "Hello\nthere"], shell());
    expect(first).toMatchObject({ code: 0, stderr: expect.not.stringContaining("omnid:") });
    const { sessions } = await client().sessions.list({ limit: 1 });
    expect(sessions[0]?.title).toBe("Hello there");
    await runCli(["chat", "--session", "last", "And again"], shell());
    const { messages } = await client().session(sessions[0]!.sessionId).messages();
    const prompts = messages.flatMap(({ payload }) => ("role" in payload && payload.role === "user" ? [payload] : []));
    expect(prompts).toMatchObject([{ text: "Hello\nthere" }, { text: "And again" }]);
    const listed = await runCli(["sessions", "-n", "1"], shell());
    expect(listed.stdout).toMatch(
      /^SESSION +STATE +ACTIVE +MODEL +TITLE\nsession-\S+ +idle +\S+ \S+ +demo\/demo +Hello there\n$/,
    );
    const json = await runCli(["sessions", "--json", "-n", "1"], shell());
    expect(JSON.parse(json.stdout)).toMatchObject({ sessionId: sessions[0]?.sessionId, title: "Hello there" });
  });

  test("--json prints the messages of the Task as the history has them, one a line", async () => {
    const { code, stdout } = await runCli(["chat", "--json", "--yes", "/parallel echo a && echo b"], shell());
    expect(code).toBe(0);
    const printed = stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    for (const message of printed) expect(parseMessage(message)).toHaveProperty("message");
    const { sessions } = await client().sessions.list({ limit: 1 });
    const { messages } = await client().session(sessions[0]!.sessionId).messages({ after: 0 });
    expect(printed).toEqual(messages.map(({ ordinal: _, ...message }) => message));
  });

  test("a child's steps are shown under its parent's", async () => {
    const { stdout, stderr } = await runCli(["chat", "--yes", "/subagent /run echo deep"], shell());
    expect(stderr).toMatch(
      /\* run_subagent .*\n {2}Running `echo deep`\.\n {2}\* exec_command echo deep\n {4}deep\n {2}`echo deep` ended/,
    );
    // The child's answer is its parent's output: it is not shown a second time.
    expect(stderr.split("ended with exit code 0")).toHaveLength(2);
    expect(stdout).toContain("deep");
    const json = await runCli(["chat", "--yes", "--json", "/subagent /run echo deep"], shell());
    const kinds = json.stdout
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const pointer = kinds.findIndex(({ payload }) => payload.type === "subagent");
    expect(kinds[pointer + 1]).toMatchObject({ type: "session_meta", origin: [kinds[pointer].payload.session_id] });
  });

  test("a token that is wrong is refused with the server's words", async () => {
    const { code, stderr } = await runCli(["chat", "hi"], { env: { OMNID_URL: server.url, OMNID_TOKEN: "wrong" } });
    expect(code).toBe(2);
    expect(stderr).toMatch(/^omnid: .*token/);
    const help = await runCli(["chat", "--help"], { env: { OMNID_TOKEN: "s3cr3t-value" } });
    expect(help.stdout).not.toContain("s3cr3t-value");
  });

  test("tail shows what was said and what is being said, and ends in order when it is interrupted", async () => {
    const session = await client().sessions.create({ approvalMode: "allow-all" });
    const say = client().session(session.sessionId);
    for await (const _ of say.run("One"));
    const text = startCli(["tail", session.sessionId], shell());
    const json = startCli(["tail", "last", "--json", "-n", "0"], shell());
    await text.says(/You said: "One"/);
    await json.says(/^$/);
    for await (const _ of say.run("/run echo from the other side"));
    await text.says(/`echo from the other side` ended/);
    text.child.kill("SIGINT");
    const ended = await text.finished;
    expect(ended.code).toBe(0);
    expect(ended.stderr).toContain("> /run echo from the other side\n");
  });
});

test("a prompt at a terminal is answered there: y, n, a reason, Ctrl-D", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const home = temporaryFolder();
  mkdirSync(join(home, "work"));
  const env = { HOME: home, TERM: "xterm", OMNID_DATA_DIR: join(home, "data") };
  const command = `${process.execPath} ${inject("cli")} chat`;
  const run = startProcess(script, ["-qec", command, "/dev/null"], { env, input: undefined, cwd: join(home, "work") });
  const answer = async (after: RegExp, text: string) => {
    await run.says(after);
    run.child.stdin.write(`${text}\r`);
  };
  await answer(/Ctrl-D ends[\s\S]*> /, "/run echo first");
  await answer(/Allow exec_command[\s\S]*cmd: echo first[\s\S]*why not: /, "y");
  await answer(/exit code 0[\s\S]*> /, "/run echo second");
  await answer(/Allow exec_command[\s\S]*cmd: echo second[\s\S]*why not: /, "not in this house");
  await answer(/denied by user: not in this house[\s\S]*> /, "\u0004");
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  expect(stdout).toContain("\u001b[36m* exec_command echo first");
  expect(stdout).toMatch(/omnid chat --session session-\S+ goes on here/);
});

test("what was typed before a question was there is no answer to it", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const home = temporaryFolder();
  const run = startProcess(script, ["-qec", `${process.execPath} ${inject("cli")} chat "/run echo ran"`, "/dev/null"], {
    env: { HOME: home, TERM: "xterm", NO_COLOR: "1", OMNID_DEMO_DELAY_MS: "100" },
    input: undefined,
    cwd: home,
  });
  // The model has begun to speak: the question is still to come.
  await run.says(/I/);
  run.child.stdin.write("y\ry");
  await run.says(/Allow exec_command[\s\S]*why not: /);
  run.child.stdin.write("n\r");
  const { stdout } = await run.finished;
  expect(stdout).toContain("exec_command was denied by user");
  expect(stdout).not.toContain("exit code 0");
});

test("a question shows the whole call, and one that no screen holds when v is typed", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const home = temporaryFolder();
  const long = Array.from({ length: 100 }, (_, index) => `echo step-${index}`).join("\n");
  writeFileSync(join(home, "prompt"), `/run true # nothing\n${long}`);
  const command = `${process.execPath} ${inject("cli")} chat "$(cat prompt)"`;
  const run = startProcess(script, ["-qec", command, "/dev/null"], {
    env: { HOME: home, TERM: "xterm", NO_COLOR: "1" },
    input: undefined,
    cwd: home,
  });
  await run.says(/Allow exec_command\s+cmd:\s+true # nothing\r\n {4}echo step-0\r\n[\s\S]*NOT SHOWN: /);
  const first = await run.says(/step-99[\s\S]*v to view all of it, or why not: /);
  expect(first).not.toMatch(/^ {4}echo step-50\r$/m);
  run.child.stdin.write("v\r");
  await run.says(/or why not: [\s\S]*^ {4}echo step-50\r$[\s\S]*or why not: /m);
  run.child.stdin.write("n\r");
  expect((await run.finished).stdout).toContain("exec_command was denied by user");
});

test("who leaves with a question open is asked it again by the next chat, and the Task goes on", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const home = temporaryFolder();
  const env = { HOME: home, TERM: "xterm", OMNID_DATA_DIR: join(home, "data") };
  const chat = (...args: string[]) => {
    const command = [process.execPath, inject("cli"), "chat", ...args].join(" ");
    return startProcess(script, ["-qec", command, "/dev/null"], { env, input: undefined, cwd: home });
  };
  const first = chat();
  await first.says(/Ctrl-D ends[\s\S]*> /);
  first.child.stdin.write("/run echo later\r");
  await first.says(/Allow exec_command[\s\S]*cmd: echo later[\s\S]*why not: /);
  first.child.stdin.write("\u0004");
  expect((await first.finished).code).toBe(130);
  const second = chat("--session", "last");
  await second.says(/Allow exec_command[\s\S]*cmd: echo later[\s\S]*why not: /);
  second.child.stdin.write("y\r");
  await second.says(/`echo later` ended with exit code 0[\s\S]*> /);
  second.child.stdin.write("\u0004");
  expect((await second.finished).code).toBe(0);
});

test("a question that is answered elsewhere is taken back, and the Task is shown to its end", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const server = await startOmnid();
  const env = { TERM: "xterm", OMNID_URL: server.url };
  const command = `${process.execPath} ${inject("cli")} chat`;
  const run = startProcess(script, ["-qec", command, "/dev/null"], { env, input: undefined });
  await run.says(/Ctrl-D ends[\s\S]*> /);
  run.child.stdin.write("/run echo once\r");
  await run.says(/why not: /);
  const client = createClient({ baseUrl: server.url });
  const { sessions } = await client.sessions.list();
  await client.session(sessions[0]!.sessionId).abort();
  await run.says(/aborted: user[\s\S]*> /);
  run.child.stdin.write("\u0004");
  await run.finished;
});

test("NO_COLOR takes the colours away, not the terminal", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const { inject } = await import("vitest");
  const env = { TERM: "xterm", NO_COLOR: "1" };
  const command = `${process.execPath} ${inject("cli")} chat --yes '/run echo plain' < /dev/null`;
  const { stdout } = await startProcess(script, ["-qec", command, "/dev/null"], { env }).finished;
  expect(stdout).toContain("* exec_command echo plain");
  expect(stdout.split(ESCAPE).filter((rest) => /^\[\d+m/.test(rest))).toEqual([]);
});
