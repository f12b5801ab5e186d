// The built command line at a terminal of its own, which `script` makes.

import { existsSync } from "node:fs";
import { inject } from "vitest";
import { temporaryFolder } from "../support/server.js";
import { type Running, startProcess } from "./run-cli.js";

const SCRIPT = "/usr/bin/script";

export interface AtTerminal extends Running {
  /** As keys are pressed, or a terminal pastes. */
  type(text: string): void;
}

/** Starts `omnid` with these words of a shell, without colours. `skip` ends a test where no terminal can be made. */
export function startAtTerminal(
  words: string,
  env: Record<string, string>,
  skip: (note: string) => void,
  cwd = temporaryFolder(),
): AtTerminal {
  if (!existsSync(SCRIPT)) skip("there is no `script` to make a terminal with");
  const command = `${process.execPath} ${inject("cli")} ${words}`;
  const run = startProcess(SCRIPT, ["-qec", command, "/dev/null"], {
    env: { HOME: cwd, TERM: "xterm", NO_COLOR: "1", ...env },
    input: undefined,
    cwd,
  });
  return { ...run, type: (text) => void run.child.stdin.write(text) };
}

const ESCAPE = "\u001b";
const CLEARED = new RegExp(`[^\\n]*\\r${ESCAPE}\\[2K`, "g");
const ESCAPES = new RegExp(`${ESCAPE}\\[[0-9;?]*[A-Za-z]`, "g");

/** What a person sees of it: nothing of a line that was cleared, and no escapes. */
export const seen = (text: string): string => text.replace(CLEARED, "").replace(ESCAPES, "").replaceAll("\r\n", "\n");
