import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Environment } from "../../src/engine/ports.js";
import { callOf, execute, HandClock, inWorkspace, livingInGroup } from "./support.js";

// How long to look again on a busy machine, not how long anything takes.
const PATIENT = { timeout: 20_000, interval: 50 };
const INTERRUPTED = "[interrupted: tool aborted by user]";
const exec = (environment: Environment, cmd: string, more: Record<string, unknown> = {}) =>
  execute(environment, "exec_command", { cmd, ...more });

describe("exec_command", () => {
  test.each([
    ["exit 0 and no output", "true", { output: "[no output]", exit_code: 0 }],
    ["output and errors in order of arrival", "echo a; echo b >&2; echo c", { output: "a\nb\nc\n", exit_code: 0 }],
    ["a non-zero exit", "echo a; exit 3", { output: "a\n[exit code 3]", exit_code: 3 }],
    ["a non-zero exit after half a line", "printf a; exit 3", { output: "a\n[exit code 3]", exit_code: 3 }],
    ["a non-zero exit and no output", "exit 1", { output: "[exit code 1]", exit_code: 1 }],
    ["a death by signal", "kill -SEGV $$", { output: "[killed by SIGSEGV]\n[exit code 139]", exit_code: 139 }],
    ["closed input", "cat; echo over", { output: "over\n", exit_code: 0 }],
    ["quotes and line ends", "printf '%s|' \"a b\" 'c\nd'", { output: "a b|c\nd|", exit_code: 0 }],
    ["devices for output", "echo a >/dev/stdout; echo b >/dev/stderr", { output: "a\nb\n", exit_code: 0 }],
    [
      "output after its standard output is closed",
      "echo a; exec >&- 2>&-; exit 4",
      { output: "a\n[exit code 4]", exit_code: 4 },
    ],
    [
      "a command that kills its own group",
      "echo a; kill -9 0",
      { output: "a\n[killed by SIGKILL]\n[exit code 137]", exit_code: 137 },
    ],
    ["a program that waits for any child", "exec perl -e 'print wait()'", { output: "-1", exit_code: 0 }],
  ])("%s is an answer, not a failure", async (_, cmd, expected) => {
    const { environment } = await inWorkspace();
    const { result } = await exec(environment, cmd);
    expect(result).toMatchObject(expected);
    expect(result).not.toHaveProperty("stop_reason");
  });

  test("a command that does not exist is told by the shell", async () => {
    const { environment } = await inWorkspace();
    const { result } = await exec(environment, "no_such_command_here");
    expect(result.exit_code).toBe(127);
    expect(result.output).toMatch(/no_such_command_here.*not found\n\[exit code 127\]$/s);
  });

  test("runs in the Workspace, or in a folder of it", async () => {
    const { environment, folder } = await inWorkspace();
    await mkdir(join(folder, "a b", "北"), { recursive: true });
    expect((await exec(environment, "pwd")).result.output).toBe(`${folder}\n`);
    expect((await exec(environment, "pwd", { workdir: "a b/北" })).result.output).toBe(`${folder}/a b/北\n`);
  });

  test.each([
    ["one that is missing", "missing", /missing does not exist/],
    ["a file", "file", /file is not a folder/],
    ["one outside", "..", /outside the Workspace/],
    ["an absolute one outside", "/", /outside the Workspace/],
    ["a link to one outside", "link", /outside the Workspace/],
  ])("as workdir, %s is a failed output and nothing runs", async (_, workdir, text) => {
    const { environment, folder } = await inWorkspace();
    await writeFile(join(folder, "file"), "");
    await symlink("/", join(folder, "link"));
    const { result } = await exec(environment, "echo ran", { workdir });
    expect(result).toMatchObject({ output: expect.stringMatching(text), stop_reason: "failed" });
    expect(result.output).not.toContain("ran\n");
  });

  test.each([
    ["longer than one argument can be", `: ${"x".repeat(140_000)}`, /limit 131071/],
    ["with a NUL in it", "echo a\0b", /NUL/],
  ])("a command %s is refused with what to do", async (_, cmd, text) => {
    const { environment } = await inWorkspace();
    expect((await exec(environment, cmd)).result).toMatchObject({
      output: expect.stringMatching(text),
      stop_reason: "failed",
    });
  });

  test("its environment is the one it was given and nothing of the server's", async () => {
    vi.stubEnv("OMNID_TOKENS", "super-secret-token");
    try {
      const { environment } = await inWorkspace({
        environment: { PATH: process.env.PATH ?? "", HOME: "/", GREETING: "hello" },
      });
      const { output } = (await exec(environment, "env")).result;
      expect(output).toContain("GREETING=hello\n");
      expect(output).not.toContain("super-secret-token");
    } finally {
      vi.unstubAllEnvs();
    }
  });

  test("output streams while the command runs", async () => {
    const { environment, folder } = await inWorkspace();
    // The command ends only when the first line has been seen.
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: "echo first; until [ -e go ]; do sleep 0.05; done; echo last" },
      {
        onDelta: (_, soFar) => (soFar === "first\n" ? writeFile(join(folder, "go"), "") : undefined),
      },
    );
    expect(result.output).toBe("first\nlast\n");
  });

  test("B3: a character whose bytes arrive in two chunks is whole, wherever it is cut", async () => {
    const { environment, folder } = await inWorkspace();
    const bytes = Buffer.from("x北🙂é");
    const octal = (part: Buffer) => [...part].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
    for (let cut = 1; cut <= bytes.length; cut += 1) {
      // One write for each part; the second comes when the first, which begins with `x`, was seen.
      const [one, two] = [octal(bytes.subarray(0, cut)), octal(bytes.subarray(cut))];
      const cmd = `printf '${one}'; until [ -e go${cut} ]; do sleep 0.02; done; printf '${two}'`;
      const { result } = await execute(
        environment,
        "exec_command",
        { cmd },
        { onDelta: (delta) => (delta.startsWith("x") ? writeFile(join(folder, `go${cut}`), "") : undefined) },
      );
      expect(result.output).toBe("x北🙂é");
    }
    expect((await exec(environment, "printf 'a\\345\\214'")).result.output).toBe("a\uFFFD");
  });
});

