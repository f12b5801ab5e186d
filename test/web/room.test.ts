// Windows of any size: what a person needs is in sight, or can be scrolled to, and nothing lies on anything else.

import type { Page } from "playwright-core";
import { describe, expect, test } from "vitest";
import { api, at, makeSession } from "../e2e/api.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { answer, calls } from "../support/upstream.js";
import { expectNoSidewaysScroll, hasBrowser, openWindow, question, ready, send } from "./browser.js";
import { busyPage } from "./busy-page.js";

const LOW: readonly Size[] = [
  [640, 360],
  [667, 375],
  [844, 390],
  [320, 256],
  [720, 450],
];
type Size = readonly [width: number, height: number];

describe.skipIf(!hasBrowser)("in a window of any size", { timeout: 120_000 }, () => {
  startScripted();

  const resize = (page: Page, [width, height]: Size) => page.setViewportSize({ width, height });
  const boxOf = async (page: Page, selector: string) => {
    const box = await page.locator(selector).boundingBox();
    if (box === null) throw new Error(`${selector} is not there`);
    return { left: box.x, top: box.y, right: box.x + box.width, bottom: box.y + box.height };
  };
  const expectInSight = async (page: Page, selector: string, [width, height]: Size) => {
    const box = await boxOf(page, selector);
    // But for what rounding makes.
    const isInSight = box.left > -1 && box.top > -1 && box.right < width + 1 && box.bottom < height + 1;
    expect(isInSight, `${selector} ${JSON.stringify(box)} at ${width}x${height}`).toBe(true);
  };
  /** Something of the conversation stays in sight. */
  const expectTalk = async (page: Page, size: Size) => {
    const { top, bottom } = await boxOf(page, ".talk");
    expect(bottom - top).toBeGreaterThanOrEqual(Math.max(60, size[1] / 5));
    await expectInSight(page, ".talk", size);
  };

  test("many prompts that wait leave Send, Stop and a share of the conversation in sight, and each can be reached", async () => {
    const { id, page } = await busyPage(server, upstream);
    for (let each = 1; each <= 14; each += 1)
      await api(server, "POST", at(id, "/tasks"), { input: `prompt ${each}`, whenBusy: "queue" });
    const last = page.getByRole("list", { name: "Waiting" }).getByRole("listitem").nth(13);
    await last.waitFor();
    for (const size of [
      [1280, 720],
      [390, 844],
      [820, 1180],
      [640, 360],
    ] as const) {
      await resize(page, size);
      for (const selector of ["#prompt", "#send", "#stop"]) await expectInSight(page, selector, size);
      await expectTalk(page, size);
      await last.getByRole("button").scrollIntoViewIfNeeded();
      await expectInSight(page, "#queue li:last-child button", size);
    }
    await last.getByRole("button", { name: "Take back" }).click();
    await last.waitFor({ state: "detached" });
  });

  test("a question in a low window leaves some of the conversation, and all below it can be scrolled to", async () => {
    const id = await makeSession(server, { title: "asked", approvalMode: "always-ask" });
    const page = await (await openWindow())(`${server.url}/#${id}`);
    await ready(page);
    upstream.script(calls({ id: "a", name: "exec_command", args: { cmd: "echo one; echo two" } }));
    await send(page, "run it");
    await question(page).waitFor();
    for (const size of LOW) {
      await resize(page, size);
      await expectTalk(page, size);
      for (const selector of [".request h2", ".allow", ".reason", "#prompt", "#stop", "#thinking", "#standing"]) {
        await page.locator(selector).scrollIntoViewIfNeeded();
        await expectInSight(page, selector, size);
      }
      await expectNoSidewaysScroll(page);
    }
    await page.locator("#stop").click();
    await ready(page);
  });

  test("the settings and the buttons beside them lie side by side while a Task runs", async () => {
    const { page } = await busyPage(server, upstream);
    const parts = ["#model", "#mode", "#thinking", "#stop", "#when-busy", "#send"];
    for (const size of [
      [820, 1180],
      [844, 390],
      [700, 800],
      [768, 800],
      [1000, 700],
      [1280, 720],
    ] as const) {
      await resize(page, size);
      const boxes = [];
      for (const part of parts) boxes.push({ part, ...(await boxOf(page, part)) });
      for (const [index, one] of boxes.entries()) {
        for (const other of boxes.slice(index + 1)) {
          const isApart =
            one.right <= other.left || other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top;
          expect(isApart, `${one.part} and ${other.part} at ${size.join("x")}`).toBe(true);
        }
      }
    }
  });

  test("a table keeps its words and numbers whole, and scrolls in its own box", async () => {
    const id = await makeSession(server, { title: "a table" });
    const page = await (await openWindow({ viewport: { width: 390, height: 844 } }))(`${server.url}/#${id}`);
    await ready(page);
    const cells = ["internationalisation", "1,234,567.89", "`configuration.production`", "b".repeat(40)];
    const line = (of: readonly string[]) => `| ${of.join(" | ")} |`;
    upstream.script(answer([line(cells), line(cells.map(() => "---")), line(cells)].join("\n")));
    await send(page, "make a table");
    const table = page.locator(".prose table");
    await table.waitFor();
    await ready(page);
    const spread = await table.evaluate((node) =>
      [...node.querySelectorAll("th, td")].map((cell) => {
        const range = node.ownerDocument.createRange();
        range.selectNodeContents(cell);
        const ends = [...range.getClientRects()].map(({ bottom }) => bottom);
        return Math.max(...ends) - Math.min(...ends);
      }),
    );
    // Less than a line: a box of code is a little higher than its text.
    expect(spread.filter((px) => px > 12)).toEqual([]);
    const { content, box } = await table.evaluate((node) => ({ content: node.scrollWidth, box: node.clientWidth }));
    expect(content).toBeGreaterThan(box);
    await expectNoSidewaysScroll(page);
  });
});
