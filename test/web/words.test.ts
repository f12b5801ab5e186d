// What the page says is said in words, and not twice in different ones.

import { describe, expect, test } from "vitest";
import { emptyView, type View } from "../../src/client/index.js";
import * as make from "../../src/protocol/builders.js";
import { itemsOf } from "../../src/web/items.js";
import { endText } from "../../src/web/spoken.js";
import { AT } from "../support/messages.js";
import { server, startScripted, upstream } from "../support/scripted-server.js";
import { say } from "../support/upstream.js";
import { hasBrowser, ready, send } from "./browser.js";
import { busyPage, chooseWhenBusy } from "./busy-page.js";

test.each(["failed", "timeout", "malformed"] as const)("a Request that ended as %s is told of in words", (status) => {
  const task = { state: "idle", queued: 0, pendingApprovals: 0, records: 1, ended: { taskId: "t", status } } as const;
  const view = {
    ...emptyView("s"),
    messages: [{ key: "1", message: make.requestEnd(AT, { status }) }],
    task,
  } as unknown as View;
  const shown = itemsOf(view).map((item) => ("text" in item ? item.text : ""));
  expect(shown).toHaveLength(1);
  for (const text of [...shown, endText(view)]) expect(text).toMatch(/(?:the|of the) model (?:could|failed)/);
});

describe.skipIf(!hasBrowser)("the page", { timeout: 120_000 }, () => {
  startScripted({ env: { OMNID_RETRY_LIMIT: "0" } });

  test("says below an answer that was cut off that it is not complete, and leaves the reason to the notice", async () => {
    const { page } = await busyPage(server, upstream);
    await page.locator("#stop").click();
    await ready(page);
    const note = page.locator("article.assistant .note");
    expect(await note.textContent()).toBe("This answer is not complete.");
    expect(await page.locator(".notice").textContent()).toBe("You stopped this.");
    upstream.script({ steps: say("half of "), end: "reset" });
    await send(page, "again");
    await page.locator(".notice.bad, .notice.warn").first().waitFor();
    expect(await note.last().textContent()).toBe("This answer is not complete.");
  });

  test("keeps what a prompt does while the model works for the Session where it was chosen", async () => {
    const one = await busyPage(server, upstream);
    const { id: other } = await busyPage(server, upstream);
    const chosen = () => one.page.getByLabel("What a prompt does while the model works").inputValue();
    await chooseWhenBusy(one.page, "interrupt");
    await one.page.evaluate(`location.hash = ${JSON.stringify(other)}`);
    await one.page.locator("#stop").waitFor();
    await expect.poll(chosen).toBe("queue");
    await one.page.evaluate(`location.hash = ${JSON.stringify(one.id)}`);
    await expect.poll(chosen).toBe("interrupt");
  });
});
