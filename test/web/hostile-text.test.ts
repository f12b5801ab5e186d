// Texts and rows that the page cannot show as what they are: they are shown as it can, and take nothing else with them.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { assistantText, requestBegin, requestEnd, userText } from "../../src/protocol/builders.js";
import { type OmniMessage, toLine } from "../../src/protocol/message.js";
import { atFileEnd } from "../support/at-file-end.js";
import { AT, metaOf } from "../support/messages.js";
import { type Server, startOmnid } from "../support/server.js";
import { hasBrowser, shownItems as itemsOf, openWindow, question, ready, send } from "./browser.js";

const shownItems = async (page: Page) => (await itemsOf(page)).map((item) => item.trim());

const said = (prompt: string, text: string, at = AT): OmniMessage[] => [
  userText(at, prompt),
  requestBegin(AT),
  assistantText(AT, text),
  requestEnd(AT, { status: "completed" }),
];

describe.skipIf(!hasBrowser)("a page with what it cannot show", { timeout: 120_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    if (hasBrowser) server = await startOmnid({ atEnd: atFileEnd });
  });

  async function imported(messages: OmniMessage[]): Promise<string> {
    const meta = { ...metaOf(), payload: { ...metaOf().payload, provider: "demo", model_id: "demo" } };
    const made = await fetch(`${server.url}/api/sessions/import`, {
      method: "POST",
      headers: { "content-type": "application/x-ndjson" },
      body: [meta, ...messages].map((record) => `${toLine(record)}\n`).join(""),
    });
    const session = (await made.json()) as { sessionId: string };
    expect(made.status, JSON.stringify(session)).toBe(201);
    return session.sessionId;
  }

  const choose = (page: Page, id: string) => page.evaluate(`location.hash = "#${id}"`);
  const other = () => imported(said("another prompt", "another answer"));
  const OTHER = ["another prompt", "another answer"];

  test.each<[string, string, string]>([
    ["nests too deep", `${">".repeat(2_500)}the end of it`, "the end of it"],
    ["is 4 MB in one paragraph", `start ${"word ".repeat(800_000)}`, "start word"],
    ["is 4 MB in many paragraphs", `start ${"word\n\n".repeat(700_000)}`, "start word"],
    ["has marks without end", `start ${"*a_".repeat(10_000)}`, "start *a_*a_"],
  ])("a text that %s is shown, and the next Session shows its own", async (_, text, words) => {
    const id = await imported([...said("first", "an answer"), ...said("second", text), ...said("third", "a last one")]);
    const next = await other();
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page.getByText("a last one").waitFor();
    const items = await shownItems(page);
    expect(items).toHaveLength(6);
    expect(items[3]).toContain(words);
    await choose(page, next);
    await page.getByText("another answer").waitFor();
    expect(await shownItems(page)).toEqual(OTHER);
    await choose(page, id);
    await page.getByText("a last one").waitFor();
    expect(await shownItems(page)).toEqual(items);
  });

  test("a row that fails is replaced by its text; the rows around it and the next Session are whole", async () => {
    const bad = "2021-01-02T03:04:05.000Z";
    const id = await imported([...said("first", "one"), ...said("second", "two", bad), ...said("third", "three")]);
    const next = await other();
    const tab = await openWindow();
    const page = await tab(`${server.url}/#${next}`);
    await ready(page);
    // The row has its time as a title.
    await page.evaluate(`{
      const real = Date.prototype.toLocaleString;
      Date.prototype.toLocaleString = function (...args) {
        if (this.toISOString() === "${bad}") throw new Error("a fault of the page");
        return real.apply(this, args);
      };
    }`);
    await choose(page, id);
    await page.getByText("three").waitFor();
    const items = ["first", "one", "This cannot be shown as it should be:second", "two", "third", "three"];
    expect(await shownItems(page)).toEqual(items);
    await choose(page, next);
    await page.getByText("another answer").waitFor();
    expect(await shownItems(page)).toEqual(OTHER);
  });

  test("a very long text is shown as it is written, and formatted where that is asked for", async () => {
    const text = Array.from({ length: 4_000 }, (_, n) => `## Title ${n}\n\n${"some *words* ".repeat(5)}\n\n`).join("");
    const id = await imported(said("first", text));
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page.locator(".prose pre.plain").first().waitFor();
    expect(await page.locator(".prose em").count()).toBe(0);
    await page.getByRole("button", { name: "Format anyway" }).click();
    await page.locator(".prose h4").first().waitFor();
    expect(await page.locator(".prose h4").count()).toBeLessThan(3_000);
    await page.getByRole("button", { name: "As it is written" }).click();
    await page.locator(".prose h4").first().waitFor({ state: "detached" });
  });

  test("an output has the colours that the command gave it, and nothing else of what steers a terminal", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, String.raw`/run printf '\033]0;title\007\033[31mred\033[0m <b>not bold</b>\n10%%\r99%%\n'`);
    await question(page).waitFor();
    expect(await question(page).locator(".command").textContent()).toContain(String.raw`\033]0;title\007`);
    await question(page).getByRole("button", { name: "Allow" }).click();
    await ready(page);
    await page.locator(".tool > summary").click();
    const output = page.locator(".tool .output");
    expect(await output.textContent()).toBe("red <b>not bold</b>\n99%\n");
    expect(await output.locator(".sgr-ink-1").allTextContents()).toEqual(["red"]);
    // The demo model quotes it.
    expect(await page.locator(".prose pre").textContent()).toContain("red <b>not bold</b>");
  });

  test("an approval shows the characters of a command that cannot be seen, and so does its card", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, "/run echo \u202etxt.cod\u202c a\u200bb");
    const visible = "echo ⟨U+202E⟩txt.cod⟨U+202C⟩ a⟨U+200B⟩b";
    expect(await question(page).locator(".command").textContent()).toBe(visible);
    expect(await page.locator(".tool .gist").textContent()).toBe(visible);
    await question(page).getByRole("button", { name: "Deny" }).click();
    await ready(page);
    expect(await page.locator(".tool .command").textContent()).toBe(visible);
  });
});
