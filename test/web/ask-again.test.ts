// A Prompt that is asked again in a fork has all that went along with it, or says what it has not.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { imageUrl, inlineData, userText } from "../../src/protocol/builders.js";
import { toLine } from "../../src/protocol/message.js";
import { api, at, makeSession } from "../e2e/api.js";
import { AT, aborted, metaOf } from "../support/messages.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer } from "../support/upstream.js";
import { hasBrowser, openWindow, ready, send } from "./browser.js";

const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PICTURE = { name: "dot.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") };
const NOTES = { name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("some notes") };

describe.skipIf(!hasBrowser)("a Prompt that is asked again", { timeout: 120_000 }, () => {
  startScripted({ model: { vision: true } });

  const box = (page: Page) => page.getByLabel("Prompt", { exact: true });
  const attached = (page: Page) => page.getByRole("list", { name: "Attached" }).getByRole("listitem");
  const idOf = (page: Page) => new URL(page.url()).hash.slice(1);
  const open = async (id: string) => {
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    return page;
  };
  const askAgain = async (page: Page, part: string) => {
    const before = idOf(page);
    const card = page.locator("article.user", { hasText: part });
    await card.getByRole("button", { name: "Ask this again in a fork" }).click();
    await expect.poll(() => idOf(page)).not.toBe(before);
    await ready(page);
  };
  /** What was said in a Session, but for the time. */
  const saidIn = async (id: string) => {
    const { messages } = (await api(server, "GET", at(id, "/messages"))).body;
    const payloads = (messages as { payload: { type?: string; role?: string } }[]).map(({ payload }) => payload);
    return payloads.filter(({ role }) => role === "user");
  };

  test("has its pictures and files in the box, and the same parts once it is sent", async () => {
    const id = await makeSession(server, { title: "with files" });
    const page = await open(id);
    upstream.script(answer("Hello."), answer("I see both."));
    await send(page, "hello");
    await page.locator("article.assistant", { hasText: "Hello." }).waitFor();
    await ready(page);
    await page.getByLabel("Files to attach").setInputFiles([PICTURE, NOTES]);
    await expect.poll(() => attached(page).count()).toBe(2);
    await send(page, "look at these");
    await page.locator("article.assistant", { hasText: "I see both." }).waitFor();
    await ready(page);
    await askAgain(page, "look at these");
    await expect.poll(() => page.locator("article.user").allTextContents()).toEqual(["hello"]);
    await expect.poll(() => box(page).inputValue()).toBe("look at these");
    await expect.poll(() => attached(page).allTextContents()).toEqual(["image.png", "notes.txt"]);
    upstream.script(answer("I still do."));
    await box(page).press("Enter");
    await page.locator("article.assistant", { hasText: "I still do." }).waitFor();
    await ready(page);
    expect(await saidIn(idOf(page))).toEqual(await saidIn(id));
  });

  test("may be a picture alone, and what was being written in its Session stays there", async () => {
    const id = await makeSession(server, { title: "a picture" });
    const page = await open(id);
    upstream.script(answer("A dot."));
    await page.getByLabel("Files to attach").setInputFiles([PICTURE]);
    await page.locator("#send").click();
    await page.locator("article.assistant", { hasText: "A dot." }).waitFor();
    await ready(page);
    await box(page).fill("begun");
    await askAgain(page, "");
    await expect.poll(() => attached(page).allTextContents()).toEqual(["image.png"]);
    await expect.poll(() => box(page).inputValue()).toBe("");
    await page.goto(`${server.url}/#${id}`);
    await expect.poll(() => box(page).inputValue()).toBe("begun");
    expect(await attached(page).count()).toBe(0);
  });

  test("says what of it cannot be sent again", async () => {
    const file = { role: "user", data: "%%", mime_type: "text/plain", file_name: "broken.txt" } as const;
    const meta = { ...metaOf(), payload: { ...metaOf().payload, provider: "scripted", model_id: "m" } };
    const said = [userText(AT, "see"), inlineData(AT, file), imageUrl(AT, `data:image/png;base64,${PIXEL}`)];
    const made = await fetch(`${server.url}/api/sessions/import`, {
      method: "POST",
      headers: { "content-type": "application/x-ndjson" },
      body: [meta, ...said, aborted()].map((record) => `${toLine(record)}\n`).join(""),
    });
    const { sessionId } = (await made.json()) as { sessionId: string };
    expect(made.status).toBe(201);
    const page = await open(sessionId);
    await askAgain(page, "see");
    await page.getByRole("alert").filter({ hasText: "Left out: broken.txt." }).waitFor();
    await expect.poll(() => box(page).inputValue()).toBe("see");
    await expect.poll(() => attached(page).allTextContents()).toEqual(["image.png"]);
  });
});
