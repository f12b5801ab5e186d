// What a subagent asks at the terminal: whose question it is, behind what led to it.

import { expect, test } from "vitest";
import { createClient } from "../../src/client/index.js";
import { delegate, family } from "../support/family.js";
import { startOmnid } from "../support/server.js";
import { answer, call, finish, say, startUpstream } from "../support/upstream.js";
import { type AtTerminal, seen, startAtTerminal } from "./at-terminal.js";

// Both give their call the same id.
const working = (name: string) => [
  {
    steps: [
      ...say(`I am ${name}.`),
      ...call(0, "call_1", "exec_command", { cmd: `echo of ${name}` }),
      ...finish("tool_calls"),
    ],
  },
  answer(`${name} is done.`),
];

async function twoChildren() {
  const upstream = await startUpstream();
  const prompts = ["CHILD one: look\nand see", "CHILD two"] as const;
  family(upstream, [delegate(...prompts), answer("All done.")], {
    [prompts[0]]: working("one"),
    [prompts[1]]: working("two"),
  });
  return startOmnid({ config: upstream.config() });
}

/** The text up to the question of that number, and from it on. */
async function questionOf(run: AtTerminal, number: number): Promise<{ before: string; question: string }> {
  const said = seen(await run.says(new RegExp(`(?:Allow [\\s\\S]*?why not: [\\s\\S]*?){${number}}`)));
  const at = said.lastIndexOf("\nAllow ") + 1;
  return { before: said.slice(0, at), question: said.slice(at) };
}

const ASKED = { one: "Asked by a subagent for “CHILD one: look”.", two: "Asked by a subagent for “CHILD two”." };

test("a subagent's question says for whom it is asked, behind that subagent's own text and call", async ({ skip }) => {
  const server = await twoChildren();
  const run = startAtTerminal("chat Delegate", { OMNID_URL: server.url }, skip);
  for (const number of [1, 2]) {
    const { before, question } = await questionOf(run, number);
    expect(question).toMatch(/^Allow run_subagent/);
    expect(before).not.toContain("Asked by");
    run.type("y\r");
  }
  // The first to be asked about is that of whichever child was faster.
  for (const number of [3, 4]) {
    const { before, question } = await questionOf(run, number);
    const name = question.includes("cmd: echo of one") ? "one" : "two";
    const [text, call] = [`\n  I am ${name}.\n`, `\n  * exec_command echo of ${name}\n`];
    expect(before).toContain(text);
    expect(before.indexOf(call)).toBeGreaterThan(before.indexOf(text));
    expect(before.endsWith(`\n${ASKED[name]}\n`)).toBe(true);
    run.type("y\r");
  }
  const { code, stdout } = await run.finished;
  expect(code).toBe(0);
  for (const name of ["one", "two"]) expect(stdout.split(`* exec_command echo of ${name}`)).toHaveLength(2);
});

test("who comes later is asked behind the line of each call, by name, though it was said before", async ({ skip }) => {
  const server = await twoChildren();
  const client = createClient({ baseUrl: server.url });
  const { sessionId } = await client.sessions.create();
  const session = client.session(sessionId);
  await session.submit("Delegate");
  const open = async () => (await session.approvals()).map((approval) => approval.toolCall.payload.name);
  for (const _ of ["one", "two"]) {
    await expect.poll(open).toContain("run_subagent");
    const [approval] = await session.approvals();
    await client.decide(approval!, { decision: "allow" });
  }
  await expect.poll(open).toEqual(["exec_command", "exec_command"]);
  const run = startAtTerminal("chat --session last", { OMNID_URL: server.url }, skip);
  for (const number of [1, 2]) {
    const { before, question } = await questionOf(run, number);
    const name = question.includes("cmd: echo of one") ? "one" : "two";
    expect(before).toContain(`\n  * exec_command echo of ${name}\n`);
    expect(before.endsWith(`\n${ASKED[name]}\n`)).toBe(true);
    expect(before).not.toContain("I am");
    run.type("y\r");
  }
  await run.says(/All done\.[\s\S]*> /);
  run.type("\u0004");
  expect((await run.finished).code).toBe(0);
});
