// What is said of a question and of the Session that is open; keys in a menu.

import { describe, expect, onTestFinished, test } from "vitest";
import type { Approval, View } from "../../src/client/index.js";
import { emptyView } from "../../src/client/index.js";
import { type Asked, approvalName, approvalNews, askedTogether } from "../../src/web/asked.js";
import { makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer, calls } from "../support/upstream.js";
import { hasBrowser, openWindow, question, ready, send } from "./browser.js";

const approvalOf = (sessionId: string, cmd: string) =>
  ({
    sessionId,
    toolCall: { payload: { name: "exec_command", arguments: JSON.stringify({ cmd }), tool_call_id: "c" } },
  }) as unknown as Approval;
const childOf = (text: string) => {
  const message = { type: "model_msg", payload: { type: "text", role: "user", text } };
  return { before: [{ key: "1", message }], since: [], count: 1, isRead: true, isBehind: false };
};

test("a question is named by its call and by who asks, and told of so", () => {
  const view = emptyView("s");
  const asked = (sessionId: string, cmd: string, seen: View = view) =>
    askedTogether([approvalOf(sessionId, cmd)], seen)[0] as Asked;
  expect(approvalName(asked("s", "echo a\necho b"))).toBe("Approval of exec_command: echo a");
  expect(approvalName(asked("k", "ls"))).toBe("Approval of exec_command: ls, asked by a subagent");
  const family = { ...view, children: { k: childOf("Look into it") } } as unknown as View;
  expect(approvalName(asked("k", "ls", family))).toBe(
    "Approval of exec_command: ls, asked by a subagent for “Look into it”",
  );
  expect(approvalNews(asked("s", "ls"))).toBe("exec_command: ls needs your approval.");
  expect(approvalNews(asked("k", "ls"))).toBe("Asked by a subagent: exec_command: ls needs your approval.");
});

test("questions of the same words are numbered, and no others", () => {
  const children = { k: childOf("Look"), l: childOf("Look"), m: childOf("Another thing") };
  const family = { ...emptyView("s"), children } as unknown as View;
  // The first line is all that a name has of a command.
  const approvals = [approvalOf("k", "ls"), approvalOf("s", "ls"), approvalOf("m", "ls"), approvalOf("l", "ls\nrm a")];
  const asked = askedTogether(approvals, family);
  expect(asked.map(approvalName)).toEqual([
    "Approval (1 of 2) of exec_command: ls, asked by a subagent for “Look”",
    "Approval of exec_command: ls",
    "Approval of exec_command: ls, asked by a subagent for “Another thing”",
    "Approval (2 of 2) of exec_command: ls, asked by a subagent for “Look”",
  ]);
  expect(asked.map(approvalNews).at(-1)).toBe(
    "Asked by a subagent for “Look”: exec_command: ls (2 of 2) needs your approval.",
  );
});

describe.skipIf(!hasBrowser)("the page", { timeout: 120_000 }, () => {
  startScripted();

  test("says how much of a long command is below, until its end is in sight", async () => {
    const id = await makeSession(server, { title: "long", approvalMode: "always-ask" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    const cmd = Array.from({ length: 53 }, (_, line) => `echo ${line}`).join("\n");
    upstream.script(calls({ id: "a", name: "exec_command", args: { cmd } }));
    await send(page, "run it");
    const below = question(page).locator(".below");
    await below.waitFor();
    expect(await below.textContent()).toMatch(/^4\d more lines below$/);
    await question(page)
      .locator("pre.command")
      .evaluate((node) => node.scrollTo(0, node.scrollHeight));
    await below.waitFor({ state: "detached" });
    await page.locator("#stop").click();
    await ready(page);
  });

  test("tells two subagents' questions of the same words apart, and each button says what it answers", async () => {
    onTestFinished(() => upstream.by(() => undefined));
    const child = { prompt: "for the child", description: "a child" };
    upstream.by(({ messages }) => {
      const isChild = !JSON.stringify(messages).includes("delegate");
      if (messages.at(-1)?.role === "tool") return answer("Done.");
      if (isChild) return calls({ id: "c", name: "exec_command", args: { cmd: "echo same" } });
      return calls({ id: "a", name: "run_subagent", args: child }, { id: "b", name: "run_subagent", args: child });
    });
    const id = await makeSession(server, { title: "twins", approvalMode: "always-ask" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await send(page, "delegate");
    const what = "exec_command: echo same, asked by a subagent for “for the child”";
    const button = (name: string) => page.getByRole("button", { name, exact: true });
    await button("Allow").click();
    await button("Allow: run_subagent: a child").click();
    for (const number of [1, 2]) {
      await page.getByRole("region", { name: `Approval (${number} of 2) of ${what}`, exact: true }).waitFor();
      for (const answer of ["Allow", "Deny"]) await button(`${answer} (${number} of 2): ${what}`).waitFor();
      await page.getByRole("textbox", { name: `Reason for a denial, optional (${number} of 2): ${what}` }).waitFor();
    }
    await button(`Deny (2 of 2): ${what}`).click();
    await page.getByRole("region", { name: `Approval of ${what}`, exact: true }).waitFor();
    await button("Allow").click();
    await ready(page);
    const states = page.locator(".subagent .tool .state");
    await expect.poll(() => states.allTextContents()).toEqual(["Exit code 0", "Denied"]);
  });

  test("goes to the first and the last of a menu with Home and End, and marks an open Session that is archived", async () => {
    const id = await makeSession(server, { title: "to archive" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    const at = () => page.evaluate("document.activeElement.textContent");
    await page.locator("#session-menu").focus();
    await page.keyboard.press("Enter");
    await expect.poll(at).toBe("Rename…");
    await page.keyboard.press("End");
    expect(await at()).toBe("Delete…");
    await page.keyboard.press("Home");
    expect(await at()).toBe("Rename…");
    expect(await page.locator("#archived").count()).toBe(0);
    await page.getByRole("menuitem", { name: "Archive" }).click();
    await page.locator("#archived", { hasText: "Archived" }).waitFor();
  });
});
