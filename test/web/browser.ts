// A real browser for the page's tests. Pages are held to it that nothing fails, is refused by the page's own policy, or
// goes to another host.

import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, expect, onTestFinished } from "vitest";

const EXECUTABLE = process.env.OMNID_CHROMIUM ?? "/usr/bin/chromium";
const ARGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export const hasBrowser = existsSync(EXECUTABLE);
if (!hasBrowser) console.warn(`the page's tests are skipped: no Chromium at ${EXECUTABLE}`);

let browser: Promise<Browser> | undefined;
afterAll(async () => (await browser)?.close());

/** Opens a window of its own (tabs of one share storage) and gives a function that opens tabs in it. */
export async function openWindow(options: BrowserContextOptions = {}): Promise<(url: string) => Promise<Page>> {
  browser ??= chromium.launch({ executablePath: EXECUTABLE, args: ARGS });
  const context = await (await browser).newContext({ viewport: { width: 1280, height: 800 }, ...options });
  context.setDefaultTimeout(45_000);
  const faults: string[] = [];
  onTestFinished(async () => {
    await context.close();
    expect(faults).toEqual([]);
  });
  return async (url) => {
    const page = await context.newPage();
    page.on("pageerror", (error) => faults.push(error.message));
    page.on("console", (message) => {
      // The browser itself writes one for each answer that is not 2xx and for each connection that fails.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource"))
        faults.push(message.text());
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (protocol !== "data:" && origin !== new URL(url).origin) faults.push(`asked ${request.url()}`);
    });
    await page.goto(url);
    return page;
  };
}

/** Types a prompt and sends it with Enter. */
export async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel("Prompt", { exact: true }).fill(text);
  await page.keyboard.press("Enter");
}

export const activity = (page: Page, text: string) => page.locator("#activity", { hasText: text }).waitFor();
export const ready = (page: Page) => activity(page, "Ready");
export const question = (page: Page) => page.getByRole("region", { name: /^Approval (\(\d+ of \d+\) )?of/ });
/** A question that may be answered: it was on screen for long enough to be read. */
export const readQuestion = (page: Page) =>
  question(page).locator("button.allow:not([aria-disabled=true])").first().waitFor();

/** What the conversation shows, item by item, folded parts included. */
export const shownItems = (page: Page): Promise<string[]> =>
  page
    .locator("#items > *")
    .evaluateAll((nodes) => nodes.map((node) => (node.textContent ?? "").replace(/Thinking…/, "Thinking")));

/** No part of the page is wider than the window. */
export async function expectNoSidewaysScroll(page: Page): Promise<void> {
  const { content, window } = await page.evaluate(
    "({ content: document.documentElement.scrollWidth, window: innerWidth })" as never as () => {
      content: number;
      window: number;
    },
  );
  expect(content).toBeLessThanOrEqual(window);
}