describe("C12: a flood", () => {
  test.each([
    ["400 MB of lines", "yes | head -c 400000000"],
    ["400 MB in one line", "head -c 400000000 /dev/zero | tr '\\0' x"],
  ])("of %s costs bounded memory, and the end of it is kept", async (_, flood) => {
    const { environment } = await inWorkspace();
    const before = process.memoryUsage.rss();
    let peak = 0;
    let bytes = 0;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage.rss());
    }, 10);
    onTestFinished(() => clearInterval(watch));
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: `${flood}; echo; echo the end; exit 5` },
      {
        onProgress: (progress) => {
          bytes = progress.bytes;
        },
      },
    );
    expect(bytes).toBeGreaterThan(0);
    expect(peak).toBeGreaterThan(0);
    expect(peak - before).toBeLessThan(330_000_000);
    expect(result.output.length).toBeLessThanOrEqual(16_000);
    expect(result.output).toMatch(/\n\[\.\.\. 3999\d{5} characters left out \.\.\.\]\n/);
    expect(result.output.endsWith("\nthe end\n[exit code 5]")).toBe(true);
  });

  test("without end is stopped by its time-out, also when nobody reads", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: "yes", timeout_ms: 60_000 },
      {
        // The reader is stuck with the first delta: the time-out passes meanwhile.
        onDelta: (_, soFar) => (soFar.length <= 8_000 && clock.waiting > 0 ? clock.advance(60_000) : undefined),
      },
    );
    expect(result.stop_reason).toBe("timeout");
    expect(result.output).toMatch(/timed out after 60000 ms/);
  });
});

// Two that are left behind, one of which takes no SIGTERM; and the group's own number first.
const LITTER =
  "echo $$; sleep 1000 & (trap '' TERM; sleep 1000) & (trap '' TERM INT HUP; while :; do sleep 1000; done) & ";
const groupIn = (output: string) => Number(output.split("\n")[0]);
/** In a shell whose first argument is the command's process. */
const UNTIL_GONE = "while kill -0 $1 2>/dev/null; do sleep 0.02; done";
const expectGone = (group: number) => vi.waitFor(async () => expect(await livingInGroup(group)).toEqual([]), PATIENT);

