// The list of Sessions and what is done with a Session as a whole; forks; what goes along with a prompt.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, onTestFinished, test } from "vitest";
import { api, at, makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { startOmnid } from "../support/server.js";
import { answer } from "../support/upstream.js";
import { hasBrowser, openWindow, ready, send } from "./browser.js";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

describe.skipIf(!hasBrowser)("the page's Sessions", { timeout: 120_000 }, () => {
  startScripted({ model: { vision: true } });

  const row = (page: Page, title: string) => page.locator(".row-session", { hasText: title });
  const choose = async (page: Page, title: string, entry: string) => {
    await row(page, title).hover();
    await row(page, title)
      .getByRole("button", { name: `Actions for ${title}` })
      .click();
    await page.getByRole("menuitem", { name: entry }).click();
  };

  test("are found by any of their words, the Workspace's too", async () => {
    await makeSession(server, { title: "Rewrite the parser" });
    await makeSession(server, { title: "Water the plants" });
    const page = await (await openWindow())(server.url);
    await row(page, "Rewrite the parser").waitFor();
    await page.getByRole("searchbox").fill("plants water");
    await row(page, "Rewrite the parser").waitFor({ state: "detached" });
    expect(await row(page, "Water the plants").count()).toBe(1);
    await page.getByRole("searchbox").fill("no such thing");
    await page.getByText("Nothing found.").waitFor();
  });

  test("are renamed in every tab, archived out of sight and taken back", async () => {
    await makeSession(server, { title: "Old name" });
    const tab = await openWindow();
    const [page, other] = [await tab(server.url), await tab(server.url)];
    await page.bringToFront();
    await choose(page, "Old name", "Rename…");
    await page.getByRole("textbox", { name: "Name" }).fill("New name");
    await page.keyboard.press("Enter");
    await row(other, "New name").waitFor();
    await choose(page, "New name", "Archive");
    await row(page, "New name").waitFor({ state: "detached" });
    await row(other, "New name").waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Archived", exact: true }).click();
    await choose(page, "New name", "Unarchive");
    await page.getByRole("button", { name: "Back to Sessions" }).click();
    await row(page, "New name").waitFor();
  });

  test("say how they stand while another one is looked at", async () => {
    const id = await makeSession(server, { title: "In the background", provider: "demo", modelId: "demo" });
    const page = await (await openWindow())(server.url);
    await row(page, "In the background").waitFor();
    await api(server, "POST", at(id, "/tasks"), { input: "/run echo hidden" });
    await row(page, "In the background").getByText("needs approval").waitFor();
    await api(server, "POST", at(id, "/abort"));
    await row(page, "In the background").getByText("needs approval").waitFor({ state: "detached" });
  });

  test("a new one has the model, the mode, the thinking and the Workspace that were chosen", async () => {
    const workspace = mkdtempSync(join(tmpdir(), "omnid-workspace-"));
    onTestFinished(() => rmSync(workspace, { recursive: true }));
    const page = await (await openWindow())(server.url);
    await page.getByLabel("Model").selectOption("demo/demo");
    await page.getByLabel("Approvals").selectOption("allow-all");
    await page.getByLabel("Thinking", { exact: true }).selectOption("high");
    await page.getByLabel("Workspace").fill(workspace);
    await send(page, "/run pwd");
    await ready(page);
    expect(await page.locator(".tool .output").textContent()).toContain(workspace);
    const { body } = await api(server, "GET", at(new URL(page.url()).hash.slice(1)));
    expect(body).toMatchObject({
      modelId: "demo",
      approvalMode: "allow-all",
      thinkingLevel: "high",
      workspace,
      title: "/run pwd",
    });
    await page.getByLabel("Thinking", { exact: true }).selectOption("low");
    await expect.poll(async () => (await api(server, "GET", at(body.sessionId))).body.thinkingLevel).toBe("low");
  });

  test("a fork begins before a prompt, with it in the box; or after an answer; or goes on on another model", async () => {
    const id = await makeSession(server, { title: "Trunk" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    for (const word of ["one", "two"]) {
      upstream.script(answer(`answer ${word}`));
      await send(page, `ask ${word}`);
      await page.locator("article.assistant", { hasText: `answer ${word}` }).waitFor();
      await ready(page);
    }
    const prompts = () => page.locator("article.user .bubble").allTextContents();
    await page.locator("article.user", { hasText: "ask two" }).hover();
    await page
      .locator("article.user", { hasText: "ask two" })
      .getByRole("button", { name: "Ask this again in a fork" })
      .click();
    await expect.poll(() => new URL(page.url()).hash.slice(1)).not.toBe(id);
    await ready(page);
    expect(await prompts()).toEqual(["ask one"]);
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("ask two");
    await page.getByLabel("Prompt", { exact: true }).fill("");

    await page.goto(`${server.url}/#${id}`);
    const first = page.locator("article.assistant", { hasText: "answer one" });
    await page.locator("article.assistant", { hasText: "answer two" }).waitFor();
    await first.hover();
    await first.getByRole("button", { name: "Fork from here" }).click();
    await expect.poll(() => new URL(page.url()).hash.slice(1)).not.toBe(id);
    await ready(page);
    expect(await prompts()).toEqual(["ask one"]);
    expect(await page.locator("article.assistant").count()).toBe(1);

    await page.getByLabel("Model").selectOption("demo/demo");
    await expect.poll(() => page.getByLabel("Model").inputValue()).toBe("demo/demo");
    await send(page, "/think on another model");
    await ready(page);
    expect(await prompts()).toEqual(["ask one", "/think on another model"]);
  });

  test("what was begun in one Session stays in it, also over a reload, and is there again when the reader comes back", async () => {
    await makeSession(server, { title: "Left" });
    await makeSession(server, { title: "Right" });
    const page = await (await openWindow())(server.url);
    const box = page.getByLabel("Prompt", { exact: true });
    const go = (title: string) => row(page, title).getByRole("button", { name: title }).first().click();
    await box.fill("for a new one");
    await go("Left");
    await page.locator("#title", { hasText: "Left" }).waitFor();
    expect(await box.inputValue()).toBe("");
    await box.fill("for the left");
    await go("Right");
    await page.locator("#title", { hasText: "Right" }).waitFor();
    expect(await box.inputValue()).toBe("");
    await go("Left");
    await expect.poll(() => box.inputValue()).toBe("for the left");
    await page.getByRole("button", { name: "New session" }).click();
    await expect.poll(() => box.inputValue()).toBe("for a new one");
    await page.reload();
    await row(page, "Left").waitFor();
    expect(await box.inputValue()).toBe("for a new one");
    await go("Left");
    await expect.poll(() => box.inputValue()).toBe("for the left");
    await box.fill("");
    await page.reload();
    await page.locator("#title", { hasText: "Left" }).waitFor();
    expect(await box.inputValue()).toBe("");
  });

  test("a first prompt that its Session refuses stays in the box, and leaves no Session behind", async () => {
    const named = async () =>
      (await api(server, "GET", "/api/sessions")).body.sessions.filter(
        ({ title }: { title: string }) => title === "keep me",
      );
    const page = await (await openWindow())(server.url);
    await page.getByLabel("Model").selectOption("scripted/m");
    await page.route("**/tasks", (route) =>
      route.fulfill({ status: 507, json: { error: { code: "storage_failed", message: "the disk is full" } } }),
    );
    await send(page, "keep me");
    await page.getByRole("alert").filter({ hasText: "The disk is full." }).waitFor();
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("keep me");
    await expect.poll(named).toEqual([]);
    await row(page, "keep me").waitFor({ state: "detached" });
    expect(await page.getByLabel("Model").inputValue()).toBe("scripted/m");
    await page.getByText("What should be done?").waitFor();
    await page.unroute("**/tasks");
    upstream.script(answer("Kept."));
    await page.keyboard.press("Enter");
    await page.locator("article.assistant", { hasText: "Kept." }).waitFor();
    await expect.poll(() => page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("");
    expect(await named()).toHaveLength(1);
  });

  test("the Trace comes as a file, byte for byte, with a token too, and becomes a Session again", async () => {
    const guarded = await startOmnid({ env: { OMNID_TOKENS: "ada:s3cret" } });
    const headers = { authorization: "Bearer s3cret" };
    for (const [where, more] of [
      [server, {}],
      [guarded, headers],
    ] as const) {
      const id = await makeSession(where, { title: "Kept" }, more);
      const page = await (await openWindow())(`${where.url}/#${id}`);
      if (where === guarded) {
        await page.getByRole("textbox", { name: "Token" }).fill("s3cret");
        await page.getByRole("checkbox").check();
        await page.keyboard.press("Enter");
      }
      await ready(page);
      const coming = page.waitForEvent("download");
      await page.locator("#session-menu").click();
      await page.getByRole("menuitem", { name: "Download the Trace" }).click();
      const file = await coming;
      expect(file.suggestedFilename()).toBe(`${id}.jsonl`);
      const { text } = await api(where, "GET", at(id, "/trace"), undefined, more);
      expect(readFileSync(await file.path(), "utf8")).toBe(text);
      if (where === guarded) {
        // It was to be kept: a new tab of the same window is not asked.
        expect(await page.evaluate("[sessionStorage.length, localStorage.length]")).toEqual([0, 1]);
      }
      await page.getByLabel("Trace to import").setInputFiles(await file.path());
      await expect.poll(() => new URL(page.url()).hash.slice(1)).not.toBe(id);
      await ready(page);
    }
  });

  test("a picture and a file go along, from the picker, the clipboard and a drop, and can be left out again", async () => {
    const folder = mkdtempSync(join(tmpdir(), "omnid-files-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "dot.png"), Buffer.from(PIXEL, "base64"));
    writeFileSync(join(folder, "notes.txt"), "some notes");
    const id = await makeSession(server, { title: "With files" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page.getByLabel("Files to attach").setInputFiles([join(folder, "dot.png"), join(folder, "notes.txt")]);
    const attached = page.getByRole("list", { name: "Attached" }).getByRole("listitem");
    await expect.poll(() => attached.count()).toBe(2);
    const give = (type: string, target: string, name: string) =>
      page.evaluate(`{
        const data = new DataTransfer();
        data.items.add(new File(["pasted"], ${JSON.stringify(name)}, { type: "text/plain" }));
        const target = document.querySelector(${JSON.stringify(target)});
        target.dispatchEvent(${type === "paste" ? 'new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })' : 'new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true })'});
      }`);
    await give("paste", "#prompt", "pasted.txt");
    await give("drop", "#scroller", "dropped.txt");
    await expect.poll(() => attached.allTextContents()).toEqual(["dot.png", "notes.txt", "pasted.txt", "dropped.txt"]);
    for (const name of ["notes.txt", "pasted.txt"]) {
      await page.getByRole("button", { name: `Remove ${name}` }).click();
    }
    upstream.script(answer("I see a dot."));
    await send(page, "what is this?");
    await page.locator("article.assistant", { hasText: "I see a dot." }).waitFor();
    await ready(page);
    expect(await attached.count()).toBe(0);
    const asked = JSON.stringify(upstream.requests.at(-1)?.body.messages);
    expect(asked).toContain(PIXEL);
    expect(asked).not.toContain("notes.txt");
    await page.reload();
    await ready(page);
    expect(await page.locator(".media.user img").count()).toBe(1);
    expect(await page.locator("#items").textContent()).toContain("dropped.txt");
  });
});
