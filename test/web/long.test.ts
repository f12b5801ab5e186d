// The page with 10,000 messages: what is in it is bounded, what the reader looks at stays where it is, and nothing is
// blank wherever the reader goes.

import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { assistantText, requestBegin, requestEnd, userText } from "../../src/protocol/builders.js";
import { type OmniMessage, toLine } from "../../src/protocol/message.js";
import { atFileEnd } from "../support/at-file-end.js";
import { AT, metaOf } from "../support/messages.js";
import { type Server, startOmnid } from "../support/server.js";
import { gate } from "../support/upstream.js";
import { hasBrowser, openWindow, ready, send } from "./browser.js";

const TURNS = 5_000;
/** Enough for several windows of the shortest messages, and far from all. */
const MOST_ROWS = 150;

const textOf = (turn: number) => `answer ${turn}. ${"It has a few words more, and some have many. ".repeat(turn % 7)}`;

function longTrace(): string {
  const meta = { ...metaOf(), payload: { ...metaOf().payload, provider: "demo", model_id: "demo" } };
  const records: OmniMessage[] = [meta];
  for (let turn = 0; turn < TURNS; turn += 1) {
    records.push(userText(AT, `prompt ${turn}.`), requestBegin(AT));
    records.push(assistantText(AT, textOf(turn)), requestEnd(AT, { status: "completed" }));
  }
  return records.map((record) => `${toLine(record)}\n`).join("");
}

const inPage = <T>(page: Page, expression: string): Promise<T> => page.evaluate(expression) as Promise<T>;
const rowsIn = (page: Page) => page.locator("#items > .row").count();
/** The text of the row at a place of the window, or null where there is none. */
const rowAt = (page: Page, y: number): Promise<string | null> =>
  inPage(page, `document.elementFromPoint(700, ${y})?.closest(".row")?.textContent ?? null`);

describe.skipIf(!hasBrowser)("a page with 10,000 messages", { timeout: 180_000 }, () => {
  let server: Server;
  let id: string;
  beforeAll(async () => {
    if (!hasBrowser) return;
    server = await startOmnid({ atEnd: atFileEnd });
    const made = await fetch(`${server.url}/api/sessions/import`, {
      method: "POST",
      headers: { "content-type": "application/x-ndjson" },
      body: longTrace(),
    });
    const session = (await made.json()) as { sessionId: string };
    expect(made.status, JSON.stringify(session)).toBe(201);
    id = session.sessionId;
  });

  test("loads them as the reader goes back, and never has more than a few screens of them", async () => {
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page.getByText(`prompt ${TURNS - 1}.`).waitFor();
    expect(await rowsIn(page)).toBeLessThan(MOST_ROWS);
    let most = 0;
    while ((await page.getByText("prompt 0.", { exact: true }).count()) === 0) {
      await inPage(page, "document.querySelector('#scroller').scrollTo({ top: 0 })");
      await inPage(page, "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
      most = Math.max(most, await rowsIn(page));
    }
    expect(most).toBeLessThan(MOST_ROWS);
    // Anywhere in it there is something to read.
    const height = await inPage<number>(page, "document.querySelector('#scroller').scrollHeight");
    expect(height).toBeGreaterThan(TURNS * 2 * 40);
    for (const share of [0.1, 0.37, 0.5, 0.82, 0.99]) {
      await inPage(page, `document.querySelector('#scroller').scrollTo({ top: ${share * height} })`);
      await expect.poll(() => rowAt(page, 400)).toMatch(/(prompt|answer) \d+\./);
      expect(await rowsIn(page)).toBeLessThan(MOST_ROWS);
    }
    await page.getByRole("button", { name: "Latest" }).click();
    await page.getByText(`prompt ${TURNS - 1}.`).waitFor();
    await send(page, "/think still here");
    await page.locator("article.user", { hasText: "still here" }).waitFor();
    await ready(page);
    expect(await rowsIn(page)).toBeLessThan(MOST_ROWS);
  });

  test("what the reader looks at does not move when older messages come in above it", async () => {
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page
      .getByText(/still here/)
      .first()
      .waitFor();
    const held = gate();
    await page.route("**/messages?*before=*", async (route) => {
      await held.opened;
      await route.continue();
    });
    const asked = page.waitForRequest((request) => request.url().includes("before="));
    await inPage(page, "document.querySelector('#scroller').scrollTo({ top: 200 })");
    await asked;
    const height = () => inPage<number>(page, "document.querySelector('#scroller').scrollHeight");
    const key = await inPage<string>(page, "document.elementFromPoint(700, 300).closest('.row').dataset.key");
    const place = `document.querySelector('.row[data-key="${key}"]').getBoundingClientRect().top`;
    const [before, was] = [await inPage<number>(page, place), await height()];
    held.open();
    await expect.poll(height).toBeGreaterThan(was + 1000);
    expect(Math.abs((await inPage<number>(page, place)) - before)).toBeLessThan(2);
  });

  test("the wheel moves what is read by what it turns, over rows that were never measured", async () => {
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    await page
      .getByText(/still here/)
      .first()
      .waitFor();
    await page.mouse.move(700, 400);
    for (let turn = 0; turn < 24; turn += 1) {
      const key = await inPage<string>(page, "document.elementFromPoint(700, 200).closest('.row').dataset.key");
      const place = `document.querySelector('.row[data-key="${key}"]').getBoundingClientRect().top`;
      const before = await inPage<number>(page, place);
      await page.mouse.wheel(0, -300);
      await expect.poll(() => inPage<number>(page, place)).toBeCloseTo(before + 300, -0.5);
    }
  });
});
