// A page whose Task waits for a gate, for what is done meanwhile.

import type { BrowserContextOptions, Page } from "playwright-core";
import { makeSession } from "../e2e/api.js";
import type { Server } from "../support/server.js";
import { finish, type Gate, gate, say, type Upstream, usage } from "../support/upstream.js";
import { openWindow, ready, send } from "./browser.js";

export async function busyPage(
  server: Server,
  upstream: Upstream,
  options: BrowserContextOptions = {},
): Promise<{ id: string; page: Page; rest: Gate }> {
  const id = await makeSession(server, { approvalMode: "allow-all", title: "busy" });
  const page = await (await openWindow(options))(`${server.url}/#${id}`);
  await ready(page);
  const rest = gate();
  upstream.script({ steps: [...say("wait "), rest, ...say("over"), ...finish("stop", usage(1, 1))] });
  await send(page, "first");
  await page.locator("article.assistant", { hasText: "wait" }).waitFor();
  return { id, page, rest };
}

export const chooseWhenBusy = (page: Page, what: string) =>
  page.getByLabel("What a prompt does while the model works").selectOption(what);
