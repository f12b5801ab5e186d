// A text of several lines that is pasted at a question. What a terminal marks as pasted is asked for by the first of
// these sequences.

import { expect, test } from "vitest";
import { type AtTerminal, seen, startAtTerminal } from "./at-terminal.js";

const MARK = "\u001b[?2004h";
const UNMARK = "\u001b[?2004l";
const pasted = (text: string) => `\u001b[200~${text.replaceAll("\n", "\r")}\u001b[201~`;
/** The last line of what the demo model says to a greeting, and the next prompt. */
const ANSWERED = /makes this Request fail[\s\S]*> /;
const PROMPT = /Ctrl-D ends[\s\S]*> /;

/** The text behind the last question, as a person sees it. */
const lastOf = (text: string) => seen(text).split("\n> ").at(-1) ?? "";

/** Leaves, and holds that the terminal marks no paste any more. */
async function leave(run: AtTerminal): Promise<void> {
  run.type("\u0004");
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  expectUnmarked(stdout);
}

function expectUnmarked(stdout: string): void {
  expect(stdout).toContain(MARK);
  expect(stdout.lastIndexOf(UNMARK)).toBeGreaterThan(stdout.lastIndexOf(MARK));
}

test("a paste of several lines is one prompt, sent by the Enter behind it", async ({ skip }) => {
  const run = startAtTerminal("chat", {}, skip);
  await run.says(PROMPT);
  run.type(pasted("first\n\n\tthird\nlast"));
  run.type(" and more\r");
  const said = await run.says(ANSWERED);
  expect(seen(said)).toContain('You said: "first third last and more"');
  expect(seen(said).split("You said")).toHaveLength(2);
  await leave(run);
});

test("line ends of two characters are one, and one at the end sends nothing", async ({ skip }) => {
  const run = startAtTerminal("chat", {}, skip);
  await run.says(PROMPT);
  run.type("\u001b[200~/run printf %s 'a\r\n");
  run.type("b'\r\n\u001b[201~");
  run.type("\r");
  await run.says(/cmd:\r\n {4}printf %s 'a\r\n {4}b'\r\n[\s\S]*why not: /);
  run.type("n\r");
  await run.says(/denied by user[\s\S]*> /);
  await leave(run);
});

test("no line of a paste answers an approval: it is no prompt's rest, and at the question it waits for Enter", async ({
  skip,
}) => {
  const run = startAtTerminal("chat", {}, skip);
  await run.says(PROMPT);
  run.type("/run echo ran\ry\ry\r");
  await run.says(/dropped: y and 1 more line[\s\S]*Allow exec_command[\s\S]*why not: /);
  run.type(pasted("y\nor rather no"));
  run.type("\r");
  const said = await run.says(/denied by user[\s\S]*> /);
  expect(seen(said)).toContain("exec_command was denied by user: y");
  expect(seen(said)).not.toContain("exit code 0");
  await leave(run);
});

test("of a paste that is not marked the first line is the prompt, and the others are said to be dropped", async ({
  skip,
}) => {
  const run = startAtTerminal("chat", {}, skip);
  await run.says(PROMPT);
  run.type("one\rtwo\rthree\rfour");
  const said = await run.says(ANSWERED);
  expect(seen(said)).toContain("\n! came with that line and was dropped: two and 2 more lines\n");
  expect(seen(said)).toContain('You said: "one"');
  expect(lastOf(said)).toBe("");
  await leave(run);
});

test("a terminal marks no paste any more after Ctrl-C and Ctrl-D", async ({ skip }) => {
  for (const end of ["\u0003", "\u0004"]) {
    const run = startAtTerminal("chat", {}, skip);
    await run.says(PROMPT);
    run.type(end);
    expectUnmarked((await run.finished).stdout);
  }
});

test("nothing is asked of what is no terminal", async ({ skip }) => {
  const run = startAtTerminal("chat 2>&1 | cat", {}, skip);
  await run.says(PROMPT);
  run.type("hello\r");
  await run.says(ANSWERED);
  run.type("\u0004");
  expect((await run.finished).stdout).not.toContain(MARK);
});
