// The page for those who do not see it, or use no mouse: axe finds nothing serious in any state of it, and what happens
// is said.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { atFileEnd } from "../support/at-file-end.js";
import { type Server, startOmnid } from "../support/server.js";
import { hasBrowser, openWindow, question, readQuestion, ready, send } from "./browser.js";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

interface Violation {
  id: string;
  impact: string;
  nodes: { target: string[]; failureSummary: string }[];
}

/** What axe finds, as lines that say where; those that are only advice are left out. */
async function serious(page: Page): Promise<string[]> {
  // The page's own policy lets no script in, so this goes in through the debugger.
  await page.evaluate(AXE);
  const found = (await page.evaluate("axe.run(document).then(({ violations }) => violations)")) as Violation[];
  return found
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .flatMap(({ id, nodes }) =>
      nodes.map(({ target, failureSummary }) => `${id}: ${target.join(" ")}: ${failureSummary}`),
    );
}

describe.skipIf(!hasBrowser)("the page for everybody", { timeout: 180_000 }, () => {
  let server: Server;
  beforeAll(async () => {
    if (hasBrowser) server = await startOmnid({ atEnd: atFileEnd });
  });

  test.each([
    [1280, "light"],
    [1280, "dark"],
    [390, "light"],
    [390, "dark"],
  ] as const)("at %i px (%s) axe finds nothing serious in any state of it", async (width, colorScheme) => {
    const page = await (await openWindow({ viewport: { width, height: 800 }, colorScheme }))(server.url);
    await page.getByText("Try one of these").waitFor();
    expect(await serious(page)).toEqual([]);
    await send(page, "/parallel echo one && sleep 0.1");
    await question(page).waitFor();
    expect(await serious(page)).toEqual([]);
    await page.getByRole("button", { name: "Allow" }).click();
    await question(page).getByRole("textbox").waitFor();
    await page.getByRole("button", { name: "Deny" }).click();
    await ready(page);
    expect(await serious(page)).toEqual([]);
    await page.locator("#session-menu").click();
    await page.getByRole("menuitem", { name: "Rename…" }).waitFor();
    expect(await serious(page)).toEqual([]);
    await page.getByRole("menuitem", { name: "Rename…" }).click();
    await page.getByRole("dialog").waitFor();
    expect(await serious(page)).toEqual([]);
    await page.keyboard.press("Escape");
    if (width < 768) {
      await page.getByRole("button", { name: "Sessions" }).click();
      await page.getByRole("searchbox").waitFor();
      expect(await serious(page)).toEqual([]);
    }
  });

  test("what is asked and what is over is said, and what is written is not said word by word", async () => {
    const page = await (await openWindow())(server.url);
    const said = page.getByRole("status");
    await send(page, "/run echo spoken");
    await said.getByText(/^exec_command: .* needs your approval\.$/).waitFor();
    await readQuestion(page);
    await page.keyboard.press("Control+Enter");
    await ready(page);
    await said.getByText(/^Finished\. .*ended with exit code 0/).waitFor();
    const log = page.getByRole("log", { name: "Conversation" });
    expect(await log.getAttribute("aria-live")).toBe("off");
  });

  test("by keyboard alone: a denial with its reason, the list, the search, a menu, a dialog and back", async () => {
    const page = await (await openWindow())(server.url);
    await send(page, "/run echo no");
    await readQuestion(page);
    await page.keyboard.press("Control+Backspace");
    await page.keyboard.type("not today");
    await page.keyboard.press("Enter");
    await ready(page);
    expect(await page.locator(".tool .output").textContent()).toContain("not today");
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("prompt");
    await page.keyboard.press("Control+K");
    await page.keyboard.type("echo no");
    expect(await page.getByRole("searchbox").inputValue()).toBe("echo no");
    expect(await page.locator("#sessions .row-session").count()).toBe(1);
    await page.keyboard.press("ArrowDown");
    await page.locator("#sessions .row-session > button:first-child:focus").waitFor();
    await page.keyboard.press("ArrowUp");
    expect(await page.evaluate("document.activeElement.id")).toBe("search");
    await page.evaluate("location.hash = ''");
    await page.getByText("What should be done?").waitFor();
    await page.keyboard.press("Enter");
    await page.locator("#title", { hasText: "echo no" }).waitFor();
    await expect.poll(() => page.evaluate("document.activeElement.id")).toBe("prompt");
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "detached" });
    await page.keyboard.type("why?");
    expect(await page.getByLabel("Prompt", { exact: true }).inputValue()).toBe("why?");
    await page.getByLabel("Prompt", { exact: true }).fill("");
    await page.locator("#session-menu").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem", { name: "Rename…" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Control+A");
    await page.keyboard.type("By keyboard");
    await page.keyboard.press("Enter");
    await page.locator("#title", { hasText: "By keyboard" }).waitFor();
    await page.locator("#title").click();
    await page.keyboard.press("?");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "detached" });
    await page.keyboard.press("/");
    expect(await page.evaluate("document.activeElement.id")).toBe("prompt");
  });

  test("the colours follow the system until they are chosen, and then the choice", async () => {
    const tab = await openWindow({ colorScheme: "dark" });
    const page = await tab(server.url);
    const paper = () => page.evaluate("getComputedStyle(document.body.parentElement).backgroundColor");
    const dark = await paper();
    await page.getByRole("button", { name: /^Colours: as the system/ }).click();
    await page.getByRole("button", { name: /^Colours: light/ }).waitFor();
    expect(await paper()).not.toBe(dark);
    await page.reload();
    await page.getByRole("button", { name: /^Colours: light/ }).click();
    await page.getByRole("button", { name: /^Colours: dark/ }).waitFor();
    expect(await paper()).toBe(dark);
  });
});
