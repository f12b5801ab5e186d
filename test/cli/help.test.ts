// How --help is laid out; what it says is held to the page in test/docs/terminal.test.ts.

import { existsSync } from "node:fs";
import { expect, inject, test } from "vitest";
import { runCli, startProcess } from "./run-cli.js";

const COMMANDS = ["serve", "chat", "sessions", "tail", "verify", "models", "doctor", "completion"];
const linesOf = (text: string) => text.trimEnd().split(/\r?\n/);

test.each(COMMANDS)(
  "%s --help keeps within 80 columns where there is no terminal, with no blank at a line's end",
  async (command) => {
    const { stdout } = await runCli([command, "--help"]);
    for (const line of linesOf(stdout)) {
      expect(line.length).toBeLessThanOrEqual(80);
      expect(line).toBe(line.trimEnd());
    }
  },
);

test("the text below the options is as wide as the terminal, as the options are", async ({ skip }) => {
  const script = "/usr/bin/script";
  if (!existsSync(script)) skip("there is no `script` to make a terminal with");
  const command = `stty cols 110; ${process.execPath} ${inject("cli")} chat --help`;
  const { stdout } = await startProcess(script, ["-qec", command, "/dev/null"], { env: { TERM: "xterm" } }).finished;
  const lines = linesOf(stdout);
  const below = lines.slice(lines.findIndex((line) => line.startsWith("The model's answer")));
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(110);
  expect(below.some((line) => line.length > 100)).toBe(true);
  expect(below.join(" ")).toContain("or the reason why not; without a terminal, and without --yes, it is denied.");
});
