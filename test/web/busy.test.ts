// The page while a Session works: prompts that wait, that are told to the model, that take its place; what is taken
// back; the wait before a further try.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, at, makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer, calls } from "../support/upstream.js";
import { activity, hasBrowser, openWindow, readQuestion, ready, send } from "./browser.js";
import { busyPage, chooseWhenBusy } from "./busy-page.js";

describe.skipIf(!hasBrowser)("a page whose Session works", { timeout: 120_000 }, () => {
  startScripted({ env: { OMNID_RETRY_BASE_MS: "600000", OMNID_RETRY_MAX_MS: "600000" } });

  const promptsIn = (page: Page) => page.locator("article.user .bubble").allTextContents();

  test("a prompt waits its turn, is shown as waiting, and can be taken back into the box", async () => {
    const { page, rest } = await busyPage(server, upstream);
    await send(page, "second");
    await send(page, "third");
    const waiting = page.getByRole("list", { name: "Waiting" }).getByRole("listitem");
    await expect.poll(() => waiting.count()).toBe(2);
    await activity(page, "Writing, 2 queued");
    await waiting.filter({ hasText: "second" }).getByRole("button", { name: "Take back" }).click();
    await expect.poll(() => waiting.count()).toBe(1);
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("second");
    upstream.script(answer("to the third"));
    rest.open();
    await page.locator("article.assistant", { hasText: "to the third" }).waitFor();
    await ready(page);
    await expect.poll(() => promptsIn(page)).toEqual(["first", "third"]);
    await expect.poll(() => waiting.count()).toBe(0);
  });

  test("steering waits visibly until the model has it, and then stands in the conversation as what it was", async () => {
    const { page, rest } = await busyPage(server, upstream);
    await chooseWhenBusy(page, "steer");
    await send(page, "look left");
    const waiting = page.getByRole("list", { name: "Waiting" });
    await waiting.getByText("look left").waitFor();
    expect(await waiting.textContent()).toContain("Steering");
    upstream.script(answer("I looked."));
    rest.open();
    await page.locator("article.assistant", { hasText: "I looked." }).waitFor();
    await ready(page);
    const steered = page.locator("article.user", { hasText: "look left" });
    expect(await steered.textContent()).toContain("sent while it worked");
    await expect.poll(() => waiting.count()).toBe(0);
  });

  test("steering that an interrupt left undelivered is said to be so, and can be taken back into the box", async () => {
    const { page } = await busyPage(server, upstream);
    await chooseWhenBusy(page, "steer");
    await send(page, "look left");
    const waiting = page.getByRole("list", { name: "Waiting" });
    await waiting.getByText("look left").waitFor();
    await page.keyboard.press("Control+.");
    await ready(page);
    await expect.poll(() => waiting.textContent()).toContain("Not delivered");
    await waiting.getByRole("button", { name: "Take back" }).click();
    await expect.poll(() => waiting.count()).toBe(0);
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("look left");
  });

  test("an interrupting prompt ends what runs and is answered next", async () => {
    const { page } = await busyPage(server, upstream);
    await chooseWhenBusy(page, "interrupt");
    upstream.script(answer("another thing"));
    await send(page, "instead");
    await page.locator("article.assistant", { hasText: "another thing" }).waitFor();
    await ready(page);
    await expect.poll(() => promptsIn(page)).toEqual(["first", "instead"]);
    expect(await page.locator(".notice").textContent()).toBe("You stopped this.");
  });

  test("Ctrl+. stops, and what the model said so far stays", async () => {
    const { page } = await busyPage(server, upstream);
    await page.keyboard.press("Control+.");
    await ready(page);
    await page.locator(".notice", { hasText: "You stopped this." }).waitFor();
    expect(await page.locator("article.assistant").textContent()).toContain("wait");
  });

  test("a model that does not answer is waited for with the seconds in sight, and Retry now ends the wait", async () => {
    const id = await makeSession(server, { title: "retry" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    upstream.script({ status: 503, steps: ['{"error":{"message":"overloaded"}}'] }, answer("here I am"));
    await send(page, "are you there?");
    await page.locator("#activity", { hasText: /Try 2 in \d+ s/ }).waitFor();
    await page.getByRole("button", { name: "Retry now" }).click();
    await page.locator("article.assistant", { hasText: "here I am" }).waitFor();
    await ready(page);
    expect(await page.getByRole("button", { name: "Retry now" }).count()).toBe(0);
  });

  test("a compaction that was asked for is one row with its summary, on the page that asked and on one that comes later", async () => {
    const id = await makeSession(server, { title: "compact" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    upstream.script(answer("One."));
    await send(page, "say one");
    await ready(page);
    upstream.script(answer("They said one."));
    await page.locator("#session-menu").click();
    await page.getByRole("menuitem", { name: "Compact the context" }).click();
    await page.locator(".compaction", { hasText: "The context was compacted" }).waitFor();
    await ready(page);
    await page.reload();
    await page.locator(".compaction", { hasText: "The context was compacted" }).waitFor();
    expect(await page.locator(".compaction").count()).toBe(1);
    expect(await page.locator("article.assistant").allInnerTexts()).toEqual(["One."]);
  });

  test("a child's call is asked about, answered at the child, and shown in the child's own card", async () => {
    onTestFinished(() => upstream.by(() => undefined));
    const id = await makeSession(server, { title: "family", approvalMode: "read-only" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    upstream.by(({ messages }) => {
      const last = messages.at(-1);
      const asked = JSON.stringify(messages.find(({ role }) => role === "user")?.content ?? "");
      if (last?.role === "tool") return answer(asked.includes("for the child") ? "The child is done." : "All is done.");
      if (asked.includes("for the child")) {
        return calls({ id: "c1", name: "exec_command", args: { cmd: "echo from the child" } });
      }
      if (!asked.includes("delegate")) return undefined;
      return calls({ id: "c1", name: "run_subagent", args: { prompt: "for the child", description: "a child" } });
    });
    await send(page, "delegate");
    const request = page.getByRole("region", { name: "Approval of exec_command" });
    const parents = page.getByRole("region", { name: "Approval of run_subagent" });
    await request.or(parents).first().waitFor();
    if ((await parents.count()) > 0) await parents.getByRole("button", { name: "Allow" }).click();
    await request.waitFor();
    await expect.poll(() => request.textContent()).toContain("Asked by a subagent for “for the child”.");
    await request.getByRole("button", { name: "Allow" }).click();
    await ready(page);
    const card = page.locator(".subagent .tool");
    await expect.poll(() => card.locator(".output").textContent()).toContain("from the child");
    await expect.poll(() => card.locator(".approved").textContent()).toBe("Allowed by you");
  });

  test("what a tool writes is shown as it comes, and its end is said", async () => {
    const id = await makeSession(server, { title: "tools", approvalMode: "allow-all" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    const cmd = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo ended";
    const { workspace } = (await api(server, "GET", at(id))).body;
    upstream.script(calls({ id: "w", name: "exec_command", args: { cmd } }), answer("Done."));
    await send(page, "wait for the file");
    const output = page.locator(".tool .output");
    await output.filter({ hasText: "begun" }).waitFor();
    expect(await page.locator(".tool .state").textContent()).toBe("Running");
    writeFileSync(join(workspace, "go"), "");
    await ready(page);
    expect(await output.textContent()).toContain("ended");
    expect(await page.locator(".tool .state").textContent()).toBe("Exit code 0");
  });

  test("an edit is shown as a difference, before it is allowed and after", async () => {
    const id = await makeSession(server, { title: "edit", approvalMode: "read-only" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    const edit = { file_path: "a.txt", old_string: "one\ntwo", new_string: "one\n2" };
    upstream.script(calls({ id: "e", name: "edit_file", args: edit }), answer("There is no such file, it seems."));
    await send(page, "edit it");
    await readQuestion(page);
    const shown = (from: string) => page.locator(`${from} .diff .line`).allTextContents();
    expect(await shown(".request")).toEqual(["  one\n", "- two\n", "+ 2\n"]);
    await page.keyboard.press("Control+Enter");
    await ready(page);
    expect(await shown(".tool")).toEqual(["  one\n", "- two\n", "+ 2\n"]);
    expect(await page.locator(".tool .state").textContent()).toBe("Failed");
  });
});
