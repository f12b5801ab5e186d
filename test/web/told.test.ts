// What is said of a question and of the Session that is open; keys in a menu.

import { beforeAll, describe, expect, test } from "vitest";
import type { Approval, View } from "../../src/client/index.js";
import { emptyView } from "../../src/client/index.js";
import { approvalName, approvalNews } from "../../src/web/asked.js";
import { makeSession } from "../e2e/api.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { calls, startUpstream, type Upstream } from "../support/upstream.js";
import { hasBrowser, openWindow, question, ready, send } from "./browser.js";

test("a question is named by its call and by who asks, and told of so", () => {
  const view = emptyView("s");
  const asked = (sessionId: string, cmd: string) =>
    ({
      sessionId,
      toolCall: { payload: { name: "exec_command", arguments: JSON.stringify({ cmd }), tool_call_id: "c" } },
    }) as unknown as Approval;
  expect(approvalName(asked("s", "echo a\necho b"), view)).toBe("Approval of exec_command: echo a");
  expect(approvalName(asked("k", "ls"), view)).toBe("Approval of exec_command: ls, asked by a subagent");
  const message = { type: "model_msg", payload: { type: "text", role: "user", text: "Look into it" } };
  const child = { before: [{ key: "1", message }], since: [], count: 1, isRead: true, isBehind: false };
  const family = { ...view, children: { k: child } } as unknown as View;
  expect(approvalName(asked("k", "ls"), family)).toBe(
    "Approval of exec_command: ls, asked by a subagent for “Look into it”",
  );
  expect(approvalNews(asked("s", "ls"), view)).toBe("exec_command: ls needs your approval.");
  expect(approvalNews(asked("k", "ls"), view)).toBe("Asked by a subagent: exec_command: ls needs your approval.");
});

describe.skipIf(!hasBrowser)("the page", { timeout: 120_000 }, () => {
  let upstream: Upstream;
  let server: Server;
  beforeAll(async () => {
    if (!hasBrowser) return;
    upstream = await startUpstream(atFileEnd);
    server = await startOmnid({ atEnd: atFileEnd, config: upstream.config() });
  });

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
