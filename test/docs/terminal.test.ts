// docs/terminal.md held to the command line: commands, arguments, options and exit codes are those of --help.

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, expect, inject, test } from "vitest";

const PAGE = readFileSync(fileURLToPath(new URL("../../docs/terminal.md", import.meta.url)), "utf8");
const COMMANDS = ["serve", "chat", "sessions", "tail", "verify", "models", "doctor", "completion"];

const help = new Map<string, string>();
beforeAll(async () => {
  for (const command of COMMANDS) {
    // One line for each option: nothing is wrapped.
    const env = { PATH: process.env.PATH, COLUMNS: "500" };
    const { stdout } = await promisify(execFile)(process.execPath, [inject("cli"), command, "--help"], { env });
    help.set(command, stdout);
  }
});

/** The cells of the rows below a heading that begin with code, or a number. */
function rows(heading: string): string[][] {
  const [, below = ""] = `\n${PAGE}`.split(`\n${heading}\n`);
  return [...(below.split(/^## /m)[0] ?? "").matchAll(/^\| (?=`|\d)(.*) \|$/gm)].map(([, row = ""]) =>
    row.split(" | ").map((cell) => cell.trim()),
  );
}
const codeIn = (text = "") => [...text.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);

test("every command is there with its arguments, and no other", () => {
  const shown = rows("# The terminal").map(([command]) => codeIn(command)[0]);
  const known = COMMANDS.map((command) => {
    const usage = /^Usage: (omnid .*)$/m.exec(help.get(command) ?? "")?.[1] ?? "";
    return usage.replace(" [options]", "").trim();
  });
  expect(shown).toEqual(known);
});

test("every option of every command is there, and no other", () => {
  const shown = rows("## Options").flatMap(([option, of]) =>
    codeIn(of).map((command) => `${command} ${codeIn(option).join(", ")}`),
  );
  const known = COMMANDS.flatMap((command) =>
    [...(help.get(command) ?? "").matchAll(/^ {2}(-\S+(?:, --\S+)?(?: <[^>]+>)?) {2,}/gm)]
      .map(([, option]) => `${command} ${option}`)
      .filter((option) => !option.endsWith("--help")),
  );
  expect(shown.sort()).toEqual(known.sort());
  expect(known.length).toBeGreaterThan(15);
});

test("every exit code is there with the commands that have it, and no other", () => {
  const shown = rows("## Exit codes").flatMap(([code, of = ""]) => {
    const but = /all but (.*)/.exec(of);
    const named = of === "all" ? COMMANDS : but ? COMMANDS.filter((each) => !codeIn(of).includes(each)) : codeIn(of);
    return named.map((command) => `${command} ${code}`);
  });
  const known = COMMANDS.flatMap((command) =>
    [
      ...(/Exit codes: ([\s\S]*)/.exec(help.get(command) ?? "")?.[1] ?? "")
        .replace(/\s+/g, " ")
        .matchAll(/(?:^|; )(\d+) /g),
    ].map(([, code]) => `${command} ${code}`),
  );
  expect(shown.sort()).toEqual(known.sort());
});
