// What answers a question, and what was meant for something else.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { api } from "../e2e/api.js";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { hasBrowser, openWindow, question, readQuestion, ready, send } from "./browser.js";

interface Decision {
  type: string;
  decision?: string;
  reason?: string;
}

describe.skipIf(!hasBrowser)("a question", { timeout: 120_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    if (hasBrowser) server = await startOmnid({ atEnd: atFileEnd, env: { OMNID_DEMO_DELAY_MS: "1" } });
  });

  async function asked(prompt: string): Promise<Page> {
    const page = await (await openWindow())(server.url);
    await send(page, prompt);
    await readQuestion(page);
    return page;
  }

  async function decisions(page: Page): Promise<(string | undefined)[]> {
    const id = new URL(page.url()).hash.slice(1);
    const { body } = await api(server, "GET", `/api/sessions/${id}/messages`);
    const payloads = (body as { messages: { payload: Decision }[] }).messages.map(({ payload }) => payload);
    return payloads
      .filter(({ type }) => type === "approval_decision")
      .map(({ decision, reason }) => reason ?? decision);
  }

  test("Ctrl+Enter in the reason box denies, with that reason", async () => {
    const page = await asked("/run echo one");
    await question(page).getByRole("textbox").fill("not in production");
    await page.keyboard.press("Control+Enter");
    await ready(page);
    expect(await decisions(page)).toEqual(["not in production"]);
    expect(await page.locator(".tool .state").textContent()).toBe("Denied");
  });

  test("Ctrl+Enter on Deny, in the search and below a dialog allows nothing; in the empty prompt it allows", async () => {
    const page = await asked("/run echo two");
    await page.getByRole("searchbox").focus();
    await page.keyboard.press("Control+Enter");
    await page.getByLabel("Prompt", { exact: true }).focus();
    await page.keyboard.press("?");
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.press("Control+Enter");
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "detached" });
    expect(await decisions(page)).toEqual([]);
    await question(page).getByRole("button", { name: "Deny" }).focus();
    await page.keyboard.press("Control+Enter");
    // Some browsers press the button, some do not.
    if ((await question(page).count()) > 0) await question(page).getByRole("button", { name: "Deny" }).click();
    await ready(page);
    expect(await decisions(page)).toEqual(["deny"]);
    await send(page, "/run echo three");
    await readQuestion(page);
    await page.getByLabel("Prompt", { exact: true }).focus();
    await page.keyboard.press("Control+Enter");
    await ready(page);
    expect(await decisions(page)).toEqual(["deny", "allow"]);
  });

  test.each(["Ctrl+Enter", "a click"])("%s that comes again at once is no answer to the next question", async (how) => {
    const page = await asked("/parallel echo a && echo b");
    const again =
      how === "a click"
        ? 'next.querySelector("button.allow").click()'
        : 'document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", ctrlKey: true, bubbles: true }))';
    // As soon as the next question stands in the place of the first.
    await page.evaluate(`void (globalThis.pressed = new Promise((done) => {
      const old = document.querySelector(".request");
      new MutationObserver((_, observer) => {
        const next = [...document.querySelectorAll(".request")].find((each) => each !== old);
        if (next === undefined || old.isConnected) return;
        observer.disconnect();
        queueMicrotask(() => done(${again}));
      }).observe(document.body, { childList: true, subtree: true });
    }))`);
    const press = () =>
      how === "a click"
        ? question(page).first().getByRole("button", { name: "Allow" }).click()
        : page.keyboard.press("Control+Enter");
    await press();
    await page.evaluate("pressed");
    await readQuestion(page);
    expect(await decisions(page)).toEqual(["allow"]);
    await press();
    await ready(page);
    expect(await decisions(page)).toEqual(["allow", "allow"]);
  });

  test("a key that is held answers nothing but the first question", async () => {
    const page = await asked("/parallel echo a && echo b");
    await page.keyboard.down("Control");
    await page.keyboard.down("Enter");
    await expect.poll(() => decisions(page)).toEqual(["allow"]);
    await readQuestion(page);
    await page.keyboard.down("Enter");
    await page.keyboard.up("Enter");
    await page.keyboard.up("Control");
    expect(await decisions(page)).toEqual(["allow"]);
    await page.keyboard.press("Control+Enter");
    await ready(page);
  });
});
