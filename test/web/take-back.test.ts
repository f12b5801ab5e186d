// What waits is taken back into the box, and nothing of it or of what is there already is lost.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { api, at, makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer, gate } from "../support/upstream.js";
import { hasBrowser, ready, send } from "./browser.js";
import { busyPage } from "./busy-page.js";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PICTURE = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") };
const NOTES = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("some notes") };

describe.skipIf(!hasBrowser)("a prompt that is taken back", { timeout: 120_000 }, () => {
  startScripted({ model: { vision: true } });

  const box = (page: Page) => page.getByLabel("Prompt", { exact: true });
  const waiting = (page: Page) => page.getByRole("list", { name: "Waiting" }).getByRole("listitem");
  const attached = (page: Page) => page.getByRole("list", { name: "Attached" }).getByRole("listitem");
  const takeBack = (page: Page, text: string) =>
    waiting(page).filter({ hasText: text }).getByRole("button", { name: "Take back" }).click();

  /** A page where two prompts wait. */
  async function pageWithTwo() {
    const busy = await busyPage(server, upstream);
    for (const [count, text] of [
      [1, "second"],
      [2, "third"],
    ] as const) {
      await send(busy.page, text);
      await expect.poll(() => waiting(busy.page).count()).toBe(count);
    }
    return busy;
  }

  test("stands behind what is in the box already, a blank line between them", async () => {
    const { page } = await pageWithTwo();
    await box(page).fill("begun");
    await takeBack(page, "second");
    await expect.poll(() => box(page).inputValue()).toBe("begun\n\nsecond");
    await takeBack(page, "third");
    await expect.poll(() => box(page).inputValue()).toBe("begun\n\nsecond\n\nthird");
    await expect.poll(() => waiting(page).count()).toBe(0);
  });

  test("has its pictures and files again, and goes out with them", async () => {
    const { page, rest } = await busyPage(server, upstream);
    await page.getByLabel("Files to attach").setInputFiles([PICTURE, NOTES]);
    await expect.poll(() => attached(page).count()).toBe(2);
    await send(page, "look at these");
    await expect.poll(() => waiting(page).count()).toBe(1);
    await expect.poll(() => attached(page).count()).toBe(0);
    await takeBack(page, "look at these");
    await expect.poll(() => attached(page).allTextContents()).toEqual(["image.png", "notes.txt"]);
    expect(await attached(page).locator("img").count()).toBe(1);
    expect(await box(page).inputValue()).toBe("look at these");
    rest.open();
    await ready(page);
    upstream.script(answer("I see both."));
    await box(page).press("Enter");
    await page.locator("article.assistant", { hasText: "I see both." }).waitFor();
    const asked = JSON.stringify(upstream.requests.at(-1)?.body.messages);
    expect(asked).toContain(PIXEL);
    expect(asked).toContain("notes.txt");
    await ready(page);
  });

  test("of files alone has them again, and leaves the text in the box as it is", async () => {
    const { page } = await busyPage(server, upstream);
    await page.getByLabel("Files to attach").setInputFiles([NOTES]);
    await page.locator("#send").click();
    await expect.poll(() => waiting(page).count()).toBe(1);
    await expect.poll(() => attached(page).count()).toBe(0);
    await box(page).fill("begun");
    await takeBack(page, "notes.txt");
    await expect.poll(() => attached(page).allTextContents()).toEqual(["notes.txt"]);
    expect(await box(page).inputValue()).toBe("begun");
  });

  test("stays in the box while another one is on its way out of it", async () => {
    const { id, page } = await pageWithTwo();
    const held = gate();
    await page.route("**/tasks", async (route) => {
      await held.opened;
      await route.continue();
    });
    await send(page, "fourth");
    await takeBack(page, "second");
    await expect.poll(() => box(page).inputValue()).toBe("fourth\n\nsecond");
    held.open();
    await expect.poll(() => box(page).inputValue()).toBe("second");
    const { items } = (await api(server, "GET", at(id, "/queue"))).body;
    expect(items.map(({ input }: { input: string }) => input)).toEqual(["third", "fourth"]);
  });

  test("goes to its own Session's box where another one is looked at by then", async () => {
    const { id, page } = await pageWithTwo();
    await makeSession(server, { title: "elsewhere" });
    const held = gate();
    await page.route("**/queue/*", async (route) => {
      await held.opened;
      await route.continue();
    });
    await takeBack(page, "second");
    await page
      .locator(".row-session", { hasText: "elsewhere" })
      .getByRole("button", { name: "elsewhere" })
      .first()
      .click();
    await page.locator("#title", { hasText: "elsewhere" }).waitFor();
    const answered = page.waitForResponse(/\/queue\/[^/]+$/);
    held.open();
    await answered;
    expect(await box(page).inputValue()).toBe("");
    await page.evaluate(`location.hash = ${JSON.stringify(id)}`);
    await expect.poll(() => box(page).inputValue()).toBe("second");
  });
});
