// Where the keyboard is after what was done with it: never nowhere.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { api, at, makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer } from "../support/upstream.js";
import { hasBrowser, openWindow, ready, send } from "./browser.js";
import { busyPage } from "./busy-page.js";

describe.skipIf(!hasBrowser)("the keyboard", { timeout: 120_000 }, () => {
  startScripted();

  const row = (page: Page, title: string) => page.locator(".row-session", { hasText: title });
  const menuOf = (page: Page, title: string) => row(page, title).getByRole("button", { name: `Actions for ${title}` });
  const isAt = (target: ReturnType<Page["locator"]>) =>
    expect.poll(() => target.evaluate((node) => node === node.ownerDocument.activeElement)).toBe(true);
  const isAtId = (page: Page, id: string) => expect.poll(() => page.evaluate("document.activeElement.id")).toBe(id);
  /** Opens a menu and picks from it, all by keys. */
  const pick = async (page: Page, menu: ReturnType<Page["locator"]>, entry: string) => {
    await menu.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: entry }).focus();
    await page.keyboard.press("Enter");
  };

  test("is at the menu again after a new name, and after a Session was kept", async () => {
    await makeSession(server, { title: "first name" });
    const page = await (await openWindow())(server.url);
    await row(page, "first name").waitFor();
    await pick(page, menuOf(page, "first name"), "Rename…");
    await page.getByRole("textbox", { name: "Name" }).fill("second name");
    await page.keyboard.press("Enter");
    await isAt(menuOf(page, "second name"));
    await pick(page, menuOf(page, "second name"), "Delete…");
    await page.getByRole("button", { name: "Keep it" }).press("Enter");
    await isAt(menuOf(page, "second name"));
    await pick(page, menuOf(page, "second name"), "Rename…");
    await isAt(page.getByRole("textbox", { name: "Name" }));
    await page.keyboard.press("Escape");
    await isAt(menuOf(page, "second name"));
  });

  test("goes to the row that follows when its own is archived or deleted, and from the last to the one before", async () => {
    for (const title of ["xthree", "xtwo", "xone"]) await makeSession(server, { title });
    const page = await (await openWindow())(server.url);
    await row(page, "xthree").waitFor();
    const opens = (title: string) => row(page, title).getByRole("button", { name: title }).first();
    await pick(page, menuOf(page, "xone"), "Archive");
    await row(page, "xone").waitFor({ state: "detached" });
    await isAt(opens("xtwo"));
    await pick(page, menuOf(page, "xtwo"), "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
    await row(page, "xtwo").waitFor({ state: "detached" });
    await isAt(opens("xthree"));
    await page.getByRole("searchbox").fill("x");
    await page.keyboard.press("ArrowDown");
    await page.getByRole("searchbox").fill("xthree");
    await pick(page, menuOf(page, "xthree"), "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
    await row(page, "xthree").waitFor({ state: "detached" });
    await isAtId(page, "new-session");
  });

  test("goes to the prompt when the Session that is looked at is deleted from its own menu", async () => {
    const id = await makeSession(server, { title: "looked at" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await pick(page, page.locator("#session-menu"), "Delete…");
    await page.getByRole("button", { name: "Delete", exact: true }).press("Enter");
    await page.getByText("What should be done?").waitFor();
    await isAtId(page, "prompt");
  });

  test("goes to the prompt of a fork", async () => {
    const id = await makeSession(server, { title: "to fork" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    upstream.script(answer("Yes."));
    await send(page, "is it so?");
    await page.locator("article.assistant", { hasText: "Yes." }).waitFor();
    await ready(page);
    for (const name of ["Fork from here", "Ask this again in a fork"]) {
      await page.goto(`${server.url}/#${id}`);
      await page.locator("article.assistant", { hasText: "Yes." }).waitFor();
      await page.getByRole("button", { name }).focus();
      await page.keyboard.press("Enter");
      await expect.poll(() => new URL(page.url()).hash.slice(1)).not.toBe(id);
      await ready(page);
      await isAtId(page, "prompt");
    }
  });

  test("goes to the end of the prompt with what is taken back, and there too when what waits goes by itself", async () => {
    const { id, page } = await busyPage(server, upstream);
    const waiting = page.getByRole("list", { name: "Waiting" }).getByRole("listitem");
    for (const input of ["second", "third"]) await api(server, "POST", at(id, "/tasks"), { input, whenBusy: "queue" });
    await waiting.nth(1).waitFor();
    await waiting.first().getByRole("button").focus();
    await page.keyboard.press("Enter");
    await expect.poll(() => waiting.count()).toBe(1);
    await isAtId(page, "prompt");
    await page.keyboard.type("!");
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("second!");
    await waiting.first().getByRole("button").focus();
    const { items } = (await api(server, "GET", at(id, "/queue"))).body;
    await api(server, "DELETE", at(id, `/queue/${items[0].itemId}`));
    await expect.poll(() => waiting.count()).toBe(0);
    await isAtId(page, "prompt");
  });

  test("is at the button of the list when the list of a phone is closed, and at the prompt of a new Session", async () => {
    await makeSession(server, { title: "on a phone" });
    const page = await (await openWindow({ viewport: { width: 390, height: 844 } }))(server.url);
    for (const close of ["Escape", "Close the list"]) {
      await page.locator("#open-drawer").press("Enter");
      await isAtId(page, "close-drawer");
      await page.keyboard.press(close === "Escape" ? "Escape" : "Enter");
      await isAtId(page, "open-drawer");
    }
    await page.locator("#open-drawer").press("Enter");
    await isAtId(page, "close-drawer");
    await row(page, "on a phone").getByRole("button", { name: "on a phone" }).first().press("Enter");
    await page.locator("#title", { hasText: "on a phone" }).waitFor();
    await isAtId(page, "open-drawer");
    await page.locator("#open-drawer").press("Enter");
    await isAtId(page, "close-drawer");
    await page.locator("#new-session").press("Enter");
    await page.getByText("What should be done?").waitFor();
    await isAtId(page, "prompt");
  });
});
