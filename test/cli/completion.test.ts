import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, test } from "vitest";
import { temporaryFolder } from "../support/server.js";

const cli = (...args: string[]) => execFileSync(process.execPath, [inject("cli"), ...args], { encoding: "utf8" });
const COMMANDS = ["serve", "chat", "sessions", "tail", "verify", "models", "doctor", "completion"];

test.each(COMMANDS)("omnid %s --help states the exit codes", (command) => {
  expect(cli(command, "--help")).toMatch(/\nExit codes: 0 [\s\S]+\.\n$/);
});

/** What bash offers behind these words, the last of which is being typed. */
const offered = (...words: string[]): string[] => offeredIn(temporaryFolder(), ...words);

/** In a folder. "filenames" comes first where bash is told to quote what it inserts as a path. */
function offeredIn(folder: string, ...words: string[]): string[] {
  const file = join(temporaryFolder(), "completion.bash");
  const line = ["omnid", ...words].map((word) => `'${word}'`).join(" ");
  writeFileSync(
    file,
    `${cli("completion", "bash")}compopt() { echo "$2"; }
COMP_WORDS=(${line}); COMP_CWORD=${words.length}\n_omnid; printf '%s\\n' "\${COMPREPLY[@]}"\n`,
  );
  return execFileSync("bash", ["--noprofile", "--norc", file], { cwd: folder, encoding: "utf8" }).trim().split("\n");
}

test("bash offers commands, options and the values of options", () => {
  expect(offered("")).toEqual(expect.arrayContaining(COMMANDS));
  expect(offered("ch")).toEqual(["chat"]);
  expect(offered("chat", "--mo")).toEqual(["--model"]);
  expect(offered("chat", "--approval-mode", "a")).toEqual(["always-ask", "allow-all"]);
  expect(offered("chat", "--approval-mode", "=")).toEqual(["always-ask", "read-only", "allow-all"]);
  expect(offered("chat", "--approval-mode", "=", "a")).toEqual(["always-ask", "allow-all"]);
  expect(offered("completion", "z")).toEqual(["zsh"]);
  expect(offered("tail", "la")).toEqual(["last"]);
});

test("bash offers a path as one word, and folders alone for a Workspace", () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "my trace*.jsonl"), "");
  mkdirSync(join(folder, "my work"));
  expect(offeredIn(folder, "verify", "my").sort()).toEqual(["filenames", "my trace*.jsonl", "my work"]);
  for (const flag of ["-w", "--workspace"])
    expect(offeredIn(folder, "chat", flag, "")).toEqual(["filenames", "my work"]);
  expect(offeredIn(folder, "chat", "--workspace", "=", "my")).toEqual(["filenames", "my work"]);
});

test("zsh takes its script", ({ skip }) => {
  if (spawnSync("zsh", ["--version"]).error !== undefined) skip("there is no zsh");
  const file = join(temporaryFolder(), "_omnid");
  writeFileSync(file, cli("completion", "zsh"));
  execFileSync("zsh", ["-n", file]);
  // What its completion system is asked for.
  const asked = (command: string) => {
    const lines = `compdef() { :; }; _arguments() { print -rl -- "$@"; }; . ${file}; words=(omnid ${command} ''); CURRENT=3; _omnid`;
    return execFileSync("zsh", ["-f", "-c", lines], { encoding: "utf8" }).trim().split("\n");
  };
  expect(asked("verify")).toContain("1:file:_files");
  const folders = asked("chat").filter((line) => line.endsWith("]:folder:_files -/"));
  expect(folders.map((line) => line.split("[")[0])).toEqual(["-w", "--workspace="]);
});

test.each([
  [["bogus"], "unknown command 'bogus'"],
  [["serve", "now"], "unknown command 'now'"],
  [["chat", "--approval-mode", "foo", "hi"], "is invalid"],
  [["completion", "fish"], "is invalid"],
  [["tail", "--nothing"], "unknown option"],
  [["sessions", "-n", "0"], "It is to be 1 at least."],
  [["sessions", "-n", "1e3"], "It is no whole number."],
  [["chat", "-m", "foo", "hi"], "It is no provider/modelId"],
  [["chat", "-m", "foo/", "hi"], "It is no provider/modelId"],
  // They would change nothing: a Session keeps its model and its folder.
  [["chat", "-s", "last", "-m", "foo/bar", "hi"], "'-s, --session <id>' cannot be used with option '-m, --model"],
  [["chat", "-w", "/nonexistent", "hi", "-s", "last"], "'-s, --session <id>' cannot be used with option '-w, --work"],
])("a wrong command line, %j, is told apart from what failed: 64", (args, message) => {
  const { status, stderr } = spawnSync(process.execPath, [inject("cli"), ...args], { encoding: "utf8" });
  expect(status).toBe(64);
  expect(stderr).toContain(message);
});