describe("H6 H7 H8 H9: nothing of a command's process group stays", () => {
  test("after it ended by itself, and who holds the output open does not hold up the answer", async () => {
    const { environment } = await inWorkspace();
    const { result } = await exec(environment, `${LITTER} exit 0`);
    expect(result).toMatchObject({ exit_code: 0 });
    const group = groupIn(result.output);
    expect(group).toBeGreaterThan(1);
    expect(group).not.toBe(process.pid);
    await expectGone(group);
  });

  test("after a failure", async () => {
    const { environment } = await inWorkspace();
    const { result } = await exec(environment, `${LITTER} kill -9 $$`);
    expect(result).toMatchObject({ exit_code: 137 });
    await expectGone(groupIn(result.output));
  });

  test("after a time-out: SIGTERM at once, SIGKILL 2 s later for who ignores it", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const start = clock.now();
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: `trap 'echo asked' TERM; ${LITTER} while :; do wait; done` },
      {
        onDelta: (delta) => {
          if (delta.includes("asked")) clock.advance(2_000);
          else if (/^\d+\n$/.test(delta)) clock.advance(120_000);
        },
      },
    );
    expect(result).toMatchObject({ stop_reason: "timeout" });
    expect(result).not.toHaveProperty("exit_code");
    expect(result.output).toMatch(/^\d+\nasked\n\[timed out after 120000 ms; .*\]$/);
    expect(clock.now() - start).toBe(122_000);
    await expectGone(groupIn(result.output));
  });

  test("after an abort, whose output comes when the group is gone", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const abort = new AbortController();
    let group = 0;
    const { result, deltas } = await execute(
      environment,
      "exec_command",
      { cmd: `${LITTER} trap '' TERM; echo ready; while :; do sleep 1000; done` },
      {
        signal: abort.signal,
        onDelta: (_, soFar) => {
          if (!soFar.endsWith("ready\n")) return;
          group = groupIn(soFar);
          abort.abort();
          clock.advance(2_000);
        },
      },
    );
    expect(result).toMatchObject({ output: `${group}\nready\n${INTERRUPTED}`, stop_reason: "aborted" });
    expect(deltas.at(-1)).toBe(INTERRUPTED);
    expect(clock.waiting).toBe(0);
    await expectGone(group);
  });

  test("after an abort of one that obeys, with no wait for the clock", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const abort = new AbortController();
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: `${LITTER} wait` },
      {
        signal: abort.signal,
        onDelta: () => abort.abort(),
      },
    );
    expect(result.stop_reason).toBe("aborted");
    await expectGone(groupIn(result.output));
  });

  test("after a reader that walked away", async () => {
    const { environment } = await inWorkspace();
    let group = 0;
    const call = callOf("exec_command", { cmd: `${LITTER} wait` });
    const { signal } = new AbortController();
    for await (const batch of environment.execute({ call, signal, onProgress: () => {}, pointTo: async () => {} })) {
      for (const { payload } of batch)
        if ("output" in payload && payload.output !== "") group = groupIn(String(payload.output));
      if (group > 0) break;
    }
    await expectGone(group);
  });

  test("what moved to a session of its own escapes, and still does not hold up the answer", async () => {
    const { environment } = await inWorkspace();
    const { result } = await exec(
      environment,
      'perl -MPOSIX -e \'fork and exit; POSIX::setsid(); print "$$\\n"; exec "sleep", "1000"\' & wait; sleep 0.2; echo over',
    );
    const [escaped] = result.output.split("\n");
    expect(result.output).toMatch(/over\n$/);
    process.kill(Number(escaped), "SIGKILL");
  });

  test("what escaped and goes on writing does not make a time-out of a command that is over", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: `setsid sh -c '${UNTIL_GONE}; echo gone' - $$ & sleep 0.2; exit 3`, timeout_ms: 100 },
      { onDelta: (delta) => (delta.includes("gone") ? clock.advance(100) : undefined) },
    );
    expect(result).toMatchObject({ output: "gone\n[exit code 3]", exit_code: 3 });
    expect(result).not.toHaveProperty("stop_reason");
  });

  test("an abort ends the answer of a command that is over at once, whatever what escaped still writes", async () => {
    const clock = new HandClock();
    const { environment } = await inWorkspace({ clock });
    const abort = new AbortController();
    const daemon = `${UNTIL_GONE}; while :; do echo gone; sleep 0.01; done`;
    const { result } = await execute(
      environment,
      "exec_command",
      { cmd: `setsid sh -c '${daemon}' - $$ & sleep 0.2` },
      { signal: abort.signal, onDelta: (delta) => (delta.includes("gone") ? abort.abort() : undefined) },
    );
    expect(result.stop_reason).toBe("aborted");
    expect(clock.waiting).toBe(0);
  });
});
